// Reads a log back: the newest committed checkpoint (B, E), then the units from B+1 in order.
//
// The result is either correct or an error, never silently shortened:
// - Units are contiguous from B+1, and the last one is at or after both E and the high-water mark.
// - Units after a gap are not applied. A gap at or above E and the mark is where synced data ended
//   when the power failed: the rest is removed from the log. A gap below them is damage.
// - A unit or piece that is not intact is damage wherever it is, since RocksDB's own checksums have
//   already sorted out torn tails.
// Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/ports/journal.h"
#include "storage/log.h"

namespace sluice {

struct RecoveryProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  // an estimate until the end
  bool read_all = false;     // everything has been read and is now being put in order
};

struct RecoveryOptions {
  // Called about ten times a second. Returning false cancels.
  std::function<bool(const RecoveryProgress&)> on_progress;
  // Read only: a tail that is not valid stays in the log.
  bool read_only = false;
};

struct RecoveryResult {
  Lsn last_lsn = 0;
  std::optional<CheckpointSummary> checkpoint;
  uint64_t units = 0;
  uint64_t unit_records = 0;
  uint64_t log_bytes = 0;     // of the commits that were read
  bool dropped_tail = false;  // units after a gap were ignored
  std::string position;       // in the replicated log (group_keys.h); empty: none
  double checkpoint_seconds = 0;
  double log_seconds = 0;

  uint64_t records() const { return unit_records + (checkpoint ? checkpoint->records : 0); }
};

// Feeds `replay` and calls its finish(). After an error the state of `replay` is unusable.
Result<RecoveryResult> recover(Log& log, Replay& replay, const RecoveryOptions& options);

}  // namespace sluice
