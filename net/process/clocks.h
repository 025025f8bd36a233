// Clocks: reads the machine's clocks for the engine, which reads none itself. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/queue_clock.h"
#include "engine/base/times.h"

namespace sluice {

class Clocks {
 public:
  // Called when the engine begins to serve: leases count from now on, and queue time runs.
  // `queue_clock` must outlive this.
  void start(QueueClock& queue_clock);
  // The times to use for a batch of requests. Before start(): the wall clock alone.
  Times read();
  // The steady clock at that moment, in milliseconds since some moment before the process began.
  int64_t steady_ms_at(const Times& times) const;

  // The steady clock, since some moment before the process began: for durations.
  static int64_t steady_us();
  static int64_t steady_ms() { return steady_us() / 1000; }
  // The same with the time that the machine sleeps.
  static int64_t boot_ms();

 private:
  Times times_at(int64_t wall_us, int64_t now_us, int64_t since_ms);
  void tell_difference(int64_t ahead_ms);

  QueueClock* queue_clock_ = nullptr;
  // Clocks read within this time count as one reading. Set by start().
  int64_t moment_us_ = 0;
  // By the steady clock; 0: not serving yet, and what start() sets must not be read.
  std::atomic<int64_t> serving_since_ms_{0};
  // The logged difference of queue time and the wall clock; 0: none.
  std::atomic<int64_t> told_ahead_ms_{0};
};

}  // namespace sluice
