// Mailbox: what other threads send to the sessions of an I/O thread.
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
  // The I/O thread, where no command polls: delivers a turn's share.
  void deliver();

 private:
  ThreadSignals& signals_;
  JournalGate& gate_;
  Mutex mutex_;
  std::vector<Mail> mail_ GUARDED_BY(mutex_);
  std::vector<Mail> at_hand_;            // being delivered; its memory goes with each
  size_t next_ = 0;                      // of at_hand_
  std::vector<Session*> dirty_at_hand_;  // kept for its capacity
};

}  // namespace sluice
