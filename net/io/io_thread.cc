#include "net/io/io_thread.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "net/io/session.h"
#include "net/io/strangers.h"

namespace sluice {

namespace {

thread_local IoThread* current_thread = nullptr;

// Asio's handlers, each turn: so many, and no further one after this time. One of them may be a
// request of HTTP that takes milliseconds, and the sockets wait for all of them.
constexpr int kMaxHandlersPerTurn = 64;
constexpr auto kMaxHandlersTime = std::chrono::microseconds(500);
constexpr size_t kMaxEventsPerTurn = 256;
// Each turn, too: replies to blocked commands and kills among the mail, of which each connection
// has one at most; time-outs of blocked commands.
constexpr size_t kMaxEndsByMailPerTurn = 64;
constexpr size_t kMaxTimeoutsPerTurn = 256;
// For so long connections that have ended are closed; and at least as many as have been opened, and
// these, so that they do not pile up.
constexpr int64_t kMaxClosingUs = 500;
constexpr size_t kMinClosesPerTurn = 8;
// For so long what a sync has released of mail is written; the clock is read after so many writes.
constexpr int64_t kMaxMailWritingUs = 500;
constexpr size_t kWritesPerLook = 16;
constexpr int kSpareWork = 1 << 16;
constexpr auto kPausedRetry = std::chrono::milliseconds(2);
constexpr auto kHousekeepingInterval = std::chrono::seconds(1);

}  // namespace

IoThread::IoThread(ServerState& state, unsigned index, bool hold_shards)
    : state_(state),
      index_(index),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(context_.get_executor()),
      poller_(context_),
      hold_shards_(hold_shards),
      strangers_(std::make_unique<Strangers<Session>>(*this)),
      timeout_timer_(context_),
      housekeeping_timer_(context_),
      paused_timer_(context_) {
  // A handler that was posted within another one is counted when that one ends. If a nested poll
  // runs it before, the count is too low for a while, and at zero the context would stop.
  for (int i = 0; i < kSpareWork; ++i) context_.get_executor().on_work_started();
  add_level();
}

IoThread::~IoThread() { CHECK(!thread_.joinable()); }

void IoThread::add_level() {
  levels_.push_back(std::make_unique<Level>(*state_.engine));
  levels_.back()->execution->set_hold_shards(hold_shards_);
  if (levels_.size() > 1) levels_.back()->execution->set_nested_in_another();
}

IoThread* IoThread::current() { return current_thread; }

int64_t IoThread::read_clock() {
  times_ = state_.clocks.read();
  return times_.wall_ms;
}

// --- Life ---

void IoThread::start() {
  thread_ = Thread("sluice-io-" + std::to_string(index_), [this] { run(); });
}

void IoThread::run() {
  current_thread = this;
  while (!stop_wanted_) {
    turn(!has_work());
    end_turn();
    if (nested_polled_) after_nested();
    close_ended();
    sweep();
  }
  // Here, and not in the destructor: sessions tell the engine, which must still be whole.
  for (const auto& session : sessions_) session->close();
  while (!to_close_.empty()) close_ended();
  run_sockets({});  // lets go of those that wanted to go on
  sweep();
  durable_waits_.clear();
  for (const auto& guest : guests_) guest->close_all();
  // Its handlers have been cancelled, and let go of what they hold.
  while (context_.poll_one() != 0) {
  }
  CHECK(sessions_.empty());
  current_thread = nullptr;
  ended_.store(true, std::memory_order_release);
}

void IoThread::begin_stop() {
  post([this] {
    stopping_ = true;
    for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i]->begin_stop();
    for (const auto& guest : guests_) guest->begin_stop();
  });
}

void IoThread::stop() { signal(kStop); }

void IoThread::join() {
  if (thread_.joinable()) thread_.join();
}

// --- Turns ---

