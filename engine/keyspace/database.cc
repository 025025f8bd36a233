#include "engine/keyspace/database.h"

#include "engine/base/numbers.h"
#include "engine/keyspace/adopted_watch.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/replay_expiries.h"
#include "engine/queue/queue_records.h"

// The unit that owns this handle has locked the shard. The analysis cannot follow locks that are
// chosen by index at run time, so it is off for these functions; Execution takes the locks.
namespace sluice {

namespace {

// Freeing fewer elements costs less than handing them over to the Reclaimer.
constexpr size_t kFreedAtOnce = 1024;
constexpr size_t kFreedBytesAtOnce = size_t{4} << 20;

bool takes_long_to_free(const Entry& entry) {
  if (entry.type() == Type::kString) return entry.string().size() > kFreedBytesAtOnce;
  if (entry.type() == Type::kStream && !entry.object<Stream>().groups.empty()) return true;
  return collection_size(entry) > kFreedAtOnce;
}

}  // namespace

EncodingLimits g_encoding_limits;

bool is_integer_text(Bytes text) { return parse_i64(text).has_value(); }

bool fits_intset(const Set& set, Bytes member) {
  return set.members.size() <= g_encoding_limits.set_intset_entries && is_integer_text(member);
}

void Database::tell_watchers(Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  if (unit_->observer != nullptr) unit_->observer->changed(*unit_, key);
  if (shard_->watched_keys == 0) return;
  auto& watchers = shard_->watchers[static_cast<size_t>(number_)];
  const auto found = watchers.find(std::string(key));
  if (found == watchers.end()) return;
  for (WatchSet* set : found->second) set->broken.store(true, std::memory_order_relaxed);
}

void Database::signal(Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.empty()) return;
  std::string name(key);
  const WaiterLists& waiters = shard_->waiters;
  if (waiters.find(number_, name) == nullptr && waiters.find_queue(number_, name) == nullptr)
    return;
  std::vector<SignalledKey>& ready = unit_->ready;
  if (!ready.empty() && ready.back().is(SignalledKey::What::kMore, number_, key)) return;
  ready.push_back({shard_->index, number_, std::move(name)});
}

void Database::signal_job(Bytes key, Bytes job_id) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.no_queue_waiters()) return;
  std::string name(key);
  const QueueWaiters* waiters = shard_->waiters.find_queue(number_, name);
  if (waiters == nullptr) return;
  std::string id(job_id);
  if (!waiters->by_job.contains(id)) return;
  unit_->ready.push_back(
      {shard_->index, number_, std::move(name), SignalledKey::What::kJob, std::move(id)});
}

void Database::signal_event(Bytes key, uint64_t seq, uint32_t type,
                            Bytes job_id) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.no_queue_waiters()) return;
  std::string name(key);
  QueueWaiters* waiters = shard_->waiters.find_queue(number_, name);
  if (waiters == nullptr) return;
  waiters->last_event_seq = seq;
  std::string id;
  if (!waiters->by_job.empty()) id = job_id;
  if (!waiters->want_event(type) && (id.empty() || !waiters->by_job.contains(id))) return;
  unit_->ready.push_back({shard_->index, number_, std::move(name), SignalledKey::What::kEvent,
                          std::move(id), seq, type});
}

void Database::signal_queue(Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.no_queue_waiters()) return;
  std::string name(key);
  QueueWaiters* waiters = shard_->waiters.find_queue(number_, name);
  if (waiters == nullptr) return;
  const uint64_t last_seq = std::exchange(waiters->last_event_seq, 0);
  unit_->ready.push_back(
      {shard_->index, number_, std::move(name), SignalledKey::What::kQueue, {}, last_seq});
}

void Database::signal_queue_gone(Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  if (shard_->waiters.no_queue_waiters()) return;
  QueueWaiters* waiters = shard_->waiters.find_queue(number_, std::string(key));
  if (waiters == nullptr) return;
  for (const auto& [id, group] : waiters->by_job) {
    for (const auto& [order, waiter] : group) waiter->queue.queue_gone = true;
  }
  signal_queue(key);
}

void Database::track_expiry(const KeyRef& key, int64_t expire_ms) {
  if (unit_->replay_expiries != nullptr) {
    unit_->replay_expiries->add(shard_->index, index_, expire_ms, key.hash);
  } else {
    mutable_keyspace().expiries.insert(static_cast<uint64_t>(expire_ms), key.hash, {});
  }
  if (expire_ms < shard_->next_due_ms.load(std::memory_order_relaxed)) {
    shard_->next_due_ms.store(expire_ms, std::memory_order_release);
  }
}

