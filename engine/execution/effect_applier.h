// EffectApplier: applies records to an engine, for recovery and for a standby.
//
// It decodes some records ahead and prefetches what they will touch, since the keys and elements of
// most records are in no cache. Used by one thread, which holds the locks of the shards of all keys
// in the records (of all shards, if needs_every_shard() is true of one), or is alone.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/keyspace/database.h"
#include "engine/keyspace/element_place.h"
#include "engine/unit/effects.h"
#include "engine/unit/unit.h"

namespace sluice {

class Engine;

// Whether EffectApplier itself applies it, to more than the shard of its key.
inline constexpr bool is_engine_effect(EffectType type) {
  return type == EffectType::kFlush || type == EffectType::kTokenFloor ||
         type == EffectType::kQueueTime || type == EffectType::kDatabasePlaces ||
         type == EffectType::kMoveKey || is_function_effect(type);
}

// Whether a unit with such a record holds all shards.
inline constexpr bool needs_every_shard(EffectType type) {
  return is_engine_effect(type) || type == EffectType::kQueueAdoption ||
         type == EffectType::kQueueAdopted;
}

class EffectApplier {
 public:
  // Both must outlive it. `unit` is one in which records decide (Unit::told).
  EffectApplier(Engine& engine, Unit& unit) : engine_(engine), unit_(unit) {}

  // Applies `count` records, which must be all of `records`. Returns false if they cannot be
  // decoded; those before the damaged one have been applied then.
  bool apply(Bytes records, uint64_t count);
  // The end of a replay, during which the index of every database is its number, as in the records.
  void set_places();

 private:
  static constexpr size_t kAhead = 16;  // the number of records that are decoded ahead

  bool decode_several(Bytes& records, size_t several);
  bool apply_several(size_t several);
  bool apply_to_engine(const Effect& effect);
  // What a standby does before: answers those who wait for the end of a job that is replaced, and
  // removes it.
  void tell_replaced(const KeyRef& key, const Effect& effect);
  // And after: answers those who wait for the end of the job, and counts queues that have adopted
  // keys.
  void follow_queue(const KeyRef& key, const Effect& effect);
  bool flush(uint8_t index);
  bool take_places(Bytes bytes);
  // Exchanges databases until the index of each is the given one.
  void swap_to(const DatabasePlaces& places);

  Engine& engine_;
  Unit& unit_;
  DatabasePlaces places_ = places_at_first();
  std::array<Effect, kAhead> effects_;
  std::array<KeyRef, kAhead> keys_;
  std::array<ElementPlace, kAhead> elements_;
};

}  // namespace sluice