void IoThread::signal(Signal what) {
  // The first one wakes. This thread looks at the signals before it waits, so it needs no waking.
  const bool first = signals_.fetch_or(what, std::memory_order_acq_rel) == 0;
  if (first && current_thread != this) poller_.wake();
}

void IoThread::post(std::function<void()> task) {
  asio::post(context_, std::move(task));
  signal(kTaskPosted);
}

bool IoThread::has_work() const {
  return !continuing_.empty() || handlers_wait_ || flush_wanted_ || writes_wait_ ||
         !to_close_.empty() || signals_.load(std::memory_order_acquire) != 0;
}

// All of a turn but its end: also what a script that polls lets in.
void IoThread::turn(bool block) {
  std::array<epoll_event, kMaxEventsPerTurn> events;
  const size_t count = poller_.wait(events, block);
  // First of all the replies that a sync has released: their clients may join the next one.
  take_signals();
  run_sockets({events.data(), count});
  run_handlers();
}

void IoThread::take_signals() {
  if (signals_.load(std::memory_order_acquire) == 0) return;
  const uint32_t signals = signals_.exchange(0, std::memory_order_acq_rel);
  if ((signals & kStop) != 0) stop_wanted_ = true;
  if ((signals & kTaskPosted) != 0) handlers_wait_ = true;
  if ((signals & kDurableMoved) != 0) {
    write_gated();
    resume_paused();
  }
  if ((signals & kMailWaits) != 0) drain_mail();
}

void IoThread::run_sockets(std::span<const epoll_event> events) {
  const bool was_in_turn = std::exchange(in_turn_, true);
  // Those that ask again meanwhile do so for the next turn.
  const std::vector<Session*> continuing = std::exchange(continuing_, {});
  // A script that polls comes here again and takes what is left of the turn that it holds up: its
  // edges are not told twice.
  events_at_hand_.insert(events_at_hand_.end(), events.begin(), events.end());
  while (next_event_ != events_at_hand_.size()) {
    const epoll_event event = events_at_hand_[next_event_++];
    Poller::session_of(event).on_events(event.events);
  }
  if (!was_in_turn) {
    events_at_hand_.clear();
    next_event_ = 0;
  }
  for (Session* session : continuing) {
    session->places.continuing = false;
    session->go_on();
  }
  in_turn_ = was_in_turn;
}

void IoThread::run_handlers() {
  using std::chrono::steady_clock;
  if (poller_.take_reactor_ready()) handlers_wait_ = true;
  if (!handlers_wait_) return;
  const auto end = steady_clock::now() + kMaxHandlersTime;
  for (int i = 0; i < kMaxHandlersPerTurn; ++i) {
    handlers_wait_ = context_.poll_one() != 0;
    if (!handlers_wait_ || steady_clock::now() >= end) return;
  }
}

void IoThread::end_turn() {
  if (flush_wanted_) {
    flush_wanted_ = false;
    GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
    // A failure is told by journal_failed().
    if (journal != nullptr && !journal->flush()) return;
    // What the flush itself has made durable is written now.
    signals_.fetch_and(~uint32_t{kDurableMoved}, std::memory_order_acq_rel);
    write_gated();
    resume_paused();
  } else {
    write_gated();
  }
}

// --- Connections ---

void IoThread::adopt(int fd, Endpoints endpoints) {
  asio::post(context_, [this, fd, moved = std::move(endpoints)]() mutable {
    take_connection(fd, std::move(moved));
  });
  signal(kTaskPosted);
}

