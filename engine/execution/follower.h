// Follower: makes an engine that serves reads follow another one, by applying the units of that
// one's journal; and lets it take over.
//
// While it follows, commands that write are refused (READONLY), nothing expires or becomes due by
// itself, and keys that have expired are invisible. Every index is right after each unit, the
// statistics of runs and waits are counted from the records, and commands that wait to read (XREAD,
// Q.EVENTS, Q.LOG, Q.GET ... WAIT) are served. One that waits for the end of a job waits for its
// successor, if that takes the job's place: the record of that has no end.
//
// One for an engine, used by one thread (I/O thread 0), between its batches. The engine must
// outlive it.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/base/times.h"
#include "engine/execution/effect_applier.h"
#include "engine/execution/execution.h"
#include "engine/ports/journal.h"

namespace sluice {

class Engine;

class Follower {
 public:
  // After recovery, and before the first command. From now on the engine follows.
  explicit Follower(Engine& engine);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Applies the records of one unit, which continues the state exactly, in one lock hold of their
  // shards. Replies that show it wait for this lsn. The journal is not used. An error means that
  // the records cannot be decoded: part of the unit may have been applied, so the engine is of no
  // more use. `now` is as Execution::set_times() takes it.
  Status apply(Lsn lsn, Bytes records, uint64_t count, const Times& now);

  // The engine acts by itself from now on. Takes time for each queue, not for its jobs: every lease
  // has its whole term again because the clock of leases begins now (Engine::leases_begin_ms). The
  // caller arms the timer for Engine::next_due().
  void promote(const Times& now);

 private:
  // The shards that the records need; none if they are damaged.
  ShardMask shards_of(Bytes records, uint64_t count);

  Engine& engine_;
  Execution execution_;
  EffectApplier applier_;
};

}  // namespace sluice
