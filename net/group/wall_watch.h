// WallWatch: whether the wall clock was set back since this process spoke to etcd for the first
// time. gRPC's timers wait for a time of that clock, whichever clock they count by (Abseil does):
// they stand still for as long as it was set back. With them stands what gives up a request without
// an answer, keeps this node's record alive, and connects anew. A new process waits rightly.
//
// Used by one thread at a time. Times are milliseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace sluice {

class WallWatch {
 public:
  // Less does no harm: records live for 5 s.
  static constexpr int64_t kLeastMs = 2000;

  // `now_ms`: CLOCK_BOOTTIME, which nobody sets.
  WallWatch(std::function<int64_t()> now_ms, std::function<int64_t()> wall_ms)
      : now_ms_(std::move(now_ms)), wall_ms_(std::move(wall_ms)), ahead_ms_(look()) {}

  // By how much it was set back since the last call; 0: not by so much that it matters.
  int64_t set_back_ms() {
    const std::optional<int64_t> ahead_ms = look();
    if (!ahead_ms) return 0;
    const int64_t step_ms = ahead_ms_.value_or(*ahead_ms) - *ahead_ms;
    ahead_ms_ = ahead_ms;
    return step_ms >= kLeastMs ? step_ms : 0;
  }

 private:
  // By how much the wall clock is ahead of the other one. Null if the process paused between the
  // two, which would look like a step.
  std::optional<int64_t> look() const {
    const int64_t before_ms = now_ms_();
    const int64_t wall_ms = wall_ms_();
    if (now_ms_() - before_ms > kLeastMs / 4) return std::nullopt;
    return wall_ms - before_ms;
  }

  const std::function<int64_t()> now_ms_;
  const std::function<int64_t()> wall_ms_;
  std::optional<int64_t> ahead_ms_;  // as it was seen last
};

}  // namespace sluice
