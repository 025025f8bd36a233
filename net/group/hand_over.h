// HandOver: that this node is to give its group away, and whether that can still be given up.
//
// Threads: claim() and abort() by any; the rest by the group's thread. Times are milliseconds of
// CLOCK_BOOTTIME.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice {

class HandOver {
 public:
  // Somebody asks for one. False: one is asked for or waits. The group's thread then begins it if
  // start() says so, and it was not given up.
  bool claim() { return change(State::kNone, State::kAsked); }
  bool start() { return change(State::kAsked, State::kNone); }
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
  // False: none is asked for or waits, or the epoch is being given away.
  bool abort() {
    return change(State::kAsked, State::kNone) || change(State::kWaits, State::kAborted);
  }
  // It was given up: true once.
  bool gives_up(int64_t now_ms) {
    if (now_ms >= give_up_ms_) change(State::kWaits, State::kAborted);
    return change(State::kAborted, State::kNone);
  }
  // The epoch is given away now. False: it was given up meanwhile.
  bool commit() { return change(State::kWaits, State::kSure) || state_.load() == State::kSure; }

  // From begin() on.
  bool is_wanted() const {
    const State state = state_.load();
    return state != State::kNone && state != State::kAsked;
  }
  const std::string& preferred() const { return preferred_; }
  int exit_code() const { return exit_code_; }

 private:
  enum class State : uint8_t { kNone, kAsked, kWaits, kAborted, kSure };

  bool change(State from, State to) { return state_.compare_exchange_strong(from, to); }

  std::string preferred_;
  int exit_code_ = 0;
  int64_t give_up_ms_ = INT64_MAX;
  std::atomic<State> state_{State::kNone};
};

}  // namespace sluice
