// Housekeeping: once a second, while there is reason to, looks at the sessions of an I/O thread
// that are over a soft limit, idle for too long, or strangers. The I/O thread's.
#pragma once

#include "net/io/asio_types.h"

namespace sluice {

class IoThread;

class Housekeeping {
 public:
  explicit Housekeeping(IoThread& thread);

  // There is reason to.
  void need();

 private:
  void run();

  IoThread& thread_;
  SteadyTimer timer_;
  bool armed_ = false;
};

}  // namespace sluice