void Database::untrack_expiry(const KeyRef& key, int64_t expire_ms) {
  if (unit_->replay_expiries != nullptr) {
    unit_->replay_expiries->remove(shard_->index, index_, expire_ms, key.hash);
    return;
  }
  const bool was_there =
      mutable_keyspace().expiries.erase(static_cast<uint64_t>(expire_ms), key.hash, {});
  CHECK(was_there);
}

void Database::insert_entry(const KeyRef& key, Entry* entry, bool replaces) {
  if (unit_->write_s != 0) entry->set_access_s(unit_->write_s);
  Keyspace& keys = mutable_keyspace();
  if (has_adopted_keys()) [[unlikely]]
    note_new_key(*shard_, *unit_, index_, *entry);
  keys.entries.insert(entry, key.hash);
  shard_->key_counts[static_cast<size_t>(number_)].store(keys.entries.size(),
                                                         std::memory_order_relaxed);
  if (!replaces) notify(KeyEvent::kNew, key.key);
}

void Database::unlink(const KeyRef& key, Entry* entry) {
  Keyspace& keys = mutable_keyspace();
  if (has_adopted_keys()) [[unlikely]]
    note_key_gone(*shard_, *unit_, index_, *entry);
  if (entry->expire_ms() != 0) untrack_expiry(key, entry->expire_ms());
  const bool was_there = keys.entries.erase(key.key, key.hash) == entry;
  CHECK(was_there);
  shard_->key_counts[static_cast<size_t>(number_)].store(keys.entries.size(),
                                                         std::memory_order_relaxed);
  if (entry->type() == Type::kQueue) signal_queue_gone(key.key);
  // Blocked readers of its consumer groups get an error.
  if (entry->type() == Type::kStream) signal(key.key);
}

Entry* Database::find(const KeyRef& key) {
  Entry* entry = keyspace().entries.find(key.key, key.hash);
  if (entry == nullptr) return nullptr;
  if (entry->expire_ms() != 0 && entry->expire_ms() <= unit_->times.wall_ms && !unit_->told) {
    if (unit_->paused) return nullptr;
    remove(key, entry);
    notify(KeyEvent::kExpired, key.key);
    ++unit_->expired;
    return nullptr;
  }
  if (unit_->access_s != 0) entry->set_access_s(unit_->access_s);
  return entry;
}

Entry* Database::create(const KeyRef& key, Type type, Entry* old) {
  if (old != nullptr) remove(key, old);
  Entry* entry = Entry::make_object(key.key, type, make_collection(type));
  insert_entry(key, entry, old != nullptr);
  if (type == Type::kQueue) {
    Queue& queue = entry->object<Queue>();
    queue.key = key.key;
    queue.database = index_;
    queue.events.spill_to(shard_->event_spill);
    if (unit_->bulk()) queue.begin_replay();
    if (!unit_->told) {  // otherwise the head's record holds it
      queue.next_token = shard_->token_floor->load(std::memory_order_relaxed);
      queue.events.set_last_seq(queue.next_token - 1);
    }
    signal_queue(key.key);
  }
  return entry;
}

void Database::discard(Entry* entry) {
  if (entry->type() != Type::kQueue) {
    if (takes_long_to_free(*entry)) {
      unit_->retired.push_back(
          {entry, [](void* gone) { Entry::destroy(static_cast<Entry*>(gone)); }});
    } else {
      Entry::destroy(entry);
    }
    return;
  }
  Queue* queue = &entry->object<Queue>();
  if (queue->adopted != nullptr && !unit_->told) note_queue_gone(*shard_, *unit_, *queue);
  Entry::release(entry);
  retire_queue(*shard_, *unit_, queue);
}

void Database::remove(const KeyRef& key, Entry* entry) {
  if (unit_->recording) unit_->record().delete_key(index_, key.key);
  unlink(key, entry);
  touched(key.key);
  discard(entry);
}

bool Database::remove_if_empty(const KeyRef& key, Entry* entry) {
  if (collection_size(*entry) != 0) return false;
  remove(key, entry);
  notify(KeyEvent::kDel, key.key);
  return true;
}

