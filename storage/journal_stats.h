// JournalStats: what a journal has written and synced, and JournalMeter, which counts it.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "engine/base/mutex.h"

namespace sluice {

struct JournalStats {
  static constexpr size_t kSyncBuckets = 24;  // bucket i: less than 2^i microseconds

  uint64_t units = 0;
  uint64_t commits = 0;
  uint64_t commit_bytes = 0;
  uint64_t syncs = 0;
  uint64_t sync_us_total = 0;
  uint64_t sync_us_max = 0;
  uint64_t last_commit_units = 0;
  uint64_t last_commit_bytes = 0;
  std::array<uint64_t, kSyncBuckets> sync_us{};
};

class JournalMeter {
 public:
  void count_commit(size_t bytes, uint64_t units);
  void count_sync(std::chrono::steady_clock::duration took);
  JournalStats stats() const;
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // A moving mean; 0: there was no sync.
  uint64_t mean_sync_us() const { return mean_sync_us_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> mean_sync_us_{0};
  mutable Mutex mutex_;
  JournalStats stats_ GUARDED_BY(mutex_);
};

}  // namespace sluice