void IoThread::take_connection(int fd, Endpoints endpoints) {
  if (stopping_) {
    ::close(fd);
    state_.connected_clients.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  auto session = std::make_unique<Session>(*this, fd, std::move(endpoints));
  {
    MutexLock lock(registry_mutex_);
    registry_.insert(session->port());
  }
  session->places.index = sessions_.size();
  sessions_.push_back(std::move(session));
  ++opened_;
  session_count_.store(sessions_.size(), std::memory_order_release);
  if (state_.limits.idle_timeout_s.load(std::memory_order_relaxed) != 0) need_housekeeping();
  sessions_.back()->start();
}

std::vector<std::shared_ptr<SessionPort>> IoThread::ports() const {
  MutexLock lock(registry_mutex_);
  return {registry_.begin(), registry_.end()};
}

void IoThread::bury(Session& session) {
  graveyard_.push_back(&session);
  state_.connected_clients.fetch_sub(1, std::memory_order_relaxed);
  if (session.places.gated) std::erase(gated_, &session);
  if (session.places.gated) std::erase(mailed_, &session);
  if (session.places.paused) std::erase(paused_, &session);
  MutexLock lock(registry_mutex_);
  registry_.erase(session.port());
}

// At the end of a turn nobody names a session that has ended.
void IoThread::sweep() {
  if (graveyard_.empty()) return;
  std::erase_if(graveyard_, [this](Session* session) {
    if (session->places.continuing || session->places.to_close) return false;
    const size_t index = session->places.index;
    std::swap(sessions_[index], sessions_.back());
    sessions_[index]->places.index = index;
    sessions_.pop_back();
    return true;
  });
  session_count_.store(sessions_.size(), std::memory_order_release);
}

// --- Mail ---

void IoThread::send_mail(Mail mail) {
  bool first = false;
  {
    MutexLock lock(mail_mutex_);
    first = mail_.empty();
    mail_.push_back(std::move(mail));
  }
  if (first) signal(kMailWaits);
}

void IoThread::drain_mail() {
  if (depth_ != 0) return;  // after_nested() comes back to it
  // Locals: a session may run a script, which polls, which brings further mail.
  std::vector<Mail> batch = std::move(mail_at_hand_);
  std::vector<Session*> dirty = std::move(dirty_at_hand_);
  // Behind what is left of the last batch there may be more, of which nobody tells again.
  bool more = !batch.empty();
  if (!more) {
    MutexLock lock(mail_mutex_);
    batch.swap(mail_);
  }
  read_clock();
  size_t ends_left = kMaxEndsByMailPerTurn;
  takes_mail_ = true;
  while (next_mail_ != batch.size() && ends_left != 0) {
    Mail mail = std::move(batch[next_mail_++]);
    if (mail.is_end()) --ends_left;
    Session* session = mail.to->session();
    if (session == nullptr) continue;
    session->take_mail(mail);
    if (session->places.dirty) continue;
    session->places.dirty = true;
    dirty.push_back(session);
  }
  takes_mail_ = false;
  for (Session* session : dirty) {
    session->places.dirty = false;
    session->write_out();
  }
  dirty.clear();
  if (next_mail_ == batch.size()) {
    batch.clear();
    next_mail_ = 0;
  } else {
    more = true;
  }
  if (more) signal(kMailWaits);
  mail_at_hand_ = std::move(batch);
  dirty_at_hand_ = std::move(dirty);
}

// --- The journal ---

bool IoThread::journal_congested() const {
  const GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
  return journal != nullptr && journal->pressing_bytes() > state_.limits.journal_buffer_bytes.load(
                                                               std::memory_order_relaxed);
}

void IoThread::add_gated(Session& session) {
  if (session.places.gated) return;
  session.places.gated = true;
  if (takes_mail_) {
    mailed_.push_back(&session);
  } else {
    gated_.push_back(&session);
  }
}

void IoThread::add_continuing(Session& session) {
  if (session.places.continuing) return;
  session.places.continuing = true;
  continuing_.push_back(&session);
}

void IoThread::add_paused(Session& session) {
  if (session.places.paused) return;
  session.places.paused = true;
  paused_.push_back(&session);
  request_end_of_turn();
}

void IoThread::durable_moved() { signal(kDurableMoved); }

void IoThread::when_durable(Lsn gate, std::function<void(bool durable)> then) {
  if (gate <= durable_lsn()) return then(true);
  request_end_of_turn();
  durable_waits_.push_back({gate, std::move(then)});
}

void IoThread::tell_durable() {
  const Lsn durable = durable_lsn();
  std::vector<DurableWait> waits = std::move(durable_waits_);
  durable_waits_.clear();
  for (DurableWait& wait : waits) {
    if (wait.gate > durable) {
      durable_waits_.push_back(std::move(wait));
    } else {
      wait.then(true);
      handlers_wait_ = true;  // it may have begun something on the context
    }
  }
}

void IoThread::write_gated() {
  if (!durable_waits_.empty()) tell_durable();
  writes_wait_ = false;
  if (gated_.empty() && mailed_.empty()) return;
  std::vector<Session*> waiting = std::move(gated_at_hand_);
  waiting.swap(gated_);
  read_clock();
  for (Session* session : waiting) session->places.gated = false;
  for (Session* session : waiting) {
    session->write_out();
    if (session->output().is_gated()) add_gated(*session);
  }
  waiting.clear();
  gated_at_hand_ = std::move(waiting);
  write_mailed();
}

// One sync may release what thousands of connections have got by mail. These are written for a part
// of the turn only, and after those that have asked for something themselves.
void IoThread::write_mailed() {
  const size_t count = mailed_.size();
  const int64_t end_us = count < kWritesPerLook ? 0 : Clocks::steady_us() + kMaxMailWritingUs;
  // A session may run a script, which polls, which comes here again.
  for (size_t i = 1; i <= count && !mailed_.empty(); ++i) {
    Session* session = mailed_.front();
    // Those behind it wait for the journal as well.
    if (!session->output().is_released(durable_lsn())) return;
    mailed_.pop_front();
    session->places.gated = false;
    session->write_out();
    if (session->output().is_gated() && !session->places.gated) {
      session->places.gated = true;
      mailed_.push_back(session);
    }
    if (i % kWritesPerLook != 0 || Clocks::steady_us() < end_us) continue;
    writes_wait_ = i != count;
    return;
  }
}

void IoThread::resume_paused() {
  if (paused_.empty()) return;
  if (journal_congested()) {
    paused_timer_.expires_after(kPausedRetry);
    paused_timer_.async_wait([this](const error_code& error) {
      if (!error) resume_paused();
    });
    return;
  }
  std::vector<Session*> paused = std::move(paused_);
  paused_.clear();
  for (Session* session : paused) session->places.paused = false;
  for (Session* session : paused) {
    if (!session->closed()) session->resume();
  }
}

void IoThread::journal_failed() {
  post([this] {
    for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i]->on_journal_failed();
    for (DurableWait& wait : std::exchange(durable_waits_, {})) wait.then(false);
  });
}

