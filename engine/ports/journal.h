// What the engine needs from a journal, and what it offers to one. The engine knows no disk;
// storage/ implements Journal and drives CheckpointWalk and Replay.
//
// Terms: a *record* is one effect (engine/unit/effects.h), a *unit* is the records of one lock
// hold (one command, a MULTI, a script, or a run of independent commands), applied wholly or not at
// all. A unit's log sequence number (lsn) is its place in the one global order; the first is 1.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

using Lsn = uint64_t;

class Journal {
 public:
  virtual ~Journal() = default;

  // Takes a copy of one unit and gives it the next lsn. Called under the locks of every shard that
  // the unit changed, so that the order of lsns is the order of changes of each shard. Any thread;
  // makes no system call. `now_ms`: wall clock of the unit, unix milliseconds, for whoever reads
  // the log.
  virtual Lsn append(Bytes records, uint32_t record_count, int64_t now_ms) = 0;
  // The same for a unit that has a record kMoveKey: a checkpoint's walk that is open meanwhile may
  // have met the value in neither place, so it will not count.
  virtual Lsn append_moves(Bytes records, uint32_t record_count, int64_t now_ms) {
    return append(records, record_count, now_ms);
  }
  // The same for a large unit: its records may be taken as they are instead of copied. `moves`: one
  // of them is a kMoveKey.
  virtual Lsn append_large(ByteBuffer& records, uint32_t record_count, int64_t now_ms, bool moves) {
    return moves ? append_moves(records.view(), record_count, now_ms)
                 : append(records.view(), record_count, now_ms);
  }
  // Whether large values that move are to be journaled as kMoveKey; else as values. Any thread,
  // without a lock; it may change before the unit is appended.
  virtual bool takes_moves() const { return false; }

  // The greatest lsn handed out. A reply may leave once durable_lsn() has reached what it saw.
  virtual Lsn last_lsn() const = 0;
  // Any thread, without a lock. What "durable" means is the journal's mode: synced, or with the
  // kernel.
  virtual Lsn durable_lsn() const = 0;
};

// A walk over all live state for a fuzzy checkpoint. One at a time; used by one thread.
class CheckpointWalk {
 public:
  virtual ~CheckpointWalk() = default;
  // Appends records with the current values of the next few elements to `records` and adds their
  // number to `count`. Holds a shard's lock for a bounded time. False when the walk is at its end
  // (records may have been appended even then).
  virtual bool step(ByteBuffer& records, uint64_t& count) = 0;
};

// Takes records back: a checkpoint's and then the units of the log, in order. No other user is
// there yet.
class Replay {
 public:
  virtual ~Replay() = default;
  // Applies the records of one unit or one piece of a checkpoint. False if they cannot be decoded:
  // the data is damaged (or from a newer version) and recovery must stop, naming the place.
  virtual bool apply(Bytes records, uint64_t count) = 0;
  // To be called once after the last record. Of ten million jobs it takes seconds: it calls `pulse`
  // again and again meanwhile.
  virtual void finish(const std::function<void()>& pulse) = 0;
  void finish() {
    finish([] {});
  }
};

}  // namespace sluice
