// ThreadSessions: the sessions of one I/O thread: owns them, lists them for other threads, and
// closes and destroys them when nothing refers to them any more.
//
// Used by the I/O thread, except what is under "Any thread".
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "engine/base/mutex.h"
#include "net/io/session_port.h"

namespace sluice {

class JournalGate;
class Session;
struct ServerState;

class ThreadSessions {
 public:
  ThreadSessions(ServerState& state, JournalGate& gate);
  ~ThreadSessions();

  Session& add(std::unique_ptr<Session> session);
  // Calls `visit` for each; more may be added during the call.
  template <class Visit>
  void for_each(Visit visit) {
    for (size_t i = 0; i < sessions_.size(); ++i) visit(*sessions_[i]);
  }

  // --- Closing ---
  // The session ends in this turn or a later one, when no command polls.
  void close_later(Session& session);
  // The first few sessions that end in a turn need not wait for its end.
  bool may_close_now();
  bool some_to_close() const { return !to_close_.empty(); }
  void close_ended();
  // The session has ended.
  void bury(Session& session);
  // At the end of a turn nothing refers to ended sessions any more.
  void sweep();

  // --- Any thread ---
  size_t count() const { return count_.load(std::memory_order_acquire); }
  // In no particular order.
  std::vector<std::shared_ptr<SessionPort>> ports() const;

 private:
  ServerState& state_;
  JournalGate& gate_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> graveyard_;
  std::deque<Session*> to_close_;
  // New connections since the last close_ended().
  size_t opened_ = 0;
  size_t closed_at_once_ = 0;
  std::atomic<size_t> count_{0};
  mutable Mutex mutex_;
  std::unordered_set<std::shared_ptr<SessionPort>> ports_ GUARDED_BY(mutex_);
};

}  // namespace sluice
