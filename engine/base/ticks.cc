#include "engine/base/ticks.h"

#include <chrono>

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

struct Origin {
  Clock::time_point time = Clock::now();
  uint64_t ticks = read_ticks();
};

}  // namespace

double ticks_per_microsecond() {
  static const Origin origin;
  Clock::time_point now = Clock::now();
  // A shorter interval would measure the cost of reading the clocks.
  while (now - origin.time < std::chrono::milliseconds(1)) now = Clock::now();
  const uint64_t ticks = read_ticks() - origin.ticks;
  const double elapsed_us = std::chrono::duration<double, std::micro>(now - origin.time).count();
  return static_cast<double>(ticks) / elapsed_us;
}

}  // namespace sluice