void Database::set_expire(const KeyRef& key, Entry* entry, int64_t expire_ms) {
  if (unit_->recording) unit_->record().set_expire(index_, key.key, expire_ms);
  if (entry->expire_ms() != 0) untrack_expiry(key, entry->expire_ms());
  entry->set_expire_ms(expire_ms);
  if (expire_ms != 0) track_expiry(key, expire_ms);
  touched(key.key);
}

// A large collection that has shrunk keeps the encoding of a large one under its new name.
static void copy_encoding(const Entry& from, const Entry& to) {
  if (from.type() == Type::kHash) {
    to.object<Hash>().listpack = from.object<Hash>().listpack;
  } else if (from.type() == Type::kSet) {
    to.object<Set>().intset = from.object<Set>().intset;
  } else if (from.type() == Type::kSortedSet) {
    to.object<SortedSet>().listpack = from.object<SortedSet>().listpack;
  }
}

void Database::copy(Entry* entry, Database target, const KeyRef& to) {
  if (Entry* old = target.keyspace().entries.find(to.key, to.hash)) target.remove(to, old);
  const int64_t expire_ms = entry->expire_ms();
  if (entry->type() == Type::kString) {
    // The value is copied first, because the view of a string is invalid after a write to its
    // entry. Source and target may be the same table, but inserting moves no entries.
    const StringForm form = entry->string_form();
    target.put_string(to, nullptr, std::string(entry->string()), expire_ms);
    target.find(to)->set_string_form(form);
    return;
  }
  Entry* made = target.create(to, entry->type());
  copy_encoding(*entry, *made);
  unit_->notes_whole_key = target.has_adopted_keys();
  switch (entry->type()) {
    case Type::kList: {
      const PackedList& items = entry->object<List>().items;
      for (auto at = items.begin(); at.valid(); at.next()) {
        target.list_push(to, made, at.value(), false);
      }
      break;
    }
    case Type::kSet:
      entry->object<Set>().members.for_each(
          [&](Member* member) { target.set_add(to, made, member->bytes()); });
      break;
    case Type::kSortedSet:
      entry->object<SortedSet>().members.for_each([&](ScoredMember* member) {
        target.sorted_put(to, made, nullptr, member->bytes(), member->score());
      });
      break;
    case Type::kHash:
      entry->object<Hash>().fields.for_each(
          [&](Field* field) { target.hash_put(to, made, field->name(), field->value()); });
      break;
    case Type::kStream:
      made->object<Stream>().copy_from(entry->object<Stream>());
      target.record_whole_stream(to, made->object<Stream>());
      target.signal(to.key);
      target.touched(to.key);
      break;
    default:
      CHECK(false && "cannot copy this type");
  }
  if (std::exchange(unit_->notes_whole_key, false)) [[unlikely]]
    note_whole_key(*target.shard_, *unit_, target.index_, *made);
  if (expire_ms != 0) target.set_expire(to, made, expire_ms);
}

void Database::clear() NO_THREAD_SAFETY_ANALYSIS {
  Keyspace& keys = mutable_keyspace();
  if (shard_->watched_keys != 0) {
    for (auto& [key, sets] : shard_->watchers[static_cast<size_t>(number_)]) {
      const KeyRef ref(key);
      if (keys.entries.find(ref.key, ref.hash) == nullptr) continue;
      for (WatchSet* set : sets) set->broken.store(true, std::memory_order_relaxed);
    }
  }
  for (const std::string& name : shard_->waiters.keys(number_)) {
    const KeyRef key(name);
    const Entry* entry = keys.entries.find(key.key, key.hash);
    if (entry != nullptr && entry->type() == Type::kStream) signal(name);
  }
  if (!shard_->waiters.no_queue_waiters()) {
    for (const std::string& key : shard_->waiters.queue_keys(number_)) signal_queue_gone(key);
  }
  if (has_adopted_keys()) [[unlikely]]
    note_flush(*shard_, *unit_, index_);
  unit_->changes += keys.entries.size();
  if (!keys.entries.empty()) retire_keys(keys);
  if (unit_->replay_expiries != nullptr) unit_->replay_expiries->clear(shard_->index, index_);
  shard_->key_counts[static_cast<size_t>(number_)].store(0, std::memory_order_relaxed);
}

void Database::retire_keys(Keyspace& keys) {
  for (Queue* queue : retire_queues(*shard_, *unit_, index_)) {
    note_queue_gone(*shard_, *unit_, *queue);
  }
  auto gone = std::make_unique<Keyspace>();
  std::swap(gone->entries, keys.entries);
  std::swap(gone->expiries, keys.expiries);
  unit_->retired.push_back(Retired::of(gone.release()));
}

