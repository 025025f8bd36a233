#include "engine/execution/effect_applier.h"

#include <algorithm>

#include "engine/clients/tracking.h"
#include "engine/execution/engine.h"
#include "engine/execution/scripts.h"
#include "engine/queue/told_statistics.h"
#include "engine/work/ends.h"

// The caller holds the locks, see the header; the analysis cannot see which.
namespace sluice {

bool EffectApplier::apply(Bytes records, uint64_t count) {
  while (count != 0) {
    const size_t several = std::min<uint64_t>(count, kAhead);
    if (!decode_several(records, several) || !apply_several(several)) return false;
    count -= several;
  }
  return records.empty();
}

bool EffectApplier::decode_several(Bytes& records, size_t several) {
  for (size_t i = 0; i < several; ++i) {
    Effect& effect = effects_[i];
    if (!decode_effect(records, effect)) return false;
    if (effect.type == EffectType::kFlush) continue;
    if (effect.database >= kDatabases) return false;
    keys_[i] = KeyRef(effect.key);
    Database::prefetch_key(engine_.shard(keys_[i].shard), keys_[i], effect);
  }
  return true;
}

bool EffectApplier::apply_several(size_t several) {
  for (size_t i = 0; i < several; ++i) {
    elements_[i] = {};
    if (is_engine_effect(effects_[i].type)) continue;
    elements_[i] = Database::element_of(engine_.shard(keys_[i].shard), keys_[i], effects_[i]);
    elements_[i].prefetch_for_change();
  }
  for (size_t i = 0; i < several; ++i) elements_[i].prefetch_node();
  for (size_t i = 0; i < several; ++i) {
    const Effect& effect = effects_[i];
    if (!unit_.bulk() && effect.type == EffectType::kJobGone) tell_replaced(keys_[i], effect);
    const bool good = is_engine_effect(effect.type)
                          ? apply_to_engine(effect)
                          : Database::apply(engine_.shard(keys_[i].shard), unit_, keys_[i], effect);
    if (!good) return false;
    if (!unit_.bulk() && is_queue_effect(effect.type)) follow_queue(keys_[i], effect);
  }
  // A replay has no end of a unit.
  if (unit_.bulk() && !unit_.retired.empty()) engine_.reclaimer().take(unit_.retired);
  return true;
}

bool EffectApplier::apply_to_engine(const Effect& effect) {
  switch (effect.type) {
    case EffectType::kFlush:
      return flush(effect.database);
    case EffectType::kTokenFloor: {
      const auto token = static_cast<uint64_t>(effect.number);
      if (engine_.token_floor.load() < token) engine_.token_floor.store(token);
      return true;
    }
    case EffectType::kQueueTime:
      unit_.greatest_queue_ms = std::max(unit_.greatest_queue_ms, effect.number);
      return true;
    case EffectType::kDatabasePlaces:
      return take_places(effect.value);
    case EffectType::kMoveKey:
      return Database::apply_move(engine_.shards(), unit_, effect);
    default:
      return engine_.scripts().replay_library(effect);
  }
}

void EffectApplier::tell_replaced(const KeyRef& key,
                                  const Effect& effect) NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = engine_.shard(key.shard);
  if (shard.waiters.no_queue_waiters()) return;
  Database database = Database::at_index(shard, effect.database, unit_);
  const Entry* entry = database.keyspace().entries.find(key.key, key.hash);
  if (entry == nullptr || entry->type() != Type::kQueue) return;
  Queue& queue = entry->object<Queue>();
  Job* job = queue.find(effect.field);
  RecordedEvent event;
  Bytes value = effect.value;
  // Only one that is replaced goes without an end of its own.
  if (job == nullptr || is_terminal(job->state) || !decode_event(value, event)) return;
  count_told_removal(queue, *job, event);
  QueueWork work(database, key, queue, unit_);
  queue.unplace(job);
  end_replaced(work, job);
}

void EffectApplier::follow_queue(const KeyRef& key,
                                 const Effect& effect) NO_THREAD_SAFETY_ANALYSIS {
  // Until the takeover, which counts them.
  if (needs_every_shard(effect.type)) engine_.adopted().queues.store(1);
  Shard& shard = engine_.shard(key.shard);
  if (effect.type == EffectType::kJobGone || shard.waiters.no_queue_waiters()) return;
  Database database = Database::at_index(shard, effect.database, unit_);
  const Entry* entry = database.keyspace().entries.find(key.key, key.hash);
  Queue& queue = entry->object<Queue>();
  const Job* job = queue.find(effect.field);
  if (job == nullptr || !is_terminal(job->state)) return;
  // Now, as the unit may forget the job.
  QueueWork work(database, key, queue, unit_);
  tell_end(work, *job);
}

bool EffectApplier::flush(uint8_t index) {
  if (index >= kDatabases && index != kAllDatabases) return false;
  for (Shard& shard : engine_.shards()) {
    for (int i = 0; i < kDatabases; ++i) {
      if (index != kAllDatabases && index != i) continue;
      Database::at_index(shard, i, unit_).clear();
    }
  }
  if (!unit_.bulk()) engine_.tracking().flushed(unit_);
  return true;
}

bool EffectApplier::take_places(Bytes bytes) {
  DatabasePlaces places{};
  if (bytes.size() != places.size()) return false;
  std::copy(bytes.begin(), bytes.end(), places.begin());
  DatabasePlaces sorted = places;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != places_at_first()) return false;
  if (unit_.bulk()) {
    places_ = places;
  } else {
    swap_to(places);
  }
  return true;
}

void EffectApplier::swap_to(const DatabasePlaces& places) NO_THREAD_SAFETY_ANALYSIS {
  for (Shard& shard : engine_.shards()) {
    for (size_t number = 0; number < places.size(); ++number) {
      const auto* const found = std::find(shard.places.begin(), shard.places.end(), places[number]);
      const auto other = found - shard.places.begin();
      if (other == static_cast<std::ptrdiff_t>(number)) continue;
      Database::swap(shard, static_cast<int>(number), static_cast<int>(other), unit_);
    }
  }
}

void EffectApplier::set_places() NO_THREAD_SAFETY_ANALYSIS {
  for (Shard& shard : engine_.shards()) {
    shard.places = places_;
    for (int number = 0; number < kDatabases; ++number) {
      const size_t size = Database(shard, number, unit_).size();
      shard.key_counts[static_cast<size_t>(number)].store(size, std::memory_order_relaxed);
    }
  }
}

}  // namespace sluice
