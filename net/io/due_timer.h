// DueTimer: one steady timer, on I/O thread 0, armed for the engine's earliest due time (expiring
// keys; delays, leases and the rest of queues).
//
// A thread that makes something due earlier calls wake(); everything else happens on the I/O
// thread. The timer is not armed while nothing is due.
#pragma once

#include "net/io/asio_types.h"
#include "net/io/io_thread.h"

namespace sluice {

class DueTimer {
 public:
  explicit DueTimer(IoThread& thread);

  // Any thread.
  void wake();

 private:
  void arm();
  void run();

  IoThread& thread_;
  SteadyTimer timer_;
};

}  // namespace sluice
