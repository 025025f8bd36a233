// ClientPause: suspends requests for a time: by CLIENT PAUSE all, or those that may change data; by
// the server (hold) those that concern data.
//
// Sessions check it before each request (net/io/session_blocking.cc keeps the suspended ones).
// Meanwhile nothing expires and no timer of a queue runs, so that the data do not change.
// Thread-safe; times are Unit::steady_ms.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/mutex.h"

namespace sluice {

enum class PauseMode : uint8_t { kNone, kWrites, kData, kAll };

class ClientPause {
 public:
  // A running pause can only become stricter and longer.
  void begin(PauseMode mode, int64_t now_ms, int64_t end_ms);
  // Not what hold() has begun.
  void end();
  // Ends a pause whose time has passed.
  void end_if_over(int64_t now_ms);
  // Beside CLIENT PAUSE: no answer for data before `end_ms`, or release(). It only becomes longer.
  void hold(int64_t end_ms);
  void release();
  PauseMode mode(int64_t now_ms) const {
    return now_ms < end_ms() ? mode_.load(std::memory_order_relaxed) : PauseMode::kNone;
  }
  // 0: no pause.
  int64_t end_ms() const { return end_ms_.load(std::memory_order_acquire); }

 private:
  struct Pause {
    PauseMode mode = PauseMode::kNone;
    int64_t end_ms = 0;
  };

  void publish() REQUIRES(mutex_);

  Mutex mutex_;  // for changes
  Pause asked_ GUARDED_BY(mutex_);
  Pause held_ GUARDED_BY(mutex_);
  // The stricter and the longer of both.
  std::atomic<PauseMode> mode_{PauseMode::kNone};
  std::atomic<int64_t> end_ms_{0};
};

}  // namespace sluice
