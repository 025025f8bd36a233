// The interface between the engine and a journal. The engine does not know about disks; storage/
// implements Journal and drives CheckpointWalk and Replay.
//
// Terms: a *record* is one effect (engine/unit/effects.h), a *unit* is the records of one lock hold
// (one command, a MULTI, a script, or a run of independent commands), applied wholly or not at all.
// A unit's log sequence number (lsn) is its place in the one global order; the first is 1.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/bytes.h"

namespace sluice {

using Lsn = uint64_t;

class Journal {
 public:
  virtual ~Journal() = default;

  // Assigns one unit the next lsn. Called under the locks of every shard that the unit changed, so
  // that the order of lsns is the order of changes of each shard. Thread-safe; makes no system
  // call. `now_ms`: the unit's wall clock, unix milliseconds, for tools that read the log.
  // `moves`: one of the records is a kMoveKey. The walk of a checkpoint that is open meanwhile may
  // have missed the value in both places, so that checkpoint is discarded.
  // `owned`: holds the records of a large unit, which may be moved instead of copied.
  virtual Lsn append(Bytes records, uint32_t record_count, int64_t now_ms, bool moves = false,
                     ByteBuffer* owned = nullptr) = 0;
  // Whether moves of large values are to be journaled as kMoveKey instead of as values.
  // Thread-safe, without a lock; the answer may change before the unit is appended.
  virtual bool takes_moves() const { return false; }

  // The greatest assigned lsn. A reply may be sent once durable_lsn() has reached the lsn of what
  // it shows.
  virtual Lsn last_lsn() const = 0;
  // Thread-safe, without a lock. The journal's mode defines "durable": synced, or written to the
  // kernel.
  virtual Lsn durable_lsn() const = 0;
};

// A walk over all live state for a fuzzy checkpoint. Only one exists at a time; used by one thread.
class CheckpointWalk {
 public:
  virtual ~CheckpointWalk() = default;
  // Appends records with the current values of the next few elements to `records` and adds their
  // number to `count`. Holds a shard's lock for a bounded time. Returns false at the end of the
  // walk (that call may have appended records).
  virtual bool step(ByteBuffer& records, uint64_t& count) = 0;
};

// Restores records: those of a checkpoint and then the units of the log, in order. Nothing else
// uses the engine meanwhile.
class Replay {
 public:
  virtual ~Replay() = default;
  // Applies the records of one unit or of one piece of a checkpoint. Returns false if they cannot
  // be decoded: the data is damaged (or from a newer version), and recovery must stop and report
  // the place.
  virtual bool apply(Bytes records, uint64_t count) = 0;
  // Call it once after the last record. Ten million jobs take seconds, so it calls `pulse`
  // repeatedly.
  virtual void finish(const std::function<void()>& pulse) = 0;
  void finish() {
    finish([] {});
  }
};

}  // namespace sluice
