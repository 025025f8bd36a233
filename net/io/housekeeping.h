// Housekeeping: once a second, while needed, ends those sessions of an I/O thread that are over a
// limit of their output, idle for too long, late with a TLS handshake, or strangers. Used by the
// I/O thread.
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
