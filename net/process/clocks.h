// Clocks: reads the clocks of the machine for the engine, which reads none. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/queue_clock.h"
#include "engine/base/times.h"

namespace sluice {

class Clocks {
 public:
  // The engine begins to serve: leases count from now on, and queue time runs. `queue_clock`
  // outlives this.
  void start(QueueClock& queue_clock);
  // What a batch of requests goes by. Before start(): the wall clock alone.
  Times read();
  // The steady clock at that moment, in milliseconds since some moment before the process began.
  int64_t steady_ms_at(const Times& times) const;

  // The steady clock, since some moment before the process began: for durations.
  static int64_t steady_us();
  static int64_t steady_ms() { return steady_us() / 1000; }

 private:
  void tell_difference(int64_t ahead_ms);

  QueueClock* queue_clock_ = nullptr;
  // Clocks that were read within this time are taken for one reading. Set by start().
  int64_t moment_us_ = 0;
  // By the steady clock; 0: it does not serve yet, and what start() sets is not to be looked at.
  std::atomic<int64_t> serving_since_ms_{0};
  // The difference of queue time and the wall clock that the log has told last; 0: none.
  std::atomic<int64_t> told_ahead_ms_{0};
};

}  // namespace sluice
