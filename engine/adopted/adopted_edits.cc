#include "engine/adopted/adopted_edits.h"

#include "engine/adopted/adopted_view.h"

namespace sluice {

Database AdoptedEdits::database_of(const KeyRef& key) {
  CHECK((locked_ >> key.shard & 1) != 0);
  return Database::at_index(shards_[key.shard], queue_.database, unit_);
}

bool AdoptedEdits::can_put_pending(size_t number) {
  const KeyRef key(queue_.adopted->definition.pending[number]);
  const Entry* entry = database_of(key).find(key);
  return entry == nullptr || entry->type() == Type::kSortedSet;
}

void AdoptedEdits::put_pending(size_t number, Bytes id, double score) {
  const KeyRef key(queue_.adopted->definition.pending[number]);
  Database database = database_of(key);
  Entry* entry = database.find(key);
  if (entry == nullptr) entry = database.create(key, Type::kSortedSet);
  ScoredMember* found = entry->object<SortedSet>().members.find(id, hash_bytes(id));
  database.sorted_put(key, entry, found, id, score);
}

bool AdoptedEdits::remove_pending(size_t number, Bytes id) {
  const KeyRef key(queue_.adopted->definition.pending[number]);
  Database database = database_of(key);
  Entry* entry = database.find(key);
  if (entry == nullptr || entry->type() != Type::kSortedSet) return false;
  ScoredMember* found = entry->object<SortedSet>().members.find(id, hash_bytes(id));
  if (found == nullptr) return false;
  database.sorted_remove(key, entry, found);
  database.remove_if_empty(key, entry);
  return true;
}

bool AdoptedEdits::remove_active(Bytes id) {
  const KeyRef key(queue_.adopted->definition.active);
  Database database = database_of(key);
  Entry* entry = database.find(key);
  if (entry == nullptr || entry->type() != Type::kSet) return false;
  if (!database.set_remove(key, entry, id)) return false;
  database.remove_if_empty(key, entry);
  return true;
}

std::optional<std::string> AdoptedEdits::find_payload(Bytes id) {
  std::optional<std::string> name = AdoptedView(shards_, queue_, unit_.times).payload_key(id);
  if (!name) return std::nullopt;
  const KeyRef key(*name);
  const Entry* entry = database_of(key).find(key);
  if (entry == nullptr || entry->type() != Type::kString) return std::nullopt;
  return name;
}

void AdoptedEdits::remove_payload(const std::string& name) {
  const KeyRef key(name);
  Database database = database_of(key);
  database.remove(key, database.find(key));
}

}  // namespace sluice
