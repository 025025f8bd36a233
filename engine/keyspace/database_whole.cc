// Whole values made elsewhere (RESTORE, import): Database's function for them, and their records.
#include "engine/keyspace/adopted_watch.h"
#include "engine/keyspace/database.h"
#include "engine/queue/queue_records.h"

// As in database.cc, the analysis cannot see which unit has locked the shard.
namespace sluice {

void Database::put_entry(const KeyRef& key, OwnedEntry made) {
  Entry* entry = made.release();
  insert_entry(key, entry);
  if (entry->expire_ms() != 0) track_expiry(key, entry->expire_ms());
  if (unit_->recording) record_whole(key, *entry);
  if (has_adopted_keys()) [[unlikely]]
    note_whole_key(*shard_, *unit_, index_, *entry);
  const Type type = entry->type();
  if (type == Type::kList || type == Type::kSortedSet || type == Type::kStream) signal(key.key);
  touched(key.key);
}

void Database::record_whole(const KeyRef& key, const Entry& entry) {
  switch (entry.type()) {
    case Type::kString:
      unit_->record().put_string(index_, key.key, entry.string(), entry.expire_ms());
      return;
    case Type::kList:
      record_list_items(key, entry.object<List>(), 0, entry.object<List>().items.size());
      break;
    case Type::kSet:
      entry.object<Set>().members.for_each(
          [&](const Member* member) { unit_->record().set_add(index_, key.key, member->bytes()); });
      break;
    case Type::kSortedSet:
      entry.object<SortedSet>().members.for_each([&](const ScoredMember* member) {
        unit_->record().sorted_put(index_, key.key, member->score(), member->bytes());
      });
      break;
    case Type::kHash:
      entry.object<Hash>().fields.for_each([&](const Field* field) {
        unit_->record().hash_put(index_, key.key, field->name(), field->value());
      });
      break;
    case Type::kStream:
      record_whole_stream(key, entry.object<Stream>());
      break;
    case Type::kQueue: {
      QueueCursor cursor;
      const EmitRecord emit = [&](EffectType type, Bytes field, Bytes value) {
        unit_->record().queue_record(type, index_, key.key, field, value);
      };
      while (walk_queue(entry.object<Queue>(), cursor, SIZE_MAX, emit)) {
      }
      break;
    }
  }
  if (entry.expire_ms() != 0) unit_->record().set_expire(index_, key.key, entry.expire_ms());
}

}  // namespace sluice
