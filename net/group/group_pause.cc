#include "net/group/group_pause.h"

#include <algorithm>
#include <utility>

namespace sluice {

// One that cannot be read counts for nothing: a group that takes over is better than one that never
// does.
void GroupPause::begin(Bytes text, int64_t revision) {
  Result<PauseValue> value = decode_pause(text);
  value_ = value.ok() ? std::move(*value) : PauseValue();
  revision_ = revision;
}

void GroupPause::on_value(Bytes text, int64_t revision) {
  if (revision >= revision_) begin(text, revision);
}

int64_t GroupPause::left_ms() const {
  if (value_.until_wall_ms == 0 || (over_ && value_ == bounded_)) return 0;
  return std::clamp<int64_t>(value_.until_wall_ms - wall_ms_(), 0, kMostMs);
}

void GroupPause::step(int64_t now_ms) {
  if (value_ != bounded_) {
    bounded_ = value_;
    ends_ms_ = now_ms + kMostMs;
  }
  over_ = now_ms >= ends_ms_;
  const int64_t left = left_ms();
  const PauseValue now = left == 0 ? PauseValue() : value_;
  if (now == said_ && (left == 0 || now_ms < say_at_ms_)) return;
  said_ = now;
  say_at_ms_ = now_ms + kSayMs;
  if (left == 0) return say(LogLevel::kInfo, "the group is not paused any more");
  say(LogLevel::kWarning, "the group is paused at the node \"" + now.node + "\", for " +
                              std::to_string((left + 999) / 1000) +
                              " s more: no other node takes over from a primary that fails");
}

}  // namespace sluice
