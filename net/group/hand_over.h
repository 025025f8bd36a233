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
  // Somebody asks for one: what start() takes. 0: one is asked for or waits. The group's thread
  // then begins it if start() says so: it was not given up, not even if another one is asked for by
  // now.
  uint64_t claim() {
    const uint64_t asked = kAsked + claims_.fetch_add(1);
    return change(kNone, asked) ? asked : 0;
  }
  bool start(uint64_t asked) { return change(asked, kStarts); }
  // It neither began nor was given up.
  bool is_asked() const { return state_.load() >= kAsked; }
  bool is_asked(uint64_t asked) const { return state_.load() == asked; }
  // Gives up the one of that claim. False: it is not asked for any more.
  bool withdraw(uint64_t asked) { return change(asked, kNone); }
  // `preferred`: the node that may take at once; empty: any. `exit_code`: of the process, when the
  // epoch is given away. Until then, or until `give_up_ms`, it is given up if that is `revocable`.
  void begin(std::string preferred, int exit_code, int64_t give_up_ms, bool revocable) {
    preferred_ = std::move(preferred);
    exit_code_ = exit_code;
    give_up_ms_ = give_up_ms;
    state_.store(revocable ? kWaits : kSure);
  }
  // The server stops: what was begun is not given up any more.
  void insist() {
    exit_code_ = 0;
    uint64_t old = state_.load();
    while (old != kNone && !state_.compare_exchange_weak(old, kSure)) {
    }
  }
  // False: none is asked for or waits, or the epoch is being given away.
  bool abort() {
    const uint64_t old = state_.load();
    return (old >= kAsked && change(old, kNone)) || change(kWaits, kAborted);
  }
  // It was given up: true once.
  bool gives_up(int64_t now_ms) {
    if (now_ms >= give_up_ms_) change(kWaits, kAborted);
    return change(kAborted, kNone);
  }
  // The epoch is given away now. False: it was given up meanwhile.
  bool commit() { return change(kWaits, kSure) || state_.load() == kSure; }

  // From begin() on.
  bool is_wanted() const {
    const uint64_t state = state_.load();
    return state == kWaits || state == kAborted || state == kSure;
  }
  const std::string& preferred() const { return preferred_; }
  int exit_code() const { return exit_code_; }

 private:
  // kAsked and above: asked for, by the claim of that number; each has another one.
  enum State : uint64_t { kNone, kStarts, kWaits, kAborted, kSure, kAsked };

  bool change(uint64_t from, uint64_t to) { return state_.compare_exchange_strong(from, to); }

  std::string preferred_;
  int exit_code_ = 0;
  int64_t give_up_ms_ = INT64_MAX;
  std::atomic<uint64_t> claims_{0};
  std::atomic<uint64_t> state_{kNone};
};

}  // namespace sluice
