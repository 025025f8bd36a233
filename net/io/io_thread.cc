#include "net/io/io_thread.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "net/group/serving_gate.h"
#include "net/io/session.h"
#include "net/io/strangers.h"

namespace sluice {

namespace {

thread_local IoThread* current_thread = nullptr;

constexpr size_t kMaxEventsPerTurn = 256;

}  // namespace

IoThread::IoThread(ServerState& state, unsigned index, bool hold_shards)
    : state_(state),
      index_(index),
      signals_(*this, sockets_.poller()),
      tasks_(signals_),
      executor_(state.asio.context(), tasks_),
      clock_(state.clocks),
      levels_(*state.engine, hold_shards),
      gate_(state, clock_, signals_, executor_),
      mailbox_(signals_, gate_),
      sessions_(state, gate_),
      strangers_(std::make_unique<Strangers<Session>>(*this)),
      timeouts_(*this),
      housekeeping_(*this) {}

IoThread::~IoThread() { CHECK(!thread_.joinable()); }

IoThread* IoThread::current() { return current_thread; }

// --- Life ---

void IoThread::start() {
  thread_ = Thread("sluice-io-" + std::to_string(index_), [this] { run(); });
}

void IoThread::run() {
  current_thread = this;
  while (!stop_wanted_) {
    turn(!has_work());
    gate_.end_turn();
    if (nested_polled_) after_nested();
    sessions_.close_ended();
    sessions_.sweep();
  }
  // Tasks that did not fit into the last turn run below; no session may begin there.
  stopping_ = true;
  // Here and not in the destructor: sessions notify the engine, which must still be intact.
  sessions_.for_each([](Session& session) { session.close(); });
  while (sessions_.some_to_close()) sessions_.close_ended();
  sockets_.run({});  // clears the list of sessions that wanted to continue
  sessions_.sweep();
  gate_.forget_waits();
  for (const auto& guest : guests_) guest->close_all();
  // What was cancelled has handlers, which release what they hold.
  tasks_.finish(state_.asio.context());
  CHECK(sessions_.count() == 0);
  current_thread = nullptr;
  ended_.store(true, std::memory_order_release);
}

void IoThread::begin_stop() {
  post([this] {
    stopping_ = true;
    sessions_.for_each([](Session& session) { session.begin_stop(); });
    for (const auto& guest : guests_) guest->begin_stop();
  });
}

void IoThread::join() {
  if (thread_.joinable()) thread_.join();
}

// --- Turns ---

bool IoThread::has_work() const {
  return sockets_.has_continuing() || tasks_.expected() || gate_.has_work() ||
         sessions_.some_to_close() || signals_.any();
}

// A whole turn except its end. Also run for a polling script.
void IoThread::turn(bool block) {
  std::array<epoll_event, kMaxEventsPerTurn> events;
  const size_t count = sockets_.poller().wait(events, block);
  // Replies released by a sync come first: their clients may join the next sync.
  take_signals();
  sockets_.run({events.data(), count});
  tasks_.run();
}

void IoThread::take_signals() {
  const uint32_t signals = signals_.take();
  if ((signals & ThreadSignals::kStop) != 0) stop_wanted_ = true;
  if ((signals & ThreadSignals::kTaskPosted) != 0) tasks_.expect();
  if ((signals & ThreadSignals::kDurableMoved) != 0) gate_.on_durable_moved();
  if ((signals & ThreadSignals::kMailWaits) != 0) deliver_mail();
}

void IoThread::deliver_mail() {
  if (levels_.nested()) return;  // after_nested() catches up on it
  clock_.read();
  mailbox_.deliver();
}

// --- Connections ---

void IoThread::adopt(int fd, Endpoints endpoints) {
  post([this, fd, moved = std::move(endpoints)]() mutable {
    if (stopping_) {
      ::close(fd);
      state_.connected_clients.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    Session& session = sessions_.add(std::make_unique<Session>(*this, fd, std::move(moved)));
    if (state_.limits.idle_timeout_s.load(std::memory_order_relaxed) != 0) housekeeping_.need();
    session.start();
  });
}

void IoThread::journal_failed() {
  post([this] {
    sessions_.for_each([](Session& session) { session.on_journal_failed(); });
    gate_.on_failed();
  });
}

bool IoThread::passes_gate() {
  const int64_t now_ms = Clocks::boot_ms();
  if (state_.gate->is_open(now_ms)) return true;
  const int64_t left_ms = state_.gate->left_ms(now_ms);
  if (left_ms != 0) {
    engine().pause.hold(Hold::kJournal, clock_.times().steady_ms + left_ms);
    state_.gate->begin_wait(now_ms);
  }
  return false;
}

void IoThread::pause_changed() {
  post([this] { sessions_.for_each([](Session& session) { session.on_pause_changed(); }); });
}

void IoThread::rights_changed() {
  post([this] {
    levels_.run_outermost(
        [this] { sessions_.for_each([](Session& session) { session.on_rights_changed(); }); });
  });
}

void IoThread::after_batch() {
  // Orders what this thread has made due against what DueTimer::arm() reads: one of them sees the
  // other.
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

void IoThread::run_between_batches(const std::function<void(Execution&)>& work) {
  Execution& execution = levels_.execution();
  clock_.read();
  execution.set_times(clock_.times());
  work(execution);
  if (execution.finish() > gate_.durable_lsn()) gate_.request_flush();
  after_batch();
}

// --- Scripts that run for too long ---

void IoThread::poll_nested() {
  levels_.enter_nested();
  turn(false);
  gate_.write();  // the script's caller waits, but nobody else should
  levels_.leave_nested();
  nested_polled_ = true;
}

// Does what a nested poll has deferred, after the polling command has ended.
void IoThread::after_nested() {
  nested_polled_ = false;
  levels_.run_put_off();
  deliver_mail();
  timeouts_.run();
}

}  // namespace sluice
