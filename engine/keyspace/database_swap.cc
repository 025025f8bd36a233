// SWAPDB: two databases exchange their keys. No key moves: the numbers by which clients know the
// databases change places. So the cost depends on the watches, the waiters and the number of
// queues, not on the number of keys, and its record is 16 bytes that may be applied again.
#include <algorithm>

#include "engine/keyspace/database.h"
#include "engine/keyspace/queue_timers.h"

// As in database.cc: the current unit has locked the shard.
namespace sluice {

Database Database::at_index(Shard& shard, int index, Unit& unit) NO_THREAD_SAFETY_ANALYSIS {
  const auto found = std::find(shard.places.begin(), shard.places.end(), index);
  CHECK(found != shard.places.end());
  return Database(shard, static_cast<int>(found - shard.places.begin()), unit);
}

void Database::record_places(Unit& unit, const Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  if (!unit.recording) return;
  const DatabasePlaces& places = shard.places;
  unit.record().database_places({reinterpret_cast<const char*>(places.data()), places.size()});
}

// Called before the swap: a watched key counts as changed if it exists before or after it.
void Database::break_swapped_watches(Shard& shard, int number, int other,
                                     Unit& unit) NO_THREAD_SAFETY_ANALYSIS {
  Database before(shard, number, unit);
  Database after(shard, other, unit);
  for (auto& [name, sets] : shard.watchers[static_cast<size_t>(number)]) {
    const KeyRef key(name);
    // An expired key does not exist; its watchers have been notified, or will be.
    if (before.find(key) == nullptr && after.find(key) == nullptr) continue;
    for (WatchSet* set : sets) set->broken.store(true, std::memory_order_relaxed);
  }
}

void Database::swap(Shard& shard, int first, int second, Unit& unit) NO_THREAD_SAFETY_ANALYSIS {
  if (shard.watched_keys != 0) {
    break_swapped_watches(shard, first, second, unit);
    break_swapped_watches(shard, second, first, unit);
  }
  auto& places = shard.places;
  std::swap(places[static_cast<size_t>(first)], places[static_cast<size_t>(second)]);
  outgrow_tokens(shard, unit, places[static_cast<size_t>(first)],
                 places[static_cast<size_t>(second)]);
  for (const int number : {first, second}) {
    Database database(shard, number, unit);
    shard.key_counts[static_cast<size_t>(number)].store(database.size(), std::memory_order_relaxed);
    if (shard.waiters.empty()) continue;
    for (const std::string& key : shard.waiters.keys(number)) database.signal(key);
    for (const std::string& key : shard.waiters.queue_keys(number)) database.signal_queue_gone(key);
  }
}

}  // namespace sluice
