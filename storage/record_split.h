// Cuts a run of records into parts that fit into one unit or one piece of a checkpoint.
//
// Pure; any thread. Needed rarely: for a transaction, a script or a key with more bytes than
// kMaxUnitBytes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

// Whole records, one behind the other.
struct RecordRun {
  Bytes records;
  uint32_t count = 0;
};

// Parts in order, views into `records`: each of at most `max_bytes`, or of one record that is
// larger (proto-max-bulk-len bounds it below 4 GiB). `records` must be records of the engine
// (engine/unit/effects.h).
std::vector<RecordRun> split_records(Bytes records, size_t max_bytes);

}  // namespace sluice
