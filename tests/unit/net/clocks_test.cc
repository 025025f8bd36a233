// A steady timer does not end before the deadline that was given in wall clock time.
#include "net/process/clocks.h"

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "tests/support/test.h"

namespace {

using namespace sluice;

int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Whether the wall clock has been put back since the call before.
class PutBack {
 public:
  bool seen() {
    const int64_t before_ns = now_ns(CLOCK_MONOTONIC);
    const int64_t wall_ns = now_ns(CLOCK_REALTIME);
    const int64_t after_ns = now_ns(CLOCK_MONOTONIC);
    const bool back = wall_ns - before_ns < ahead_ns_;
    ahead_ns_ = wall_ns - after_ns;
    return back;
  }

 private:
  int64_t ahead_ns_ = INT64_MIN;  // at least
};

// Returns false if the wall clock was put back meanwhile.
bool check_deadlines() {
  QueueClock queue_clock;
  Clocks clocks;
  PutBack put_back;
  put_back.seen();
  clocks.start(queue_clock);
  // Each reading sets a deadline with no delay, which later readings may find expired. Each comes a
  // little later within the millisecond.
  int64_t greatest_ms = INT64_MIN;
  for (int i = 0; i < 200; ++i) {
    const Times now = clocks.read();
    const int64_t wall_ms = now_ns(CLOCK_REALTIME) / 1'000'000;
    if (put_back.seen()) return false;
    CHECK(wall_ms - now.steady_ms >= greatest_ms);
    greatest_ms = std::max(greatest_ms, now.wall_ms - now.steady_ms);
    const timespec pause{0, 10'000 + i * 5'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

TEST_CASE("a deadline told by the wall clock has come when the steady clock says so") {
  int tries = 0;
  while (!check_deadlines()) REQUIRE(++tries < 100);
}

TEST_CASE("the steady clock does not begin before its beginning") {
  // Milliseconds begin with those of the wall clock, whose phase differs in each iteration.
  for (int i = 0; i < 100; ++i) {
    QueueClock queue_clock;
    Clocks clocks;
    clocks.start(queue_clock);
    CHECK(clocks.read().steady_ms >= 0);
    const timespec pause{0, 13'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace
