// Reads a log back: the newest committed checkpoint (B, E), then the units B+1.. in order.
//
// The result is right or refused, never shorter in silence:
//  - units are contiguous from B+1, and the last one is at or after both E and the high-water mark;
//  - after a gap nothing counts. A gap at or above E and the mark is the end of what was not synced
//    when the power went: the rest is removed from the log. A gap below them is damage.
//  - a unit or piece that is not whole is damage, wherever it is: RocksDB's own checksums have
//    sorted out torn tails before.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/ports/journal.h"
#include "storage/log.h"

namespace sluice {

struct RecoveryProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  // an estimate until the end
  bool read_all = false;     // what has been read is put in order
};

struct RecoveryOptions {
  // Called about ten times a second. False cancels.
  std::function<bool(const RecoveryProgress&)> on_progress;
  // Only look: a tail that does not count stays in the log.
  bool read_only = false;
};

struct RecoveryResult {
  Lsn last_lsn = 0;
  std::optional<CheckpointSummary> checkpoint;
  uint64_t units = 0;
  uint64_t unit_records = 0;
  uint64_t log_bytes = 0;     // of the commits that were read
  bool dropped_tail = false;  // units after a gap do not count
  double checkpoint_seconds = 0;
  double log_seconds = 0;

  uint64_t records() const { return unit_records + (checkpoint ? checkpoint->records : 0); }
};

// Feeds `replay` and calls its finish(). After an error the replay's state is worthless.
Result<RecoveryResult> recover(Log& log, Replay& replay, const RecoveryOptions& options);

}  // namespace sluice
