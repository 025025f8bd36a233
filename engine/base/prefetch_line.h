// prefetch_line: asks for the cache line of an address that will be read soon. Any address will do;
// nothing is waited for.
#pragma once

namespace sluice {

inline void prefetch_line(const void* address) {
  __builtin_prefetch(address);
  // g++ 12 takes a function that does nothing but look things up and prefetch for one without
  // effect, and drops the calls of it. This keeps them.
  asm volatile("");
}

}  // namespace sluice
