// The seed of the hash function, kept beside the data in the file `hash-seed`.
//
// A checkpoint writes keys, members and jobs in the order of their hashes. Who loads it with the
// seed of the process that wrote it fills its maps in their own order: what comes next in time lies
// next in memory. Nothing else depends on it, so a file that is missing or damaged costs time only.
// Clients must not know the seed (engine/base/hash.h); it is as secret as the data it lies beside.
//
// Any thread. Who writes has the directory's lock (its log is open).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/status.h"

namespace sluice {

std::optional<uint64_t> read_hash_seed(const std::string& directory);

// Writes nothing where the file says so already.
Status keep_hash_seed(const std::string& directory, uint64_t seed);

}  // namespace sluice
