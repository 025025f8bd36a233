// QueueClock: queue time, the one clock of all queues of a server. It never goes back and never
// stands still, whatever the wall clock does.
//
// It begins at the wall clock, or just after the greatest time in the journal where that is later.
// From then on it runs with CLOCK_BOOTTIME, which nobody can step and which counts the time that
// the machine sleeps, and follows the wall clock by at most 0.1 % of the time that passes.
//
// It reads no clock itself. Each batch of requests brings the steady clock (now_ms). What else
// there is to know comes with a reading of all three clocks in one moment (follow), every
// kFollowUs, so a batch pays for no further clock. Any thread may call anything at any time but
// start().
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class QueueClock {
 public:
  // Microseconds, all of the same moment.
  struct Reading {
    int64_t wall_us = 0;    // CLOCK_REALTIME
    int64_t steady_us = 0;  // CLOCK_MONOTONIC: stands still while the machine sleeps
    int64_t boot_us = 0;    // CLOCK_BOOTTIME
  };

  // A time in the journal: the clock will begin after it. Before start().
  void outgrow(int64_t journaled_ms);
  // Before the first now_ms().
  void start(const Reading& now);

  // Queue time at this moment of the steady clock. Not less than what any thread has been told, and
  // more than what was outgrown.
  int64_t now_ms(int64_t steady_us);
  // The greatest that any thread has been told.
  int64_t latest_ms() const { return latest_ms_.load(std::memory_order_acquire); }

  // The present difference: how far queue time is ahead of the wall clock; negative: behind. 0
  // where they differ by less than clocks are read apart, so that times that are shown do not
  // flicker.
  int64_t ahead_ms() const { return ahead_ms_.load(std::memory_order_relaxed); }
  // It is time to follow(): for a while it was not done, or the wall clock says something else than
  // the difference makes expect: it has been stepped.
  bool must_follow(int64_t steady_us, int64_t wall_ms, int64_t queue_ms) const;
  // Follows the wall clock. The difference by this reading; ahead_ms() from then on.
  int64_t follow(const Reading& now);

 private:
  static constexpr int64_t kFollowUs = 100'000;
  // Of the time that passes, one part of so many; and of a longer time no more than of this, as
  // what it has been behind is not to be told again.
  static constexpr int64_t kFollowShare = 1000;
  static constexpr int64_t kLongestFollowedUs = 1'000'000;
  // Nobody sleeps for less, and two clocks are read as far apart.
  static constexpr int64_t kShortestSleepUs = 10'000;
  static constexpr int64_t kSameMs = 10;
  static constexpr int64_t kSteppedMs = 20;

  // What is added to the steady clock.
  std::atomic<int64_t> offset_us_{0};
  std::atomic<int64_t> latest_ms_{0};
  std::atomic<int64_t> ahead_ms_{0};
  std::atomic<int64_t> followed_us_{0};  // the steady clock when follow() was last done
  // Held by the one that follows.
  std::atomic<bool> following_{false};
  int64_t boot_us_ = 0;   // at that time
  int64_t slept_us_ = 0;  // of it, the time of sleep that is in the offset
};

}  // namespace sluice
