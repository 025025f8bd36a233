// Adopted keys (Q.ADOPT): the part of Execution that locks related shards together, and has changes
// settled in the unit that made them.
#include <bit>

#include "engine/adopted/adopted_work.h"
#include "engine/execution/execution.h"

namespace sluice {

namespace {

// Due jobs of one queue in one lock hold.
constexpr size_t kMaxReclaimedPerHold = 64;

}  // namespace

ShardMask Execution::adopted_shards(ShardMask mask,
                                    const KeyRef* only_key) const NO_THREAD_SAFETY_ANALYSIS {
  ShardMask needed = 0;
  for (ShardMask rest = mask; rest != 0; rest &= rest - 1) {
    const AdoptedWatches* watches =
        engine_.shard(static_cast<unsigned>(std::countr_zero(rest))).adopted.get();
    if (watches == nullptr) continue;
    needed |= only_key != nullptr ? watches->shards_of(only_key->key) : watches->shards();
  }
  return needed;
}

void Execution::lock_adopted(ShardMask mask, const KeyRef* only_key) {
  // Locking further shards may have released those that the mask was computed from, so it is
  // computed again.
  for (;;) {
    const ShardMask needed = mask | adopted_shards(mask, only_key);
    if ((needed & ~locked_) == 0) return;
    lock(needed);
  }
}

void Execution::settle_adopted() {
  if (unit_.adopted_notes == nullptr) return;
  AdoptedWork(engine_.adopted(), locked_, unit_).settle();
}

void Execution::look_at_adopted(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  if (shard.adopted == nullptr) return;
  const std::shared_ptr<AdoptedGroup> group = shard.adopted->must_look();
  if (group != nullptr) AdoptedWork(engine_.adopted(), locked_, unit_).look_on(group);
}

void Execution::run_adopted_timers(Queue& queue) {
  AdoptedWork(engine_.adopted(), locked_, unit_).run_leases(queue, kMaxReclaimedPerHold);
}

}  // namespace sluice