size_t Database::expire_due(size_t limit) {
  Keyspace& keys = mutable_keyspace();
  size_t expired = 0;
  while (expired < limit && !keys.expiries.empty()) {
    const auto due = keys.expiries.front();
    if (static_cast<int64_t>(due.major) > unit_->times.wall_ms) break;
    const int64_t expire_ms = static_cast<int64_t>(due.major);
    Entry* entry = keys.entries.find_hash(
        due.minor, [&](const Entry* candidate) { return candidate->expire_ms() == expire_ms; });
    CHECK(entry != nullptr);
    const std::string name(entry->key());
    remove(KeyRef(name), entry);
    notify(KeyEvent::kExpired, name);
    ++expired;
  }
  unit_->expired += expired;
  return expired;
}

void Database::record_flush(Unit& unit, uint8_t index) {
  if (unit.recording) unit.record().flush(index);
}

// --- Hashes ---

bool Database::hash_put(const KeyRef& key, Entry* entry, Bytes field, Bytes value) {
  if (unit_->recording) unit_->record().hash_put(index_, key.key, field, value);
  Hash& hash = entry->object<Hash>();
  const uint64_t field_hash = hash_bytes(field);
  Field* old = hash.fields.find(field, field_hash);
  if (old == nullptr) {
    hash.fields.insert(Field::make(field, value), field_hash);
  } else if (!old->overwrite(value)) {
    hash.fields.replace(old, Field::make(field, value), field_hash);
    Field::destroy(old);
  }
  if (hash.listpack && !fits_listpack(hash, field, value)) hash.listpack = false;
  touched(key.key);
  return old == nullptr;
}

bool Database::hash_delete(const KeyRef& key, Entry* entry, Bytes field) {
  Hash& hash = entry->object<Hash>();
  Field* gone = hash.fields.erase(field, hash_bytes(field));
  if (gone == nullptr) return false;
  if (unit_->recording) unit_->record().hash_delete(index_, key.key, field);
  Field::destroy(gone);
  touched(key.key);
  return true;
}

// --- Sets ---

bool Database::set_add(const KeyRef& key, Entry* entry, Bytes member) {
  Set& set = entry->object<Set>();
  const uint64_t member_hash = hash_bytes(member);
  if (set.members.find(member, member_hash) != nullptr) return false;
  if (unit_->recording) unit_->record().set_add(index_, key.key, member);
  if (has_adopted_keys()) [[unlikely]] {
    note_set_change(*shard_, *unit_, index_, key.key, member, true);
  }
  set.members.insert(Member::make(member), member_hash);
  if (set.intset && !fits_intset(set, member)) set.intset = false;
  touched(key.key);
  return true;
}

bool Database::set_remove(const KeyRef& key, Entry* entry, Bytes member) {
  Set& set = entry->object<Set>();
  Member* gone = set.members.erase(member, hash_bytes(member));
  if (gone == nullptr) return false;
  if (unit_->recording) unit_->record().set_remove(index_, key.key, member);
  if (has_adopted_keys()) [[unlikely]] {
    note_set_change(*shard_, *unit_, index_, key.key, member, false);
  }
  Member::destroy(gone);
  touched(key.key);
  return true;
}

// --- Sorted sets ---

void Database::sorted_put(const KeyRef& key, Entry* entry, ScoredMember* found, Bytes member,
                          double score) {
  SortedSet& sorted = entry->object<SortedSet>();
  if (sorted.listpack && found == nullptr &&
      (sorted.members.size() >= g_encoding_limits.sorted_listpack_entries ||
       member.size() > g_encoding_limits.sorted_listpack_value_bytes)) {
    sorted.listpack = false;
  }
  // Redis's listpacks have no negative zero. The score of a record has been converted already, or
  // the set was larger at the time.
  if (sorted.listpack && score == 0 && !unit_->told) score = 0;
  if (unit_->recording) unit_->record().sorted_put(index_, key.key, score, member);
  if (has_adopted_keys()) [[unlikely]] {
    note_sorted_put(*shard_, *unit_, index_, key.key, member, found, score);
  }
  const uint64_t minor = SortedSet::minor(member);
  if (found != nullptr) {
    const bool was_there = sorted.order.erase(SortedSet::major(found->score()), minor, found);
    CHECK(was_there);
    found->set_score(score);
  } else {
    found = ScoredMember::make(member, score);
    sorted.members.insert(found, hash_bytes(member));
    signal(key.key);
  }
  sorted.order.insert(SortedSet::major(score), minor, found);
  touched(key.key);
}

