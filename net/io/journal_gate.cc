#include "net/io/journal_gate.h"

#include <chrono>
#include <utility>

#include "net/io/session.h"
#include "net/io/thread_signals.h"
#include "net/io/turn_clock.h"

namespace sluice {

namespace {

// Time limit for writing the mail released by a sync; the clock is read after this many writes.
constexpr int64_t kMaxMailWritingUs = 500;
constexpr size_t kWritesPerLook = 16;
constexpr auto kPausedRetry = std::chrono::milliseconds(2);

}  // namespace

JournalGate::JournalGate(ServerState& state, TurnClock& clock, ThreadSignals& signals,
                         const IoExecutor& executor)
    : state_(state), clock_(clock), signals_(signals), paused_timer_(executor) {}

bool JournalGate::congested() const {
  const GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
  return journal != nullptr && journal->pressing_bytes() > state_.limits.journal_buffer_bytes.load(
                                                               std::memory_order_relaxed);
}

void JournalGate::add_gated(Session& session) {
  if (session.places.gated) return;
  session.places.gated = true;
  if (takes_mail_) {
    mailed_.push_back(&session);
  } else {
    gated_.push_back(&session);
  }
}

void JournalGate::add_paused(Session& session) {
  if (session.places.paused) return;
  session.places.paused = true;
  paused_.push_back(&session);
  request_flush();
}

void JournalGate::forget(Session& session) {
  if (session.places.gated) std::erase(gated_, &session);
  if (session.places.gated) std::erase(mailed_, &session);
  if (session.places.paused) std::erase(paused_, &session);
}

void JournalGate::when_durable(Lsn gate, std::function<void(bool durable)> then) {
  if (gate <= durable_lsn()) return then(true);
  request_flush();
  durable_waits_.push_back({gate, std::move(then)});
}

void JournalGate::tell_durable() {
  const Lsn durable = durable_lsn();
  std::vector<DurableWait> waits = std::exchange(durable_waits_, {});
  for (DurableWait& wait : waits) {
    if (wait.gate > durable) {
      durable_waits_.push_back(std::move(wait));
    } else {
      wait.then(true);
    }
  }
}

void JournalGate::end_turn() {
  if (!flush_wanted_) return write();
  flush_wanted_ = false;
  GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
  // A failure is reported by IoThread::journal_failed().
  if (journal != nullptr && !journal->flush()) return;
  // What the flush itself has made durable is written now.
  signals_.drop(ThreadSignals::kDurableMoved);
  on_durable_moved();
}

void JournalGate::on_durable_moved() {
  write();
  resume_paused();
}

void JournalGate::on_failed() {
  for (DurableWait& wait : std::exchange(durable_waits_, {})) wait.then(false);
}

void JournalGate::write() {
  if (!durable_waits_.empty()) tell_durable();
  writes_wait_ = false;
  if (gated_.empty() && mailed_.empty()) return;
  std::vector<Session*> waiting = std::move(at_hand_);
  waiting.swap(gated_);
  clock_.read();
  for (Session* session : waiting) session->places.gated = false;
  for (Session* session : waiting) {
    session->write_out();
    if (session->output().is_gated()) add_gated(*session);
  }
  waiting.clear();
  at_hand_ = std::move(waiting);
  write_mailed();
}

// One sync may release mail for thousands of connections. It is written for a part of the turn
// only, and after the replies to the turn's own requests.
void JournalGate::write_mailed() {
  const size_t count = mailed_.size();
  const int64_t end_us = count < kWritesPerLook ? 0 : Clocks::steady_us() + kMaxMailWritingUs;
  // A session may run a script that polls, which re-enters this function.
  for (size_t i = 1; i <= count && !mailed_.empty(); ++i) {
    Session* session = mailed_.front();
    // The sessions after it are waiting for the journal as well.
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

void JournalGate::resume_paused() {
  if (paused_.empty()) return;
  if (congested()) {
    paused_timer_.expires_after(kPausedRetry);
    paused_timer_.async_wait([this](const error_code& error) {
      if (!error) resume_paused();
    });
    return;
  }
  const std::vector<Session*> paused = std::exchange(paused_, {});
  for (Session* session : paused) session->places.paused = false;
  for (Session* session : paused) {
    if (!session->closed()) session->resume();
  }
}

}  // namespace sluice
