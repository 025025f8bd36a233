// TurnClock: the times of what an I/O thread does now, read once for each batch of requests. The
// I/O thread's.
#pragma once

#include <cstdint>

#include "net/process/clocks.h"

namespace sluice {

class TurnClock {
 public:
  explicit TurnClock(Clocks& clocks) : clocks_(clocks) {}

  // Returns what they are from now on.
  const Times& read() {
    times_ = clocks_.read();
    return times_;
  }
  const Times& times() const { return times_; }
  // The same moment by the steady clock, which goes on before the engine serves, too.
  int64_t steady_ms() const { return clocks_.steady_ms_at(times_); }

 private:
  Clocks& clocks_;
  Times times_;
};

}  // namespace sluice
