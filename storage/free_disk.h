// FreeDisk: the free space of the disk with the log, and whether it is less than the reserve
// (min-free-disk), below which commands that need room are refused.
//
// Threads: one probes at a time; all else is thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "storage/log.h"

namespace sluice {

class FreeDisk {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kTellAgain = std::chrono::minutes(1);

  // `log` may be null: then it is never probed. `min_bytes` 0: not checked. Both run on the thread
  // that probes: `on_below` when below_min() has changed, `tell` when the server's log is to say
  // so. On a disk that changes to and fro that is once a minute.
  FreeDisk(const Log* log, uint64_t min_bytes, std::function<void(bool)> on_below,
           std::function<void(const FreeDisk&)> tell)
      : log_(log), on_below_(std::move(on_below)), tell_(std::move(tell)), min_bytes_(min_bytes) {}

  bool below_min() const { return below_min_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t min_bytes() const { return min_bytes_.load(std::memory_order_relaxed); }
  void set_min_bytes(uint64_t bytes) { min_bytes_ = bytes; }

  // `written`: the bytes that the journal has written so far.
  void probe(uint64_t written, Clock::time_point now);
  // Much has been written since the last probe. So growing writes are refused before the reserve is
  // used up.
  bool is_due(uint64_t written) const;

 private:
  void tell(bool below, Clock::time_point now);

  const Log* const log_;
  const std::function<void(bool)> on_below_;
  const std::function<void(const FreeDisk&)> tell_;
  std::atomic<bool> below_min_{false};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> min_bytes_;
  uint64_t probed_at_ = 0;  // `written` then
  bool told_below_ = false;
  Clock::time_point tell_again_;
};

}  // namespace sluice