void IoThread::pause_changed() {
  post([this] {
    for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i]->on_pause_changed();
  });
}

void IoThread::after_batch() { check_due(); }

void IoThread::check_due() {
  // What this thread has made due and what DueTimer::arm() reads there: one of them sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const DueTimes due = engine().next_due();
  if (due.wall_ms >= state_.armed_due_ms.load(std::memory_order_relaxed) &&
      due.queue_ms >= state_.armed_due_queue_ms.load(std::memory_order_relaxed) &&
      due.steady_ms >= state_.armed_due_steady_ms.load(std::memory_order_relaxed)) {
    return;
  }
  state_.armed_due_ms.store(due.wall_ms, std::memory_order_relaxed);
  state_.armed_due_queue_ms.store(due.queue_ms, std::memory_order_relaxed);
  state_.armed_due_steady_ms.store(due.steady_ms, std::memory_order_relaxed);
  state_.wake_timer();
}

// --- Timers ---

void IoThread::add_timeout(int64_t at_ms, Session& session) {
  timeouts_.emplace(at_ms, &session);
  state_.timed_clients.fetch_add(1, std::memory_order_relaxed);
  if (at_ms < timeout_armed_ms_) arm_timeouts();
}

void IoThread::remove_timeout(int64_t at_ms, Session& session) {
  if (timeouts_.erase({at_ms, &session}) != 0) {
    state_.timed_clients.fetch_sub(1, std::memory_order_relaxed);
  }
}

