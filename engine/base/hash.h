// The hash of keys and members: XXH3 with a seed chosen at start, so that no client can prepare
// collisions. Data on disk does not depend on it: shards and tables may differ between runs,
// although a server keeps its seed (storage/hash_seed.h).
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

// Must be called before the first hash (Engine's constructor does it). The simulator passes a fixed
// seed.
void set_hash_seed(uint64_t seed);

uint64_t hash_bytes(Bytes bytes);

// The part of a key that decides its shard: the text between the first `{` and the next `}`, or the
// whole key where that is empty or missing. Keys with the same hash tag live in one shard.
Bytes hash_tag(Bytes key);

}  // namespace sluice
