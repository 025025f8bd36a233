// LogPace: a line of the log that others can bring about at will comes at most once in an interval.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "engine/base/mutex.h"

namespace sluice {

class LogPace {
 public:
  explicit LogPace(int64_t interval_ms) : interval_ms_(interval_ms) {}

  // Whether the line may be written now, by the steady clock: how many were left out since the last
  // one; nothing: not now.
  std::optional<uint64_t> next(int64_t now_ms) {
    MutexLock lock(mutex_);
    if (written_ && now_ms - written_ms_ < interval_ms_) {
      ++left_out_;
      return std::nullopt;
    }
    written_ = true;
    written_ms_ = now_ms;
    return std::exchange(left_out_, 0);
  }

 private:
  const int64_t interval_ms_;
  Mutex mutex_;
  bool written_ GUARDED_BY(mutex_) = false;
  int64_t written_ms_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice
