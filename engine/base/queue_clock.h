// QueueClock: queue time, the one clock of all queues of a server. It is monotonic and always
// advances, whatever the wall clock does.
//
// It begins at the wall clock, or just after the greatest time in the journal where that is later.
// From then on it runs with CLOCK_BOOTTIME, which cannot be set and which counts the time that the
// machine sleeps. It follows the wall clock by at most 0.1 % of the time that passes.
//
// It reads no clock itself. Each batch of requests passes the steady clock (now_ms). Every
// kFollowUs a reading of all three clocks at one moment corrects the offset (follow), so a batch
// pays for no further clock. Thread-safe, except for start().
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class QueueClock {
 public:
  // Microseconds, all read at the same moment.
  struct Reading {
    int64_t wall_us = 0;    // CLOCK_REALTIME
    int64_t steady_us = 0;  // CLOCK_MONOTONIC: does not count the time that the machine sleeps
    int64_t boot_us = 0;    // CLOCK_BOOTTIME
  };

  // Makes the clock begin after this time, which the journal holds. Call it before start().
  void outgrow(int64_t journaled_ms);
  // The same for a running clock, which was read as `now_ms`: it continues after that time.
  void go_past(int64_t journaled_ms, int64_t now_ms);
  // Call it before the first now_ms().
  void start(const Reading& now);

  // Queue time at this moment of the steady clock. It is never less than what any thread has been
  // returned, and greater than every time passed to outgrow().
  int64_t now_ms(int64_t steady_us);
  // The greatest time that any thread has been returned.
  int64_t latest_ms() const { return latest_ms_.load(std::memory_order_acquire); }

  // How far queue time is ahead of the wall clock; negative if it is behind. Differences smaller
  // than the error of reading two clocks count as 0, so that displayed times do not flicker.
  int64_t ahead_ms() const { return ahead_ms_.load(std::memory_order_relaxed); }
  // Whether to call follow(): kFollowUs have passed, or the wall clock has been stepped, which
  // shows as a difference other than ahead_ms().
  bool must_follow(int64_t steady_us, int64_t wall_ms, int64_t queue_ms) const;
  // Corrects the clock towards the wall clock. Returns the new ahead_ms().
  int64_t follow(const Reading& now);

 private:
  static constexpr int64_t kFollowUs = 100'000;
  // One call corrects at most 1/kFollowShare of the time that has passed since the last one, and
  // counts at most kLongestFollowedUs of that time, so that a long pause does not cause a large
  // correction.
  static constexpr int64_t kFollowShare = 1000;
  static constexpr int64_t kLongestFollowedUs = 1'000'000;
  // A shorter difference between the clocks is not a sleep of the machine: two clocks are read this
  // far apart.
  static constexpr int64_t kShortestSleepUs = 10'000;
  static constexpr int64_t kSameMs = 10;
  static constexpr int64_t kSteppedMs = 20;

  // What is added to the steady clock to give queue time.
  std::atomic<int64_t> offset_us_{0};
  std::atomic<int64_t> latest_ms_{0};
  std::atomic<int64_t> ahead_ms_{0};
  std::atomic<int64_t> followed_us_{0};  // the steady clock at the last follow()
  // True while a thread is in follow(); it owns the two fields below.
  std::atomic<bool> following_{false};
  int64_t boot_us_ = 0;   // at the last follow()
  int64_t slept_us_ = 0;  // the part of it that the machine slept and that the offset includes
};

}  // namespace sluice
