// The processor's time-stamp counter: a duration for eight nanoseconds instead of a clock call's
// thirty. For statistics only (slow log, command times); order and deadlines never depend on it.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace sluice {

inline uint64_t read_ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured against the steady clock, better the longer the process runs; the first call takes a
// millisecond. Any thread.
double ticks_per_microsecond();

}  // namespace sluice
