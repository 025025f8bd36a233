// prefetch_line: prefetches the cache line of an address that will be read soon; prefetch_bytes:
// all lines of an object. Any address is allowed; the calls do not wait.
#pragma once

#include <cstddef>

namespace sluice {

inline void prefetch_line(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 considers a function that only looks things up and prefetches to have no effect and
  // drops its calls. The empty asm keeps them.
  asm volatile("");
}

inline void prefetch_bytes(const void* object, size_t size) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < size; at += kLine) prefetch_line(static_cast<const char*>(object) + at);
}

}  // namespace sluice
