#include "net/due_timer.h"

#include <algorithm>
#include <chrono>

namespace sluice {

namespace {

// Due times are of the wall clock, which may jump; the timer is not: it looks again after this
// long.
constexpr int64_t kLongestWaitMs = 60'000;
constexpr auto kNestedRetry = std::chrono::milliseconds(20);

}  // namespace

DueTimer::DueTimer(IoThread& thread) : thread_(thread), timer_(thread.context()) {}

void DueTimer::wake() {
  thread_.post([this] { arm(); });
}

void DueTimer::arm() {
  const int64_t due_ms = thread_.engine().next_due_ms();
  thread_.state().armed_due_ms.store(due_ms, std::memory_order_relaxed);
  if (due_ms == kNeverMs) {
    timer_.cancel();
    return;
  }
  const int64_t wait_ms = std::clamp<int64_t>(due_ms - thread_.read_clock(), 0, kLongestWaitMs);
  timer_.expires_after(std::chrono::milliseconds(wait_ms));
  timer_.async_wait([this](const error_code& error) {
    if (!error) run();
  });
}

void DueTimer::run() {
  // Recovery has the engine to itself; its end wakes this timer again.
  if (thread_.state().loading.load(std::memory_order_relaxed)) return;
  if (thread_.nested()) {
    // A script holds the shards; its end is near, or far: look again.
    timer_.expires_after(kNestedRetry);
    timer_.async_wait([this](const error_code& error) {
      if (!error) run();
    });
    return;
  }
  Execution& execution = thread_.execution();
  // True for "more": the work is done in small pieces, with the sockets in between.
  execution.run_timers(thread_.read_clock());
  if (execution.finish() > thread_.durable_lsn()) thread_.request_end_of_turn();
  thread_.after_batch();
  arm();
}

}  // namespace sluice
