// The seed of the hash function, stored beside the data in the file `hash-seed`.
//
// A checkpoint writes keys, members and jobs in the order of their hashes. A process that loads it
// with the same seed fills its maps in their own order, so consecutive insertions are adjacent in
// memory. Nothing else depends on the seed, so a missing or damaged file only costs time. Clients
// must not know the seed (engine/base/hash.h); it is as secret as the data beside it.
//
// Any thread. The writer must hold the directory's lock (its log is open).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/status.h"

namespace sluice {

std::optional<uint64_t> read_hash_seed(const std::string& directory);

// Does not write if the file already holds this seed.
Status keep_hash_seed(const std::string& directory, uint64_t seed);

}  // namespace sluice
