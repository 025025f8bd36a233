// Seeds of random tests: a failure prints its seed, and SLUICE_SEED=<seed> runs only that one.
//
// A failed assertion prints it through INFO; a CHECK of the engine aborts, and then the handler
// below prints it. One thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sluice::testing {

inline uint64_t g_current_seed = 0;
inline void (*g_previous_handler)(int) = SIG_DFL;

inline void print_seed_and_abort(int signal) {
  std::fprintf(stderr, "rerun with SLUICE_SEED=%llu\n",
               static_cast<unsigned long long>(g_current_seed));
  std::signal(signal, g_previous_handler);  // doctest's, which names the test case.
  std::raise(signal);
}

// Call it at the start of each seeded run.
inline void use_seed(uint64_t seed) {
  g_current_seed = seed;
  const auto handler = std::signal(SIGABRT, print_seed_and_abort);
  if (handler != print_seed_and_abort) g_previous_handler = handler;
}

// A quarter of them under the address sanitizer, which takes ten times the time.
inline std::vector<uint64_t> seeds(uint64_t count, uint64_t factor) {
  if (const char* text = std::getenv("SLUICE_SEED")) return {std::strtoull(text, nullptr, 10)};
#if defined(SLUICE_ASAN)
  count = (count + 3) / 4;
#endif
  std::vector<uint64_t> all;
  for (uint64_t i = 1; i <= count; ++i) all.push_back(i * factor);
  return all;
}

}  // namespace sluice::testing