void IoThread::arm_timeouts() {
  timeout_armed_ms_ = timeouts_.empty() ? kNeverMs : timeouts_.begin()->first;
  if (timeouts_.empty()) return;
  // A day at a time: far deadlines would overflow the clock.
  const int64_t wait_ms = std::min<int64_t>(timeout_armed_ms_ - Clocks::steady_ms(), 86'400'000);
  timeout_timer_.expires_after(std::chrono::milliseconds(std::max<int64_t>(wait_ms, 0)));
  timeout_timer_.async_wait([this](const error_code& error) {
    if (!error) on_timeouts();
  });
}

void IoThread::on_timeouts() {
  if (depth_ != 0) return;  // after_nested() comes back to it
  read_clock();
  const int64_t now_ms = Clocks::steady_ms();
  for (size_t i = 0; i < kMaxTimeoutsPerTurn; ++i) {
    if (timeouts_.empty() || timeouts_.begin()->first > now_ms) break;
    Session* session = timeouts_.begin()->second;
    timeouts_.erase(timeouts_.begin());
    state_.timed_clients.fetch_sub(1, std::memory_order_relaxed);
    session->on_block_timeout();
  }
  arm_timeouts();
}

void IoThread::need_housekeeping() {
  if (housekeeping_) return;
  housekeeping_ = true;
  housekeeping_timer_.expires_after(kHousekeepingInterval);
  housekeeping_timer_.async_wait([this](const error_code& error) {
    if (!error) housekeep();
  });
}

void IoThread::housekeep() {
  housekeeping_ = false;
  if (depth_ != 0) {
    need_housekeeping();
    return;
  }
  read_clock();  // the end of a session may change data
  const int64_t now_ms = now_steady_ms();
  for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i]->check_time_limits(now_ms);
  if (strangers_->empty()) return;
  need_housekeeping();
  const uint64_t half = state_.limits.max_clients.load(std::memory_order_relaxed) / 2;
  strangers_->close_silent(kStrangerPatienceMs, [this, half] {
    return state_.connected_clients.load(std::memory_order_relaxed) > half;
  });
}

// --- Scripts that run for too long ---

void IoThread::poll_nested() {
  ++depth_;
  if (levels_.size() == depth_) add_level();
  turn(false);
  write_gated();  // the script's caller waits, but nobody else shall
  --depth_;
  nested_polled_ = true;
}

void IoThread::run_outermost(std::function<void()> task) {
  if (depth_ == 0) return task();
  outermost_tasks_.push_back(std::move(task));
}

void IoThread::close_later(Session& session) {
  session.places.to_close = true;
  to_close_.push_back(&session);
}

bool IoThread::may_close_now() {
  return to_close_.empty() && closed_at_once_++ < kMinClosesPerTurn;
}

void IoThread::close_ended() {
  closed_at_once_ = 0;
  const size_t least = kMinClosesPerTurn + std::exchange(opened_, 0);
  if (to_close_.empty()) return;
  const int64_t end_us = Clocks::steady_us() + kMaxClosingUs;
  for (size_t i = 0; !to_close_.empty(); ++i) {
    if (i >= least && Clocks::steady_us() >= end_us) return;
    Session& session = *to_close_.front();
    to_close_.pop_front();
    session.places.to_close = false;
    session.close();
  }
}

// What a nested poll has put off, when the command that polled is over.
void IoThread::after_nested() {
  nested_polled_ = false;
  for (const auto& task : std::exchange(outermost_tasks_, {})) task();
  handlers_wait_ = true;
  drain_mail();
  on_timeouts();
}

}  // namespace sluice
