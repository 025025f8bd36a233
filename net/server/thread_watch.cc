#include "net/server/thread_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace sluice {

void ThreadWatch::ask(size_t index, int64_t now_ms) {
  Asked& asked = asked_[index];
  asked.at_ms = now_ms;
  asked.answered = std::make_shared<std::atomic<bool>>(false);
  IoThread& thread = *threads_[index];
  thread.post([&thread, answered = asked.answered] {
    thread.levels().run_outermost([answered] { answered->store(true, std::memory_order_relaxed); });
  });
}

bool ThreadWatch::is_stuck(int64_t now_ms) {
  if (patience_ms_ == 0) return false;
  // If the process itself was stopped, its threads could not answer.
  const int64_t missed_ms =
      looked_ms_ == 0 ? 0 : std::max<int64_t>(0, now_ms - looked_ms_ - kAskMs);
  looked_ms_ = now_ms;
  const uint64_t script_looks = scripts_.looks().load(std::memory_order_relaxed);
  if (std::exchange(script_looks_, script_looks) != script_looks) script_ms_ = now_ms;
  asked_.resize(threads_.size());
  size_t stuck = threads_.size();
  for (size_t i = 0; i < threads_.size(); ++i) {
    Asked& asked = asked_[i];
    if (asked.answered == nullptr || asked.answered->load(std::memory_order_relaxed)) {
      if (asked.answered == nullptr || now_ms - asked.at_ms >= kAskMs) ask(i, now_ms);
      continue;
    }
    asked.at_ms += missed_ms;
    if (now_ms - std::max(asked.at_ms, script_ms_) >= patience_ms_) stuck = i;
  }
  const bool is_stuck = stuck != threads_.size();
  if (std::exchange(was_stuck_, is_stuck) != is_stuck) say(stuck);
  return is_stuck;
}

void ThreadWatch::say(size_t stuck) {
  if (stuck == threads_.size()) {
    return spdlog::warn("All I/O threads end their turns again: this node sends beats");
  }
  spdlog::error(
      "I/O thread {} has ended no turn for {} ms (watchdog-ms): this node sends no more beats, so "
      "that another one takes over",
      stuck, patience_ms_);
}

}  // namespace sluice
