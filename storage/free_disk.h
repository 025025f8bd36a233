// FreeDisk: the free space of the disk with the log, and whether it is less than the reserve
// (min-free-disk), below which commands that need room are refused.
//
// Threads: one probes at a time; all else is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "storage/log.h"

namespace sluice {

class FreeDisk {
 public:
  // `log` may be null: then it is never probed. `on_below`: below_min() has changed; runs on the
  // thread that probes. `min_bytes` 0: not checked.
  FreeDisk(const Log* log, uint64_t min_bytes, std::function<void(bool)> on_below)
      : log_(log), on_below_(std::move(on_below)), min_bytes_(min_bytes) {}

  bool below_min() const { return below_min_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t min_bytes() const { return min_bytes_.load(std::memory_order_relaxed); }
  void set_min_bytes(uint64_t bytes) { min_bytes_ = bytes; }

  // `written`: the bytes that the journal has written so far.
  void probe(uint64_t written);
  // The same if much has been written since the last probe. So growing writes are refused before
  // the reserve is used up.
  void probe_often(uint64_t written);

 private:
  const Log* const log_;
  const std::function<void(bool)> on_below_;
  std::atomic<bool> below_min_{false};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> min_bytes_;
  uint64_t probed_at_ = 0;  // `written` then
};

}  // namespace sluice
