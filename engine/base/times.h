// Times: what the clocks say at one moment, for all that runs in one batch of requests.
//
// Three clocks, each for what it alone can do. The *wall clock* is what people and programs mean by
// a time; it may be stepped, both ways. *Queue time* (engine/base/queue_clock.h) is what queues go
// by; it never goes back. The *steady clock* measures leases and how long a command blocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

struct Times {
  int64_t wall_ms = 0;    // unix time
  int64_t queue_ms = 0;   // queue time
  int64_t steady_ms = 0;  // since the engine began to serve; never negative
  // How far queue time is ahead of the wall clock, or behind it (negative).
  int64_t ahead_ms = 0;

  // Where the wall clock has never been stepped, queue time is what it says.
  static Times agreeing(int64_t unix_ms, int64_t since_start_ms = 0) {
    return {unix_ms, unix_ms, since_start_ms, 0};
  }

  // A queue time as the wall clock has it: what replies say.
  int64_t shown_ms(int64_t time_ms) const { return std::max<int64_t>(0, time_ms - ahead_ms); }
  // The queue time at which the wall clock will say this, if nobody steps it: what `AT` means.
  int64_t queue_time_of(int64_t at_ms) const {
    return std::clamp<int64_t>(at_ms + ahead_ms, 0, kMaxMs);
  }

 private:
  // As far as `AT` goes.
  static constexpr int64_t kMaxMs = int64_t{1} << 53;
};

}  // namespace sluice
