// Mailbox: messages from other threads to the sessions of an I/O thread.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/mutex.h"
#include "net/io/session_port.h"

namespace sluice {

class JournalGate;
class ThreadSignals;

class Mailbox {
 public:
  Mailbox(ThreadSignals& signals, JournalGate& gate) : signals_(signals), gate_(gate) {}

  // Any thread.
  void send(Mail mail);
  // Called by the I/O thread while no command polls: delivers a turn's share.
  void deliver();

 private:
  ThreadSignals& signals_;
  JournalGate& gate_;
  Mutex mutex_;
  std::vector<Mail> mail_ GUARDED_BY(mutex_);
  std::vector<Mail> at_hand_;            // being delivered; each is freed on delivery
  size_t next_ = 0;                      // index in at_hand_
  std::vector<Session*> dirty_at_hand_;  // kept for its capacity
};

}  // namespace sluice
