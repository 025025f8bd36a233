// RENAME and MOVE: the value itself moves to its new key, whatever its size.
//
// In the journal a small value is written again under the new key. A large one has a record of
// where it has moved, which replay can follow only if it has the complete value. So a checkpoint
// during whose walk such a record was appended is discarded (storage/checkpointer.h).
#include "engine/keyspace/adopted_watch.h"
#include "engine/keyspace/database.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/queue/queue_records.h"

// As in database.cc: the current unit has locked the shards.
namespace sluice {

MoveLimits g_move_limits;

namespace {

size_t recorded_things(const Stream& stream) {
  size_t things = stream.length() + stream.groups.size();
  for (const auto& [name, group] : stream.groups) {
    things += group->pending().size() + group->consumers().size();
    if (things > g_move_limits.elements) break;
  }
  return things;
}

size_t recorded_things(const Queue& queue) {
  return queue.jobs.size() + queue.events.count() + queue.config.rule_count() +
         queue.lanes.groups().size() + queue.lanes.keys().size() + queue.lanes.idle_rates().size() +
         queue.releases.size();
}

// Whether journaling the whole value would be expensive. Examines a bounded number of elements.
bool is_large(const Entry& entry) {
  const size_t most = g_move_limits.elements;
  switch (entry.type()) {
    case Type::kString:
      return entry.string().size() > g_move_limits.string_bytes;
    case Type::kStream:
      if (recorded_things(entry.object<Stream>()) > most) return true;
      break;
    case Type::kQueue:
      if (recorded_things(entry.object<Queue>()) > most) return true;
      break;
    default:
      if (collection_size(entry) > most) return true;
  }
  return collection_memory_bytes(entry, 0) > g_move_limits.memory_bytes;
}

}  // namespace

bool Database::moves_by_record(const Entry& entry) const {
  return unit_->recording && unit_->journal != nullptr && unit_->journal->takes_moves() &&
         is_large(entry);
}

void Database::move(const KeyRef& from, Entry* entry, Database target, const KeyRef& to) {
  if (Entry* old = target.keyspace().entries.find(to.key, to.hash)) target.remove(to, old);
  const bool by_record = moves_by_record(*entry);
  if (unit_->recording && !by_record) unit_->record().delete_key(index_, from.key);
  unlink(from, entry);
  touched(from.key);
  if (by_record) {
    unit_->record().move_key(index_, from.key, target.index_, to.key);
    unit_->moves_keys = true;
  }
  const Type type = entry->type();
  if (type == Type::kQueue) leave_for(entry->object<Queue>(), target, to);
  entry = Entry::with_key(entry, to.key);
  target.insert_entry(to, entry);
  if (entry->expire_ms() != 0) target.track_expiry(to, entry->expire_ms());
  if (unit_->recording && !by_record) target.record_whole(to, *entry);
  if (target.has_adopted_keys()) [[unlikely]]
    note_whole_key(*target.shard_, *unit_, target.index_, *entry);
  if (type == Type::kQueue) target.arrive(to, entry->object<Queue>(), by_record);
  if (type == Type::kList || type == Type::kSortedSet || type == Type::kStream) {
    target.signal(to.key);
  }
  target.touched(to.key);
}

// The queue changes its name and keeps its leases, waiting jobs and statistics. From now on its
// numbers are greater than those of any earlier queue of the new name.
void Database::leave_for(Queue& queue, const Database& target, const KeyRef& to) {
  unlist_queue_timers(*shard_, queue);
  if (!unit_->told) {  // otherwise the head's record holds them
    raise_token_floor(*shard_, *unit_, floor_over(queue));
    queue.next_token = shard_->token_floor->load(std::memory_order_relaxed);
    queue.events.renumber_from(queue.next_token);
  }
  queue.offer_again();  // other pops wait there
  queue.key = to.key;
  queue.database = target.index_;
}

void Database::arrive(const KeyRef& to, Queue& queue, bool by_record) {
  if (unit_->bulk()) return;  // the end of replay lists the queue
  // Recorded at once: the new numbers must come before events in the rest of the unit.
  if (by_record) record_head(*unit_, queue);
  if (queue.adopted != nullptr && !unit_->told) note_queue_moved(*shard_, *unit_, queue);
  list_queue_timers(*shard_, queue);
  tie_clients(*shard_, queue);
  signal_queue(to.key);
  signal(to.key);
}

bool Database::apply_move(Shards& shards, Unit& unit, const Effect& effect) {
  if (effect.size >= kDatabases) return false;
  const KeyRef from(effect.key);
  const KeyRef to(effect.field);
  Database source = at_index(shards[from.shard], effect.database, unit);
  Database target = at_index(shards[to.shard], static_cast<int>(effect.size), unit);
  Entry* entry = source.keyspace().entries.find(from.key, from.hash);
  // The state is exactly the one before the record, so the value exists.
  if (entry == nullptr || (source.index_ == target.index_ && from.key == to.key)) return false;
  source.move(from, entry, target, to);
  return true;
}

}  // namespace sluice