void Database::sorted_remove(const KeyRef& key, Entry* entry, ScoredMember* member) {
  const Bytes bytes = member->bytes();
  if (unit_->recording) unit_->record().sorted_remove(index_, key.key, bytes);
  if (has_adopted_keys()) [[unlikely]] {
    note_sorted_remove(*shard_, *unit_, index_, key.key, *member);
  }
  SortedSet& sorted = entry->object<SortedSet>();
  const bool in_order =
      sorted.order.erase(SortedSet::major(member->score()), SortedSet::minor(bytes), member);
  const bool in_map = sorted.members.erase(bytes, hash_bytes(bytes)) == member;
  CHECK(in_order && in_map);
  ScoredMember::destroy(member);
  touched(key.key);
}

// --- Lists ---

void Database::record_list_items(const KeyRef& key, const List& list, size_t from, size_t to) {
  if (!unit_->recording || from == to) return;
  const size_t size = list.items.size();
  for (auto at = list.items.iterate(from); from != to; at.next(), ++from) {
    unit_->record().list_put(index_, key.key, list.first_index, size,
                             list.first_index + static_cast<int64_t>(from), at.value());
  }
}

void Database::record_list_bounds(const KeyRef& key, const List& list) {
  if (!unit_->recording) return;
  unit_->record().list_bounds(index_, key.key, list.first_index, list.items.size());
}

void Database::list_push(const KeyRef& key, Entry* entry, Bytes item, bool front) {
  List& list = entry->object<List>();
  if (front) {
    list.items.push_front(item);
    --list.first_index;
  } else {
    list.items.push_back(item);
  }
  if (unit_->recording) {
    const size_t size = list.items.size();
    const int64_t index = list.first_index + (front ? 0 : static_cast<int64_t>(size) - 1);
    unit_->record().list_put(index_, key.key, list.first_index, size, index, item);
  }
  signal(key.key);
  touched(key.key);
}

void Database::list_pop(const KeyRef& key, Entry* entry, bool front) {
  List& list = entry->object<List>();
  if (front) {
    list.items.drop_front();
    ++list.first_index;
  } else {
    list.items.drop_back();
  }
  record_list_bounds(key, list);
  touched(key.key);
}

void Database::list_set(const KeyRef& key, Entry* entry, size_t position, Bytes item) {
  List& list = entry->object<List>();
  list.items.set(position, item);
  record_list_items(key, list, position, position + 1);
  touched(key.key);
}

void Database::list_insert(const KeyRef& key, Entry* entry, size_t position, Bytes item) {
  List& list = entry->object<List>();
  list.items.insert_before(position, item);
  // All items on the shorter side get a new index, because there is no index in between.
  const size_t size = list.items.size();
  if (position < size / 2) {
    --list.first_index;
    record_list_items(key, list, 0, position + 1);
  } else {
    record_list_items(key, list, position, size);
  }
  touched(key.key);
}

void Database::list_erase(const KeyRef& key, Entry* entry, const std::vector<size_t>& positions) {
  List& list = entry->object<List>();
  for (size_t i = positions.size(); i != 0; --i) list.items.erase(positions[i - 1]);
  // The items of the shorter side close the gaps, with new indexes.
  const size_t size = list.items.size();
  const size_t before = positions.back() + 1 - positions.size();  // kept, and moved up
  const size_t behind = size - positions.front();                 // kept, and moved down
  if (before < behind) {
    list.first_index += static_cast<int64_t>(positions.size());
    record_list_items(key, list, 0, before);
  } else {
    record_list_items(key, list, positions.front(), size);
  }
  record_list_bounds(key, list);
  touched(key.key);
}

void Database::list_trim(const KeyRef& key, Entry* entry, size_t first, size_t count) {
  List& list = entry->object<List>();
  const size_t size = list.items.size();
  CHECK(first + count <= size);
  if (first + count < size) list.items.erase_range(first + count, size - first - count);
  if (first != 0) list.items.erase_range(0, first);
  list.first_index += static_cast<int64_t>(first);
  record_list_bounds(key, list);
  touched(key.key);
}

}  // namespace sluice
