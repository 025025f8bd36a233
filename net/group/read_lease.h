// ReadLease: until when the primary may answer reads and begin writes without asking the replicated
// log.
//
// Nobody takes the epoch before it has heard nothing for the failover timeout (the holder's, which
// the epoch tells, if its own is shorter). What it may have heard was sent no earlier than the
// newest committed append or beat was sent first, so the lease lasts nine tenths of the timeout
// from that moment: clocks may run ten percent apart. Writes do not depend on it, the epoch fences
// them.
//
// Times are milliseconds of CLOCK_BOOTTIME, which counts suspension. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class ReadLease {
 public:
  explicit ReadLease(int64_t failover_timeout_ms) : length_ms_(failover_timeout_ms * 9 / 10) {}

  // An append or a beat of this epoch is committed; its first try was sent at `sent_ms`. Repeats
  // of older ones, trims, and what a failed compare has found prove nothing and must not come here.
  void extend(int64_t sent_ms) {
    const int64_t until_ms = sent_ms + length_ms_;
    int64_t old_ms = until_ms_.load(std::memory_order_relaxed);
    while (old_ms < until_ms &&
           !until_ms_.compare_exchange_weak(old_ms, until_ms, std::memory_order_release)) {
    }
  }
  // The node resigns, or its epoch is over. Nothing extends it after that.
  void end() { ended_.store(true, std::memory_order_release); }
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

  bool holds(int64_t now_ms) const {
    return !has_ended() && now_ms < until_ms_.load(std::memory_order_acquire);
  }
  // 0: over, or never begun.
  int64_t remaining_ms(int64_t now_ms) const {
    return holds(now_ms) ? until_ms_.load(std::memory_order_relaxed) - now_ms : 0;
  }

 private:
  const int64_t length_ms_;
  std::atomic<int64_t> until_ms_{INT64_MIN};
  std::atomic<bool> ended_{false};
};

}  // namespace sluice
