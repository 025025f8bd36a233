// GroupPause: whether the group is paused: nobody takes the epoch of a silent primary then, but
// that primary's own node, for as long as people work at machines or at etcd. A hand-over still
// works, since nobody holds the epoch after it.
//
// A pause only keeps a TAKE from being sent. It is no part of the fence: the read that decides a
// TAKE shows the pause, and one that is put later than that read comes too late for it.
//
// Used by the group's thread. It ends by the wall clock, but at the latest kMostMs after this node
// has heard of it, whatever the clock of the node that has put it; `now_ms` is of CLOCK_BOOTTIME.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/bytes.h"
#include "storage/group_keys.h"
#include "storage/log_sink.h"

namespace sluice {

class GroupPause {
 public:
  // It is said again so often.
  static constexpr int64_t kSayMs = 60'000;
  static constexpr int64_t kMostMs = 86'400'000;

  GroupPause(std::function<int64_t()> wall_ms, LogSink log)
      : wall_ms_(std::move(wall_ms)), log_(std::move(log)) {}

  // The node follows the log from `revision` on. Empty: the group's key is not there.
  void begin(Bytes text, int64_t revision);
  // The node has heard the value that the key has at `revision`. A read may be answered after the
  // event of a later change: what is older than what was heard changes nothing.
  void on_value(Bytes text, int64_t revision);
  // 0: the group is not paused.
  int64_t left_ms() const;
  // PauseValue::number of what was heard.
  uint64_t number() const { return value_.number; }
  // Ends a pause that has lasted for kMostMs. Says what has changed, and once a minute that the
  // group is paused.
  void step(int64_t now_ms);

 private:
  void say(LogLevel level, const std::string& text) const {
    if (log_) log_(level, text);
  }

  const std::function<int64_t()> wall_ms_;
  const LogSink log_;
  PauseValue value_;
  int64_t revision_ = 0;  // at which it was heard
  PauseValue bounded_;    // of which `ends_ms_` is the end
  int64_t ends_ms_ = 0;
  bool over_ = false;
  PauseValue said_;
  int64_t say_at_ms_ = INT64_MIN;
};

}  // namespace sluice
