// TrafficStats: the number of requests and bytes, in total and per second, for INFO stats.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/mutex.h"
#include "net/server/server_shared.h"

namespace sluice {

class TrafficStats {
 public:
  struct Totals {
    uint64_t operations = 0;
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
    int64_t at_ms = 0;
  };
  // Per second; sampled by the control thread.
  struct Rates {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> input_bytes{0};
    std::atomic<uint64_t> output_bytes{0};
  };

  explicit TrafficStats(ServerShared& shared) : shared_(shared) {}

  // --- Any thread ---
  // Since the last reset().
  Totals totals() const;
  const Rates& rates() const { return rates_; }
  uint64_t sum(std::atomic<uint64_t> IoThread::Counters::*counter) const;
  void reset();

  // --- The control thread ---
  void begin_sampling() { sampled_ = totals_ever(); }
  void sample();

 private:
  Totals totals_ever() const;

  ServerShared& shared_;
  Rates rates_;
  Totals sampled_;
  // Values that CONFIG RESETSTAT subtracts from counters that only grow.
  mutable Mutex mutex_;
  Totals reset_ GUARDED_BY(mutex_);
};

}  // namespace sluice
