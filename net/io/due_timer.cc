#include "net/io/due_timer.h"

#include <algorithm>
#include <chrono>

namespace sluice {

namespace {

// Due times use a clock that may jump, the timer does not. So the timer checks again after this
// time, which limits how late work is done after a jump.
constexpr int64_t kMaxTimerMs = 1000;
constexpr auto kNestedRetry = std::chrono::milliseconds(20);

}  // namespace

DueTimer::DueTimer(IoThread& thread) : thread_(thread), timer_(thread.executor()) {}

void DueTimer::wake() {
  thread_.post([this] { arm(); });
}

void DueTimer::arm() {
  DueTimes due = thread_.engine().next_due();
  DueTimes told;
  // Another thread wakes this one only if it finds later times there, so what it made due before
  // that is read here.
  do {
    told = due;
    thread_.state().armed_due_ms.store(due.wall_ms, std::memory_order_relaxed);
    thread_.state().armed_due_queue_ms.store(due.queue_ms, std::memory_order_relaxed);
    thread_.state().armed_due_steady_ms.store(due.steady_ms, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    due = thread_.engine().next_due();
  } while (due != told);
  thread_.clock().read();
  const int64_t wait_ms = due.wait_ms(thread_.clock().times());
  if (wait_ms == kNeverMs) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::chrono::milliseconds(std::min(wait_ms, kMaxTimerMs)));
  timer_.async_wait([this](const error_code& error) {
    if (!error) run();
  });
}

void DueTimer::run() {
  // During recovery the engine is not available; its end wakes this timer again. A server that
  // stops leaves what is due to the next start: the thread runs all its handlers before it ends.
  const ServerState& state = thread_.state();
  if (state.loading.load(std::memory_order_relaxed) || state.stopping.load()) return;
  if (thread_.levels().nested()) {
    // A script holds the shards: try again later.
    timer_.expires_after(kNestedRetry);
    timer_.async_wait([this](const error_code& error) {
      if (!error) run();
    });
    return;
  }
  thread_.run_between_batches([this](Execution& execution) {
    // Returns true for "more": the work is done in small pieces, with the sockets in between.
    execution.run_timers(thread_.clock().times());
  });
  arm();
}

}  // namespace sluice
