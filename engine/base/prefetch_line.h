// prefetch_line: prefetches the cache line of an address that will be read soon. Any address is
// allowed; the call does not wait.
#pragma once

namespace sluice {

inline void prefetch_line(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 considers a function that only looks things up and prefetches to have no effect and
  // drops its calls. The empty asm keeps them.
  asm volatile("");
}

}  // namespace sluice
