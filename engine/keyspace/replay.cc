// Applying effects: the same functions, with a unit that records nothing. During recovery the state
// may be older or newer than the record (a fuzzy checkpoint); a standby applies each record to
// exactly the state before it.
#include <algorithm>

#include "engine/keyspace/database.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// The collection of `type` under `key`. A key that holds another type is of another generation;
// later records write its contents again.
Entry* Database::replay_collection(const KeyRef& key, Type type) {
  Entry* entry = keyspace().entries.find(key.key, key.hash);
  if (entry != nullptr && entry->type() != type) {
    remove(key, entry);
    entry = nullptr;
  }
  return entry != nullptr ? entry : create(key, type);
}

// Gives the list exactly the bounds of the record. Items within the bounds that are missing were
// removed later, before the checkpoint read them. Empty items replace them until the records of
// their removal follow.
void Database::apply_list(const KeyRef& key, const Effect& effect) {
  Entry* entry = replay_collection(key, Type::kList);
  List& list = entry->object<List>();
  const int64_t first = effect.first;
  const int64_t end = first + static_cast<int64_t>(effect.size);
  int64_t old_first = list.first_index;
  int64_t old_end = old_first + static_cast<int64_t>(list.items.size());
  if (old_end <= first || old_first >= end || list.items.size() == 0) {
    if (list.items.size() != 0) list.items.erase_range(0, list.items.size());
    old_first = old_end = first;
  }
  if (old_end > end) {
    list.items.erase_range(static_cast<size_t>(end - old_first),
                           static_cast<size_t>(old_end - end));
    old_end = end;
  }
  if (old_first < first) {
    list.items.erase_range(0, static_cast<size_t>(first - old_first));
    old_first = first;
  }
  const bool has_item = effect.type == EffectType::kListPut;
  bool placed = !has_item;
  for (; old_first > first; --old_first) {
    const bool here = has_item && effect.number == old_first - 1;
    list.items.push_front(here ? effect.value : Bytes());
    placed = placed || here;
  }
  for (; old_end < end; ++old_end) {
    const bool here = has_item && effect.number == old_end;
    list.items.push_back(here ? effect.value : Bytes());
    placed = placed || here;
  }
  list.first_index = first;
  if (!placed) list.items.set(static_cast<size_t>(effect.number - first), effect.value);
  touched(key.key);
}

void Database::apply_sorted(const KeyRef& key, const Effect& effect) {
  Entry* entry = replay_collection(key, Type::kSortedSet);
  ScoredMember* found =
      entry->object<SortedSet>().members.find(effect.field, hash_bytes(effect.field));
  if (effect.type == EffectType::kSortedPut) {
    sorted_put(key, entry, found, effect.field, effect.score);
  } else if (found != nullptr) {
    sorted_remove(key, entry, found);
  }
}

bool Database::apply_queue(const KeyRef& key, const Effect& effect) {
  Queue& queue = replay_collection(key, Type::kQueue)->object<Queue>();
  record_head_at_end(*unit_, queue);
  const uint64_t last_seq = queue.events.last_seq();
  if (!apply_queue_effect(queue, effect)) return false;
  unit_->greatest_queue_ms = std::max(unit_->greatest_queue_ms, queue.queue_ms);
  touched(key.key);
  signal_told(key, effect, queue, last_seq);
  return true;
}

// Those who wait for what a record of the queue has changed: readers, as nobody else waits where
// records decide.
void Database::signal_told(const KeyRef& key, const Effect& effect, const Queue& queue,
                           uint64_t last_seq) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.no_queue_waiters()) return;
  if (is_job_effect(effect.type)) signal_job(key.key, effect.field);
  if (queue.events.last_seq() == last_seq) return;
  // Events that are not retained, or that have new numbers.
  if (effect.type == EffectType::kQueueHead) return signal_queue(key.key);
  queue.events.read(queue.events.last_seq() - 1, [&](const Event& event) {
    signal_event(key.key, event.seq, event_bit(event.type), event.id);
    const bool is_over = event.type == EventType::kCompleted || event.type == EventType::kFailed ||
                         event.type == EventType::kCancelled;
    if (effect.type == EffectType::kAdoptedMember && is_over) signal_job(key.key, event.id);
    return true;
  });
}

void Database::prefetch_key(const Shard& shard, const KeyRef& key,
                            const Effect& effect) NO_THREAD_SAFETY_ANALYSIS {
  shard.databases[effect.database].entries.prefetch(key.hash);
}

ElementPlace Database::element_of(const Shard& shard, const KeyRef& key,
                                  const Effect& effect) NO_THREAD_SAFETY_ANALYSIS {
  if (effect.field.empty()) return {};
  const Entry* entry = shard.databases[effect.database].entries.find(key.key, key.hash);
  if (entry == nullptr) return {};
  return {entry, hash_bytes(effect.field)};
}

static void apply_write(Database& database, const KeyRef& key, const Effect& effect) {
  Entry* entry = database.keyspace().entries.find(key.key, key.hash);
  if (entry != nullptr && entry->type() != Type::kString) {
    database.remove(key, entry);
    entry = nullptr;
  }
  database.write_string(key, entry, static_cast<size_t>(effect.number), effect.value, effect.size);
}

bool Database::apply(Shard& shard, Unit& unit, const KeyRef& key, const Effect& effect) {
  Database database = at_index(shard, effect.database, unit);
  Keyspace& keys = database.mutable_keyspace();
  switch (effect.type) {
    case EffectType::kPutString:
      database.put_string(key, effect.value, effect.number);
      return true;
    case EffectType::kWriteString:
      apply_write(database, key, effect);
      return true;
    case EffectType::kDeleteKey:
      if (Entry* entry = keys.entries.find(key.key, key.hash)) database.remove(key, entry);
      return true;
    case EffectType::kSetExpire:
      if (Entry* entry = keys.entries.find(key.key, key.hash)) {
        database.set_expire(key, entry, effect.number);
      }
      return true;
    case EffectType::kFlush:
    case EffectType::kTokenFloor:
    case EffectType::kQueueTime:
    case EffectType::kDatabasePlaces:
    case EffectType::kFunctionPut:
    case EffectType::kFunctionGone:
    case EffectType::kMoveKey:
      return true;  // not for one shard: EffectApplier does it
    case EffectType::kHashPut:
      database.hash_put(key, database.replay_collection(key, Type::kHash), effect.field,
                        effect.value);
      return true;
    case EffectType::kHashDelete:
      database.hash_delete(key, database.replay_collection(key, Type::kHash), effect.field);
      return true;
    case EffectType::kSetAdd:
      database.set_add(key, database.replay_collection(key, Type::kSet), effect.field);
      return true;
    case EffectType::kSetRemove:
      database.set_remove(key, database.replay_collection(key, Type::kSet), effect.field);
      return true;
    case EffectType::kSortedPut:
    case EffectType::kSortedRemove:
      database.apply_sorted(key, effect);
      return true;
    case EffectType::kListPut:
    case EffectType::kListBounds:
      database.apply_list(key, effect);
      return true;
    default:
      if (is_queue_effect(effect.type)) return database.apply_queue(key, effect);
      return is_stream_effect(effect.type) && database.apply_stream(key, effect);
  }
}

}  // namespace sluice
