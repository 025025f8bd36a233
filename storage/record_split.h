// Splits a run of records into parts that fit into one unit or one piece of a checkpoint.
//
// Pure; any thread. Rarely needed: for a transaction, a script or a key of more than kMaxUnitBytes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

// Whole, consecutive records.
struct RecordRun {
  Bytes records;
  uint32_t count = 0;
};

// Returns the parts in order, as views into `records`. Each has at most `max_bytes`, or is one
// record that is larger (proto-max-bulk-len limits it to below 4 GiB). `records` must be valid
// records of the engine (engine/unit/effects.h).
std::vector<RecordRun> split_records(Bytes records, size_t max_bytes);

}  // namespace sluice
