#include "net/clocks.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <cstdlib>
#include <optional>

namespace sluice {

namespace {

// A difference that the log tells of, and a change of it that it tells again.
constexpr int64_t kToldDifferenceMs = 60'000;
// Clocks that were read within this time say the same moment; else somebody else had the processor
// in between.
constexpr int64_t kOneMomentUs = 200;
constexpr int kTries = 4;

int64_t read_us(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// Nothing where this thread is interrupted again and again.
std::optional<QueueClock::Reading> read_together() {
  for (int i = 0; i < kTries; ++i) {
    QueueClock::Reading now;
    now.steady_us = read_us(CLOCK_MONOTONIC);
    now.boot_us = read_us(CLOCK_BOOTTIME);
    now.wall_us = read_us(CLOCK_REALTIME);
    if (read_us(CLOCK_MONOTONIC) - now.steady_us <= kOneMomentUs) return now;
  }
  return std::nullopt;
}

}  // namespace

void Clocks::start(QueueClock& queue_clock) {
  std::optional<QueueClock::Reading> now;
  while (!now) now = read_together();
  queue_clock.start(*now);
  queue_clock_ = &queue_clock;
  serving_since_ms_.store(now->steady_us / 1000, std::memory_order_release);
  tell_difference(queue_clock.ahead_ms());
}

Times Clocks::read() {
  const int64_t wall_ms = read_us(CLOCK_REALTIME) / 1000;
  const int64_t since_ms = serving_since_ms_.load(std::memory_order_acquire);
  if (since_ms == 0) return Times::agreeing(wall_ms);
  const int64_t steady_us = read_us(CLOCK_MONOTONIC);
  QueueClock& clock = *queue_clock_;
  Times now{wall_ms, clock.now_ms(steady_us), steady_us / 1000 - since_ms, clock.ahead_ms()};
  if (!clock.must_follow(steady_us, wall_ms, now.queue_ms)) [[likely]]
    return now;
  const std::optional<QueueClock::Reading> together = read_together();
  if (!together) return now;
  now.ahead_ms = clock.follow(*together);
  now.wall_ms = together->wall_us / 1000;
  now.queue_ms = clock.now_ms(together->steady_us);
  tell_difference(now.ahead_ms);
  return now;
}

int64_t Clocks::steady_ms_at(const Times& times) const {
  const int64_t since_ms = serving_since_ms_.load(std::memory_order_acquire);
  return since_ms == 0 ? read_us(CLOCK_MONOTONIC) / 1000 : since_ms + times.steady_ms;
}

void Clocks::tell_difference(int64_t ahead_ms) {
  int64_t told_ms = told_ahead_ms_.load(std::memory_order_relaxed);
  const bool far = std::abs(ahead_ms) > kToldDifferenceMs;
  const bool changed = std::abs(ahead_ms - told_ms) > kToldDifferenceMs;
  if (far ? !changed : told_ms == 0) return;
  // One thread tells it.
  if (!told_ahead_ms_.compare_exchange_strong(told_ms, far ? ahead_ms : 0)) return;
  if (!far) {
    spdlog::info("Queue time and the wall clock differ by less than a minute again");
    return;
  }
  spdlog::warn(
      "The wall clock has been set: queue time is {} s {} it. Queues go by queue time, which "
      "follows "
      "the wall clock by 0.1 % of the time that passes",
      std::abs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind");
}

}  // namespace sluice
