// The processor's time-stamp counter, which takes eight nanoseconds to read instead of thirty for a
// clock. For statistics (slow log, command times), and for when a long batch lets others run
// (Execution::is_long); what a command does and deadlines never depend on it.
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

// Measured against the steady clock, with more precision the longer the process has run. The first
// call takes a millisecond. Thread-safe.
double ticks_per_microsecond();

}  // namespace sluice
