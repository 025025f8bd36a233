// A steady timer does not end before the deadline that was given in wall clock time.
#include "net/process/clocks.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/test.h"

namespace {

using namespace sluice;

int64_t wall_now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

TEST_CASE("a deadline told by the wall clock has come when the steady clock says so") {
  QueueClock queue_clock;
  Clocks clocks;
  clocks.start(queue_clock);
  // Each reading sets a deadline with no delay, which later readings may find expired. Each comes a
  // little later within the millisecond.
  int64_t greatest_ms = INT64_MIN;
  for (int i = 0; i < 200; ++i) {
    const Times now = clocks.read();
    const int64_t wall_ms = wall_now_ms();
    CHECK(wall_ms - now.steady_ms >= greatest_ms);
    greatest_ms = std::max(greatest_ms, now.wall_ms - now.steady_ms);
    const timespec pause{0, 10'000 + i * 5'000};
    ::nanosleep(&pause, nullptr);
  }
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
