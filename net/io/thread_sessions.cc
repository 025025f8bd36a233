#include "net/io/thread_sessions.h"

#include <utility>

#include "net/io/journal_gate.h"
#include "net/io/session.h"
#include "net/process/clocks.h"

namespace sluice {

namespace {

// Time limit for closing ended connections in a turn. At least as many as were opened are closed,
// and this number, so that they do not pile up.
constexpr int64_t kMaxClosingUs = 500;
constexpr size_t kMinClosesPerTurn = 8;

}  // namespace

ThreadSessions::ThreadSessions(ServerState& state, JournalGate& gate)
    : state_(state), gate_(gate) {}

ThreadSessions::~ThreadSessions() { CHECK(sessions_.empty()); }

Session& ThreadSessions::add(std::unique_ptr<Session> session) {
  {
    MutexLock lock(mutex_);
    ports_.insert(session->port());
  }
  session->places.index = sessions_.size();
  sessions_.push_back(std::move(session));
  ++opened_;
  count_.store(sessions_.size(), std::memory_order_release);
  return *sessions_.back();
}

std::vector<std::shared_ptr<SessionPort>> ThreadSessions::ports() const {
  MutexLock lock(mutex_);
  return {ports_.begin(), ports_.end()};
}

void ThreadSessions::close_later(Session& session) {
  session.places.to_close = true;
  to_close_.push_back(&session);
}

bool ThreadSessions::may_close_now() {
  return to_close_.empty() && closed_at_once_++ < kMinClosesPerTurn;
}

void ThreadSessions::close_ended() {
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

void ThreadSessions::bury(Session& session) {
  graveyard_.push_back(&session);
  state_.connected_clients.fetch_sub(1, std::memory_order_relaxed);
  gate_.forget(session);
  MutexLock lock(mutex_);
  ports_.erase(session.port());
}

void ThreadSessions::sweep() {
  if (graveyard_.empty()) return;
  std::erase_if(graveyard_, [this](const Session* session) {
    if (session->places.continuing || session->places.to_close) return false;
    const size_t index = session->places.index;
    std::swap(sessions_[index], sessions_.back());
    sessions_[index]->places.index = index;
    sessions_.pop_back();
    return true;
  });
  count_.store(sessions_.size(), std::memory_order_release);
}

}  // namespace sluice
