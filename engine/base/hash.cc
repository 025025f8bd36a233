#include "engine/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice {

namespace {
uint64_t g_seed = 0;
}

void set_hash_seed(uint64_t seed) { g_seed = seed; }

uint64_t hash_bytes(Bytes bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), g_seed);
}

Bytes hash_tag(Bytes key) {
  const void* open = std::memchr(key.data(), '{', key.size());
  if (open == nullptr) return key;
  const size_t from = static_cast<size_t>(static_cast<const char*>(open) - key.data()) + 1;
  const size_t to = key.find('}', from);
  if (to == Bytes::npos || to == from) return key;
  return key.substr(from, to - from);
}

}  // namespace sluice
