// CHECK(condition): an assertion that stays on in release builds.
//
// A broken invariant means that memory can no longer be trusted. A process that continued could
// acknowledge changes that the journal does not hold, so CHECK prints its place and aborts.
// Thread-safe.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace sluice

#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::sluice::check_failed(#condition, __FILE__, __LINE__))
