// The wall clock, for times shown to people and programs.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

inline int64_t wall_us() {
  using std::chrono::system_clock;
  const auto now = system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

inline int64_t wall_ms() { return wall_us() / 1000; }

}  // namespace sluice
