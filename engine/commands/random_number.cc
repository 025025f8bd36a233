#include "engine/commands/random_number.h"

#include <atomic>
#include <random>
#include <string>

#include "engine/base/hash.h"

namespace sluice {

uint64_t random_number() {
  // Seeded by the hash, whose seed the server chooses.
  static std::atomic<uint64_t> streams{0};
  static thread_local std::mt19937_64 generator{
      hash_bytes("random" + std::to_string(streams.fetch_add(1, std::memory_order_relaxed)))};
  return generator();
}

}  // namespace sluice
