// Times: the readings of all clocks at one moment, shared by all commands of one batch of requests.
//
// There are three clocks. The *wall clock* is the time of day; it may be stepped both ways. *Queue
// time* (engine/base/queue_clock.h) is the time of queues; it never runs backwards. The *steady
// clock* measures leases and how long a command blocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

struct Times {
  int64_t wall_ms = 0;    // unix time
  int64_t queue_ms = 0;   // queue time
  int64_t steady_ms = 0;  // since the engine began to serve; in units since it may write
  // How far queue time is ahead of the wall clock; negative if it is behind.
  int64_t ahead_ms = 0;

  // The times of a server whose wall clock has never been stepped: queue time equals the wall
  // clock.
  static Times agreeing(int64_t unix_ms, int64_t since_start_ms = 0) {
    return {unix_ms, unix_ms, since_start_ms, 0};
  }

  // Converts a queue time to the wall clock, for replies.
  int64_t shown_ms(int64_t time_ms) const { return std::max<int64_t>(0, time_ms - ahead_ms); }
  // Converts a wall clock time to queue time, as `AT` needs. Exact if the wall clock is not stepped
  // until then.
  int64_t queue_time_of(int64_t at_ms) const {
    return std::clamp<int64_t>(at_ms + ahead_ms, 0, kMaxMs);
  }

 private:
  // The latest time that `AT` takes.
  static constexpr int64_t kMaxMs = int64_t{1} << 53;
};

}  // namespace sluice
