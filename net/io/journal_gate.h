// JournalGate: an I/O thread's use of the journal: it flushes the journal once for all sessions of
// a turn, sends replies whose changes are durable, and stops sessions from reading while too much
// is waiting to be written.
//
// Used by the I/O thread. Writing replies last, at the end of a turn, lets a client with several
// connections here wake up once for many replies.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "net/io/asio_types.h"
#include "net/io/server_state.h"

namespace sluice {

class Session;
class ThreadSignals;
class TurnClock;

class JournalGate {
 public:
  JournalGate(ServerState& state, TurnClock& clock, ThreadSignals& signals,
              const IoExecutor& executor);

  Lsn durable_lsn() const {
    const GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
    return journal != nullptr ? journal->durable_lsn() : ~Lsn{0};
  }
  // Too much is unwritten: sessions stop reading, and are resumed later.
  bool congested() const;

  // The session has replies that wait for the end of the turn or for the journal.
  void add_gated(Session& session);
  // Sessions added from now on were given something by mail.
  void begin_mail() { takes_mail_ = true; }
  void end_mail() { takes_mail_ = false; }
  void add_paused(Session& session);
  void forget(Session& session);

  // Requests a flush, once, after all sessions of this turn have run.
  void request_flush() { flush_wanted_ = true; }
  // Calls `then` when the journal has made `gate` durable (true) or has failed (false): at once if
  // that is already so, otherwise at the end of a turn. For rare uses; sessions have a way of their
  // own.
  void when_durable(Lsn gate, std::function<void(bool durable)> then);

  // There is work for the next turn.
  bool has_work() const { return flush_wanted_ || writes_wait_; }
  void end_turn();
  // The durable lsn has moved.
  void on_durable_moved();
  // Writes the replies that may be sent.
  void write();
  void on_failed();
  void forget_waits() { durable_waits_.clear(); }

 private:
  struct DurableWait {
    Lsn gate;
    std::function<void(bool durable)> then;
  };

  void write_mailed();
  void tell_durable();
  void resume_paused();

  ServerState& state_;
  TurnClock& clock_;
  ThreadSignals& signals_;
  std::vector<Session*> gated_;
  // The same for sessions that were given something by mail: Session::Places::gated covers both.
  std::deque<Session*> mailed_;
  std::vector<Session*> at_hand_;  // kept for its capacity
  bool takes_mail_ = false;
  bool writes_wait_ = false;  // more of mailed_ may be written than the turn has written
  bool flush_wanted_ = false;
  std::vector<Session*> paused_;
  SteadyTimer paused_timer_;
  std::vector<DurableWait> durable_waits_;
};

}  // namespace sluice
