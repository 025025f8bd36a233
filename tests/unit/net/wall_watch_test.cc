// Whether the wall clock was set back, by made clocks.
#include "net/group/wall_watch.h"

#include "tests/support/test.h"

using namespace sluice;

TEST_CASE("a wall clock that is set back is noticed once; other steps and pauses are not") {
  int64_t boot_ms = 1000;
  int64_t wall_ms = 1'000'000;
  int64_t pause_ms = 10'000;  // between two looks at clocks
  const auto pass = [&](int64_t ms) {
    boot_ms += ms;
    wall_ms += ms;
  };
  WallWatch watch(
      [&] {
        pass(pause_ms);
        return boot_ms;
      },
      [&] { return wall_ms; });
  pause_ms = 0;
  CHECK(watch.set_back_ms() == 0);
  pass(5000);
  CHECK(watch.set_back_ms() == 0);
  wall_ms += 3'600'000;
  CHECK(watch.set_back_ms() == 0);
  wall_ms -= WallWatch::kLeastMs - 1;
  CHECK(watch.set_back_ms() == 0);
  pause_ms = 10'000;
  CHECK(watch.set_back_ms() == 0);
  pause_ms = 0;
  CHECK(watch.set_back_ms() == 0);
  pass(20);
  wall_ms -= 3'600'000;
  CHECK(watch.set_back_ms() == 3'600'000);
  CHECK(watch.set_back_ms() == 0);
}
