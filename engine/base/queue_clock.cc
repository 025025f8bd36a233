#include "engine/base/queue_clock.h"

#include <algorithm>
#include <cstdlib>

namespace sluice {

namespace {

int64_t rounded_ms(int64_t us) { return (us >= 0 ? us + 500 : us - 500) / 1000; }

}  // namespace

void QueueClock::outgrow(int64_t journaled_ms) {
  if (journaled_ms > latest_ms()) latest_ms_.store(journaled_ms, std::memory_order_release);
}

void QueueClock::go_past(int64_t journaled_ms, int64_t now_ms) {
  if (journaled_ms < now_ms) return;
  int64_t latest = latest_ms_.load(std::memory_order_relaxed);
  while (latest < journaled_ms &&
         !latest_ms_.compare_exchange_weak(latest, journaled_ms, std::memory_order_acq_rel)) {
  }
  offset_us_.fetch_add((journaled_ms + 1 - now_ms) * 1000, std::memory_order_acq_rel);
}

void QueueClock::start(const Reading& now) {
  // Begins after every journaled time, so that names made of times stay unique.
  const int64_t begin_us = std::max(now.wall_us, (latest_ms() + 1) * 1000);
  boot_us_ = now.boot_us;
  slept_us_ = now.boot_us - now.steady_us;
  followed_us_.store(now.steady_us, std::memory_order_relaxed);
  offset_us_.store(begin_us - now.steady_us, std::memory_order_release);
  follow(now);
}

int64_t QueueClock::now_ms(int64_t steady_us) {
  const int64_t ms = (steady_us + offset_us_.load(std::memory_order_acquire)) / 1000;
  int64_t latest = latest_ms_.load(std::memory_order_relaxed);
  // Another thread may have read a later time, or changed the offset meanwhile.
  while (latest < ms) {
    if (latest_ms_.compare_exchange_weak(latest, ms, std::memory_order_acq_rel)) return ms;
  }
  return latest;
}

bool QueueClock::must_follow(int64_t steady_us, int64_t wall_ms, int64_t queue_ms) const {
  return steady_us - followed_us_.load(std::memory_order_relaxed) >= kFollowUs ||
         std::abs(queue_ms - wall_ms - ahead_ms()) > kSteppedMs;
}

int64_t QueueClock::follow(const Reading& now) {
  const auto ahead_us = [&] {
    return now.steady_us + offset_us_.load(std::memory_order_relaxed) - now.wall_us;
  };
  const auto ahead_of = [](int64_t us) {
    const int64_t ms = rounded_ms(us);
    return std::abs(ms) < kSameMs ? 0 : ms;
  };
  // Another thread is following at this moment, with an equally good reading.
  if (following_.exchange(true, std::memory_order_acquire)) return ahead_of(ahead_us());
  const int64_t passed_us = std::max<int64_t>(0, now.boot_us - boot_us_);
  boot_us_ = std::max(boot_us_, now.boot_us);
  int64_t change_us = 0;
  if (const int64_t slept_us = now.boot_us - now.steady_us - slept_us_;
      slept_us >= kShortestSleepUs) {
    slept_us_ += slept_us;
    change_us += slept_us;
  }
  const int64_t most_us = std::min(passed_us, kLongestFollowedUs) / kFollowShare;
  change_us -= std::clamp(ahead_us() + change_us, -most_us, most_us);
  offset_us_.fetch_add(change_us, std::memory_order_acq_rel);
  const int64_t ahead_ms = ahead_of(ahead_us());
  ahead_ms_.store(ahead_ms, std::memory_order_relaxed);
  followed_us_.store(now.steady_us, std::memory_order_relaxed);
  following_.store(false, std::memory_order_release);
  return ahead_ms;
}

}  // namespace sluice
