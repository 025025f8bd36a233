#include "net/process/clocks.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace sluice {

namespace {

// A difference of at least this much is logged, and so is a change of it by this much.
constexpr int64_t kToldDifferenceMs = 60'000;
// Below this the difference counts as over. Drifting clocks stay near one value for hours.
constexpr int64_t kEndedDifferenceMs = 50'000;
// Clocks read within this time are taken to show the same moment. Otherwise the thread was
// preempted in between, or the machine reads its clocks slowly.
constexpr int64_t kOneMomentUs = 200;
constexpr int kTries = 4;
constexpr int kTriesAtStart = 100;

int64_t read_us(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

struct Together {
  QueueClock::Reading reading;
  int64_t took_us = std::numeric_limits<int64_t>::max();
};

// Returns the quickest of several tries; stops early if one takes no longer than `moment_us`.
Together read_together(int tries, int64_t moment_us) {
  Together best;
  for (int i = 0; i < tries && best.took_us > moment_us; ++i) {
    QueueClock::Reading now;
    now.steady_us = read_us(CLOCK_MONOTONIC);
    now.boot_us = read_us(CLOCK_BOOTTIME);
    now.wall_us = read_us(CLOCK_REALTIME);
    const int64_t took_us = read_us(CLOCK_MONOTONIC) - now.steady_us;
    if (took_us < best.took_us) best = {now, took_us};
  }
  return best;
}

}  // namespace

void Clocks::start(QueueClock& queue_clock) {
  const Together now = read_together(kTriesAtStart, kOneMomentUs);
  // Adapt to this machine: if its clocks are slow, a fixed limit would reject every later reading.
  moment_us_ = std::max(kOneMomentUs, 2 * now.took_us);
  queue_clock.start(now.reading);
  queue_clock_ = &queue_clock;
  serving_since_ms_.store(now.reading.steady_us / 1000, std::memory_order_release);
  tell_difference(queue_clock.ahead_ms());
}

int64_t Clocks::boot_ms() { return read_us(CLOCK_BOOTTIME) / 1000; }

int64_t Clocks::steady_us() { return read_us(CLOCK_MONOTONIC); }

Times Clocks::read() {
  int64_t wall_us = read_us(CLOCK_REALTIME);
  const int64_t since_ms = serving_since_ms_.load(std::memory_order_acquire);
  if (since_ms == 0) return Times::agreeing(wall_us / 1000);
  int64_t now_us = steady_us();
  Times now = times_at(wall_us, now_us, since_ms);
  if (!queue_clock_->must_follow(now_us, now.wall_ms, now.queue_ms)) [[likely]]
    return now;
  const auto [together, took_us] = read_together(kTries, moment_us_);
  // The thread was preempted; the next reading may be better.
  if (took_us > moment_us_) return now;
  const int64_t ahead_ms = queue_clock_->follow(together);
  tell_difference(ahead_ms);
  wall_us = read_us(CLOCK_REALTIME);
  now_us = steady_us();
  now = times_at(wall_us, now_us, since_ms);
  now.ahead_ms = ahead_ms;  // Another thread may be about to change the clock's.
  return now;
}

// REQUIRES: the wall clock was read before the steady one.
Times Clocks::times_at(int64_t wall_us, int64_t now_us, int64_t since_ms) {
  // The milliseconds of the steady clock begin with those of the wall clock, so that a steady timer
  // does not end before a deadline given in wall clock time. The first such millisecond may begin
  // before start().
  const int64_t served_ms = std::max<int64_t>(0, (now_us - wall_us % 1000) / 1000 - since_ms);
  return {wall_us / 1000, queue_clock_->now_ms(now_us), served_ms, queue_clock_->ahead_ms()};
}

int64_t Clocks::steady_ms_at(const Times& times) const {
  const int64_t since_ms = serving_since_ms_.load(std::memory_order_acquire);
  return since_ms == 0 ? steady_ms() : since_ms + times.steady_ms;
}

void Clocks::tell_difference(int64_t ahead_ms) {
  int64_t told_ms = told_ahead_ms_.load(std::memory_order_relaxed);
  const bool far = std::abs(ahead_ms) > kToldDifferenceMs;
  const bool changed = std::abs(ahead_ms - told_ms) > kToldDifferenceMs;
  const bool ended = told_ms != 0 && std::abs(ahead_ms) < kEndedDifferenceMs;
  if (!ended && !(far && changed)) return;
  // Only one thread logs it.
  if (!told_ahead_ms_.compare_exchange_strong(told_ms, ended ? 0 : ahead_ms)) return;
  if (ended) {
    spdlog::info("Queue time and the wall clock again differ by less than a minute");
    return;
  }
  spdlog::warn(
      "Queue time is {} s {} the wall clock, which seems to have been set {}. Queues use queue "
      "time, which approaches the wall clock by 0.1 % of the time that passes",
      std::abs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind",
      ahead_ms > 0 ? "back" : "forward");
}

}  // namespace sluice
