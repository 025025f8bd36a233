// RareLines: lines of the server's log about things that may happen often: one of each kind a
// minute, with the number of those that were left out before it.
//
// Any thread. The engine's callers say what time it is (Unit::times).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/mutex.h"

namespace sluice {

enum class RareLine : uint8_t {
  kAdoptingQueueGone,
  kAdoptionEnded,
  kAdoptedKeyGone,
  kAdoptedKeyType,
  kLeaseLost,
  kPayloadStays,
};

class RareLines {
 public:
  // The line to log now; nothing: one of this kind was logged within the last minute.
  std::optional<std::string> admit(RareLine kind, std::string text, int64_t steady_ms);

 private:
  static constexpr int64_t kIntervalMs = 60'000;
  static constexpr size_t kKinds = static_cast<size_t>(RareLine::kPayloadStays) + 1;
  struct Line {
    std::optional<int64_t> logged_ms;
    uint64_t left_out = 0;
  };

  Mutex mutex_;
  std::array<Line, kKinds> lines_ GUARDED_BY(mutex_);
};

}  // namespace sluice
