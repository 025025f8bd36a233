// ClientPause: suspends requests for a time: by CLIENT PAUSE all, or those that may change data; by
// the server (hold) those that concern data. Each has its own end.
//
// Sessions check it before each request (net/io/session_blocking.cc keeps the suspended ones).
// Meanwhile nothing expires and no timer of a queue runs, so that the data do not change.
// Thread-safe; times are Unit::steady_ms.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/base/mutex.h"

namespace sluice {

enum class PauseMode : uint8_t { kNone, kWrites, kData, kAll };

// Why the server holds requests: the node gives its group away, or its journal does not answer.
enum class Hold : uint8_t { kHandOver, kJournal };

class ClientPause {
 public:
  // A running CLIENT PAUSE can only become stricter and longer.
  void begin(PauseMode mode, int64_t now_ms, int64_t end_ms);
  // Not what hold() has begun.
  void end();
  // Ends what is over.
  void end_if_over(int64_t now_ms);
  // Beside CLIENT PAUSE: no answer for data before `end_ms`, or release().
  void hold(Hold why, int64_t end_ms);
  void release(Hold why);
  bool is_held(Hold why, int64_t now_ms) const { return runs(part_of(why), now_ms); }
  PauseMode mode(int64_t now_ms) const;
  // The latest end of all; 0 without a pause.
  int64_t end_ms() const { return end_ms_.load(std::memory_order_acquire); }
  // The end of CLIENT PAUSE; 0 without it.
  int64_t asked_end_ms() const;
  // The earliest end of what runs now; `now_ms` if nothing does.
  int64_t next_end_ms(int64_t now_ms) const;

 private:
  // CLIENT PAUSE is one of the first two.
  enum Part : size_t { kWrites, kAll, kHandOver, kJournal, kParts };

  static Part part_of(Hold why) { return why == Hold::kHandOver ? kHandOver : kJournal; }
  bool runs(Part part, int64_t now_ms) const {
    return now_ms < ends_ms_[part].load(std::memory_order_acquire);
  }
  void set(Part part, int64_t end_ms) REQUIRES(mutex_);

  Mutex mutex_;  // for changes
  std::array<std::atomic<int64_t>, kParts> ends_ms_{};
  std::atomic<int64_t> end_ms_{0};  // the latest of them
};

}  // namespace sluice
