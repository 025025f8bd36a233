// HandOver: that this node is to give its group away, and whether that can still be given up.
//
// Threads: abort() by any; the rest by the group's thread. Times are milliseconds of
// CLOCK_BOOTTIME.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice {

class HandOver {
 public:
  // `preferred`: the node that may take at once; empty: any. `exit_code`: of the process, when the
  // epoch is given away. Until then, or until `give_up_ms`, it is given up if that is `revocable`.
  void begin(std::string preferred, int exit_code, int64_t give_up_ms, bool revocable) {
    preferred_ = std::move(preferred);
    exit_code_ = exit_code;
    give_up_ms_ = give_up_ms;
    state_.store(revocable ? State::kWaits : State::kSure);
  }
  // The server stops: what was begun is not given up any more.
  void insist() {
    exit_code_ = 0;
    State old = state_.load();
    while (old != State::kNone && !state_.compare_exchange_weak(old, State::kSure)) {
    }
  }
  // False: none waits, or the epoch is being given away.
  bool abort() {
    State waits = State::kWaits;
    return state_.compare_exchange_strong(waits, State::kAborted);
  }
  // It was given up: true once.
  bool gives_up(int64_t now_ms) {
    if (now_ms >= give_up_ms_) abort();
    State aborted = State::kAborted;
    return state_.compare_exchange_strong(aborted, State::kNone);
  }
  // The epoch is given away now. False: it was given up meanwhile.
  bool commit() {
    State waits = State::kWaits;
    return state_.compare_exchange_strong(waits, State::kSure) || waits == State::kSure;
  }

  bool is_wanted() const { return state_.load() != State::kNone; }
  const std::string& preferred() const { return preferred_; }
  int exit_code() const { return exit_code_; }

 private:
  enum class State : uint8_t { kNone, kWaits, kAborted, kSure };

  std::string preferred_;
  int exit_code_ = 0;
  int64_t give_up_ms_ = INT64_MAX;
  std::atomic<State> state_{State::kNone};
};

}  // namespace sluice
