#include "engine/execution/follower.h"

#include <limits>
#include <string>
#include <vector>

#include "engine/adopted/adopted_work.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/queue/queue_records.h"

// The shards are locked by index; see database.cc for why the analysis is off.
namespace sluice {

Unit& Execution::begin_told(ShardMask mask) {
  lock(mask);
  begin_unit();
  unit_.told = true;
  unit_.recording = false;
  unit_.access_s = 0;
  unit_.write_s = access_s_;
  return unit_;
}

void Execution::end_told(Lsn lsn) NO_THREAD_SAFETY_ANALYSIS {
  for (Queue* queue : unit_.dirty_queues) {
    queue->head_dirty = false;
    queue->end_told();
    list_queue_timers(engine_.shard(KeyRef(queue->key).shard), *queue);
  }
  unit_.dirty_queues.clear();
  unit_.told = false;
  if (!unit_.ready.empty()) serve_waiters();
  for (Shard& shard : engine_.shards()) {
    if ((locked_ >> shard.index & 1) != 0) shard.last_lsn = lsn;
  }
  finish();
}

namespace {

// REQUIRES: all shards are locked.
std::vector<Queue*> all_queues(Engine& engine) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Queue*> queues;
  for (Shard& shard : engine.shards()) {
    for (const QueueTimers& timers : shard.queue_timers) {
      for (auto at = timers.by_name.begin(); at.valid(); at.next()) queues.push_back(at.value());
    }
  }
  return queues;
}

}  // namespace

Follower::Follower(Engine& engine) NO_THREAD_SAFETY_ANALYSIS : engine_(engine),
                                                               execution_(engine),
                                                               applier_(engine, execution_.unit()) {
  execution_.lock(kAllShards);
  engine_.leases_begin_ms.store(std::numeric_limits<int64_t>::max());
  engine_.following.store(true);
  for (Queue* queue : all_queues(engine_)) {
    // Nothing is left to the timers.
    queue->lanes.reconfigure_some(SIZE_MAX, queue->queue_ms, nullptr);
    // Records hold the transitions of adopted keys. While there are such queues, commands lock all
    // shards.
    if (queue->adopted != nullptr) queue->adopted->group->shards = 0;
  }
  for (Shard& shard : engine_.shards()) shard.adopted = nullptr;
  execution_.finish();
}

ShardMask Follower::shards_of(Bytes records, uint64_t count) {
  ShardMask mask = engine_.adopted().queues.load(std::memory_order_relaxed) != 0 ? kAllShards : 0;
  Effect effect;
  for (; count != 0; --count) {
    if (!decode_effect(records, effect)) return 0;
    if (mask == kAllShards) continue;
    mask |= needs_every_shard(effect.type) ? kAllShards : 1U << KeyRef(effect.key).shard;
  }
  return records.empty() ? mask : 0;
}

Status Follower::apply(Lsn lsn, Bytes records, uint64_t count, const Times& now) {
  const ShardMask mask = shards_of(records, count);
  bool good = mask != 0;
  if (good) {
    execution_.set_times(now);
    const Unit& unit = execution_.begin_told(mask);
    good = applier_.apply(records, count);
    const int64_t greatest_ms = unit.greatest_queue_ms;
    execution_.end_told(lsn);
    engine_.queue_clock.go_past(greatest_ms, now.queue_ms);
  }
  if (good) return {};
  return {StatusCode::kDamaged, "unit " + std::to_string(lsn) + " cannot be decoded"};
}

void Follower::promote(const Times& now) {
  execution_.set_times(now);
  Unit& unit = execution_.begin_told(kAllShards);
  engine_.adopted().queues.store(0);
  for (Queue* queue : all_queues(engine_)) {
    queue->lanes.end_replay();
    if (queue->adopted != nullptr) AdoptedWork(engine_.adopted(), kAllShards, unit).watch(*queue);
    list_queue_timers(engine_.shard(KeyRef(queue->key).shard), *queue);
  }
  engine_.leases_begin_ms.store(now.steady_ms);
  engine_.following.store(false);
  unit.told = false;
  execution_.finish();
}

}  // namespace sluice
