// Housekeeping: once a second, while needed, checks the sessions of an I/O thread that are over a
// soft limit, idle for too long, or strangers. Used by the I/O thread.
#pragma once

#include "net/io/asio_types.h"

namespace sluice {

class IoThread;

class Housekeeping {
 public:
  explicit Housekeeping(IoThread& thread);

  // Called when a session needs these checks.
  void need();

 private:
  void run();

  IoThread& thread_;
  SteadyTimer timer_;
  bool armed_ = false;
};

}  // namespace sluice
