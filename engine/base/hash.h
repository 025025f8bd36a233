// The hash of keys and members: XXH3 with a seed chosen at start, so that no client can prepare
// collisions. What is written to the disk does not depend on it: shards and tables may differ from
// run to run, though a server keeps its seed (storage/hash_seed.h).
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

// Set once, before the first hash (Engine's constructor does); the simulator passes a fixed one.
void set_hash_seed(uint64_t seed);

uint64_t hash_bytes(Bytes bytes);

// The part of a key that decides its shard: what stands between the first `{` and the next `}`
// where that is not empty, else the whole key. Keys that share it live in one shard.
Bytes hash_tag(Bytes key);

}  // namespace sluice
