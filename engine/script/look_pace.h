// LookPace: how many instructions of a script run until the clock is checked again.
//
// An instruction may call a function in C that takes a millisecond, and nothing can interrupt it.
// So the number follows from how long the last ones took. Used by the thread of the script.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/ticks.h"

namespace sluice {

class LookPace {
 public:
  // A run begins. The time until its first check is not known.
  void begin() {
    instructions_ = kFirst;
    looked_ticks_ = 0;
    command_ticks_ = 0;
  }
  // A command of the script has taken this long. Returns whether the clock should be checked at
  // once.
  bool add_command(uint64_t ticks) {
    command_ticks_ += ticks;
    return command_ticks_ >= long_ticks_;
  }
  // To be called before and after each check: while others are served, the time does not count.
  void begin_look() {
    if (looked_ticks_ == 0) return;
    const uint64_t ticks = read_ticks() - looked_ticks_;
    instructions_ = ticks < long_ticks_
                        ? std::min(2 * instructions_, kMost)
                        : std::max<uint64_t>(instructions_ * long_ticks_ / ticks, 1);
  }
  void end_look() {
    looked_ticks_ = read_ticks();
    command_ticks_ = 0;
  }
  uint64_t instructions() const { return instructions_; }

 private:
  static constexpr uint64_t kFirst = 1000;
  static constexpr uint64_t kMost = 4096;
  static constexpr double kLongUs = 2000;

  const uint64_t long_ticks_ = static_cast<uint64_t>(kLongUs * ticks_per_microsecond());
  uint64_t instructions_ = kFirst;
  uint64_t looked_ticks_ = 0;   // at the end of the last check, 0 before the first one
  uint64_t command_ticks_ = 0;  // of commands since then
};

}  // namespace sluice
