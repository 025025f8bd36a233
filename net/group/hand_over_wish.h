// HandOverWish: a hand-over that was asked for. It begins when the standby is near, so that writes
// wait only until that one has applied the rest. If that takes too long it is refused, and nothing
// has stopped.
//
// Used by the group's thread; check_hand_over and near_lsn by any. Times are milliseconds of
// CLOCK_BOOTTIME.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/ports/group_port.h"
#include "net/group/hand_over.h"
#include "storage/log_sink.h"

namespace sluice {

// A standby is near if it has what the log had so long ago: it applies the rest in less time, and
// its record may be 300 ms old while much is written. Or if it lacks no more than so many units,
// which it applies in a fraction of a second (a pipeline's unit has up to about a hundred
// commands).
inline constexpr int64_t kNearMs = 1000;
inline constexpr Lsn kFewUnits = 1000;

// Whether a hand-over to `preferred` (empty: to the node with the most of the log) may begin now.
// kStale: not yet, since that node is not near. kInvalid: no such node can lead, or this one does
// not. `near_lsn`: HandOverWish::near_lsn().
Status check_hand_over(const GroupView& view, const std::string& preferred, Lsn near_lsn);

class HandOverWish {
 public:
  struct Wish {
    std::string preferred;
    uint64_t asked = 0;          // HandOver::claim()
    int64_t wait_until_ms = 0;   // for the node to be near
    int64_t give_up_ms = 0;      // what has begun
    GroupPort::OnHandOver then;  // empty: nobody waits for the answer
  };

  explicit HandOverWish(LogSink log) : log_(std::move(log)) {}

  // Another one that was set was given up: a claim is given once.
  void set(Wish wish);
  // The wish, if it begins now. Otherwise it waits, or is answered. Call it with each view, also
  // without a wish.
  std::optional<Wish> step(const GroupView& view, HandOver& hand_over, int64_t now_ms);
  // What the log had kNearMs ago.
  Lsn near_lsn() const { return near_lsn_.load(std::memory_order_relaxed); }

 private:
  void note(Lsn lsn, int64_t now_ms);
  void say(LogLevel level, const std::string& text) const {
    if (log_) log_(level, text);
  }

  const LogSink log_;
  std::optional<Wish> wish_;
  bool is_said_ = false;                       // that it waits
  std::deque<std::pair<int64_t, Lsn>> marks_;  // when the log ended where, oldest first
  std::atomic<Lsn> near_lsn_{UINT64_MAX};
};

}  // namespace sluice
