// TurnClock: the current times of an I/O thread, read once for each batch of requests. Used by the
// I/O thread.
#pragma once

#include <cstdint>

#include "net/process/clocks.h"

namespace sluice {

class TurnClock {
 public:
  explicit TurnClock(Clocks& clocks) : clocks_(clocks) {}

  // Reads the clocks and returns the new times.
  const Times& read() {
    times_ = clocks_.read();
    return times_;
  }
  const Times& times() const { return times_; }
  // The same moment by the steady clock, which also runs before the engine serves.
  int64_t steady_ms() const { return clocks_.steady_ms_at(times_); }

 private:
  Clocks& clocks_;
  Times times_;
};

}  // namespace sluice
