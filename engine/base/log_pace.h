// LogPace: limits a line of the log to one in an interval. It is for lines that clients can cause
// at will.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/mutex.h"

namespace sluice {

class LogPace {
 public:
  static constexpr int64_t kMinuteMs = 60'000;

  explicit LogPace(int64_t interval_ms = kMinuteMs) : interval_ms_(interval_ms) {}

  // Returns the suffix to append to the line, which says how many lines were left out since the
  // last one. Returns nothing if the line must not be written now. `now_ms` is always of the same
  // steady clock.
  std::optional<std::string> next(int64_t now_ms) {
    uint64_t left_out = 0;
    {
      MutexLock lock(mutex_);
      if (written_ && now_ms - written_ms_ < interval_ms_) {
        ++left_out_;
        return std::nullopt;
      }
      written_ = true;
      written_ms_ = now_ms;
      left_out = std::exchange(left_out_, 0);
    }
    if (left_out == 0) return std::string();
    return " (" + std::to_string(left_out) + " others since the last such line)";
  }

 private:
  const int64_t interval_ms_;
  Mutex mutex_;
  bool written_ GUARDED_BY(mutex_) = false;
  int64_t written_ms_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice
