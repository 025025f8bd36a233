// Database: one numbered database of one locked shard, as seen by a unit of work. Its verbs are the
// only way to change keys: each changes memory and, where the unit records, writes the effect.
//
// A handle of three pointers, made per command, never kept. REQUIRES for everything here: the
// shard's mutex is held by the unit. Entry pointers stay valid until the entry's key is deleted,
// replaced or (strings) written; node pointers until their element is written or removed.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/keyspace/collections.h"
#include "engine/keyspace/element_place.h"
#include "engine/keyspace/events.h"
#include "engine/keyspace/lent_word.h"
#include "engine/keyspace/shard.h"
#include "engine/structures/stream.h"
#include "engine/unit/unit.h"

namespace sluice {

// The thresholds at which Redis changes its encodings; see collections.h on what they mean here.
// Of the process; CONFIG SET changes them while commands run, for what is written from then on.
struct EncodingLimits {
  std::atomic<size_t> hash_listpack_entries{512};
  std::atomic<size_t> hash_listpack_value_bytes{64};
  std::atomic<size_t> set_intset_entries{512};
  std::atomic<size_t> sorted_listpack_entries{128};
  std::atomic<size_t> sorted_listpack_value_bytes{64};
  // Of a sparse HyperLogLog; a longer one becomes dense.
  std::atomic<size_t> hll_sparse_max_bytes{3000};
};
extern EncodingLimits g_encoding_limits;

// Whether Redis keeps the collection in its small encoding now that it has this element.
inline bool fits_listpack(const Hash& hash, Bytes field, Bytes value) {
  return hash.fields.size() <= g_encoding_limits.hash_listpack_entries &&
         field.size() <= g_encoding_limits.hash_listpack_value_bytes &&
         value.size() <= g_encoding_limits.hash_listpack_value_bytes;
}
inline bool fits_listpack(const SortedSet& sorted, Bytes member) {
  return sorted.members.size() <= g_encoding_limits.sorted_listpack_entries &&
         member.size() <= g_encoding_limits.sorted_listpack_value_bytes;
}
bool fits_intset(const Set& set, Bytes member);

// From where on a value that moves is journaled as one record: more elements, more bytes of a
// string, more bytes of memory of anything else. Of the process; tests set less.
struct MoveLimits {
  std::atomic<size_t> elements{1000};
  std::atomic<size_t> string_bytes{64 * 1024};
  std::atomic<size_t> memory_bytes{1024 * 1024};
};
extern MoveLimits g_move_limits;

struct StreamRecord;

class Database {
 public:
  // `number`: as clients know it.
  Database(Shard& shard, int number, Unit& unit) NO_THREAD_SAFETY_ANALYSIS
      : shard_(&shard),
        number_(number),
        index_(shard.places[static_cast<size_t>(number)]),
        unit_(&unit) {}
  // The one whose keys are at this index: what a record or a queue names.
  static Database at_index(Shard& shard, int index, Unit& unit);

  int number() const { return number_; }
  // Where its keys are in Shard::databases, and what records call it.
  int index() const { return index_; }
  size_t size() const { return keyspace().entries.size(); }
  const Keyspace& keyspace() const NO_THREAD_SAFETY_ANALYSIS {
    return shard_->databases[static_cast<size_t>(index_)];
  }

  // --- Keys ---

  // The key's entry, or null. An expired key is deleted on the way, as an effect.
  Entry* find(const KeyRef& key);
  // Puts a whole string value, replacing whatever was there. `expire_ms` 0: none.
  void put_string(const KeyRef& key, Bytes value, int64_t expire_ms);
  // The same where the caller has just looked the key up (null: absent).
  // `lent`: what may be kept instead of a copy of `value`, which is that word; null: nothing.
  void put_string(const KeyRef& key, Entry* found, Bytes value, int64_t expire_ms,
                  LentWord* lent = nullptr);
  // The string becomes `size` long with `bytes` at `offset`; `found` is its entry or null for a new
  // key.
  void write_string(const KeyRef& key, Entry* found, size_t offset, Bytes bytes, size_t size);
  // The string becomes `value` and keeps its expiry; only what differs is recorded.
  void change_string(const KeyRef& key, Entry* found, Bytes value);
  // A new empty collection under an absent key. The caller puts an element into it in the same
  // unit.
  Entry* create(const KeyRef& key, Type type);
  // The same in place of `old`, which goes with its expiry (null: the key is absent).
  Entry* recreate(const KeyRef& key, Entry* old, Type type);
  // Puts an entry that was made elsewhere, of whatever type but a queue, with its expiry. REQUIRES:
  // it is of this key, which is absent.
  void put_entry(const KeyRef& key, OwnedEntry made);
  void remove(const KeyRef& key, Entry* entry);
  // Ends a collection that has lost its last element; true if it did.
  bool remove_if_empty(const KeyRef& key, Entry* entry);
  // 0: never.
  void set_expire(const KeyRef& key, Entry* entry, int64_t expire_ms);
  // Moves the value itself and its expiry to `to` in `target` (another shard or database perhaps),
  // whose old value is gone afterwards. A large one is journaled as kMoveKey where the journal
  // takes that, else all of it is. REQUIRES: `to` is not the same key.
  void move(const KeyRef& from, Entry* entry, Database target, const KeyRef& to);
  // Copies likewise; the source stays. REQUIRES: it is no queue (those: copy_into of engine/work).
  void copy(Entry* entry, Database target, const KeyRef& to);
  // Everything in this database of this shard. Not recorded: one kFlush covers all shards, see
  // record_flush().
  void clear();
  // Two databases of this shard exchange their keys; who waits or watches there stays and is told.
  // Not recorded: one record_places() covers all shards.
  static void swap(Shard& shard, int first, int second, Unit& unit);
  // Deletes up to `limit` keys whose time has come; the number deleted.
  size_t expire_due(size_t limit);

  // --- Hashes --- (true: the field is new / was there)
  bool hash_put(const KeyRef& key, Entry* entry, Bytes field, Bytes value);
  bool hash_delete(const KeyRef& key, Entry* entry, Bytes field);

  // --- Sets ---
  bool set_add(const KeyRef& key, Entry* entry, Bytes member);
  bool set_remove(const KeyRef& key, Entry* entry, Bytes member);

  // --- Sorted sets ---
  // The score of an existing member is replaced; `found` is what members.find() said, or null. NaN
  // is the caller's error.
  void sorted_put(const KeyRef& key, Entry* entry, ScoredMember* found, Bytes member, double score);
  void sorted_remove(const KeyRef& key, Entry* entry, ScoredMember* member);

  // --- Lists --- (positions count from the head, 0 first)
  void list_push(const KeyRef& key, Entry* entry, Bytes item, bool front);
  void list_pop(const KeyRef& key, Entry* entry, bool front);
  void list_set(const KeyRef& key, Entry* entry, size_t position, Bytes item);
  // Before the item at `position`; position == size: at the end.
  void list_insert(const KeyRef& key, Entry* entry, size_t position, Bytes item);
  // At these positions, ascending.
  void list_erase(const KeyRef& key, Entry* entry, const std::vector<size_t>& positions);
  // Keeps `count` items from `first` on.
  void list_trim(const KeyRef& key, Entry* entry, size_t first, size_t count);

  // --- Streams --- (a stream stays when it is empty)
  // REQUIRES: `id` is higher than the stream's last one. `words`: names and values in turn.
  void stream_add(const KeyRef& key, Entry* entry, const StreamId& id,
                  std::span<const Bytes> words);
  bool stream_delete(const KeyRef& key, Entry* entry, const StreamId& id);
  // The number of entries that went. REQUIRES: trim.by is not kNothing.
  uint64_t stream_trim(const KeyRef& key, Entry* entry, const StreamTrim& trim);
  void stream_set_head(const KeyRef& key, Entry* entry, const StreamId& last_id,
                       const StreamId& max_deleted_id, uint64_t entries_added);
  // Makes the group where it is new.
  void stream_put_group(const KeyRef& key, Entry* entry, Bytes name, const StreamId& last_id,
                        int64_t entries_read);
  bool stream_remove_group(const KeyRef& key, Entry* entry, Bytes name);
  // REQUIRES for these: the group is there.
  // The consumer, who has been seen now; made if there is none of the name. The time of a consumer
  // that was there is journaled with what it is given only.
  StreamConsumer* stream_see_consumer(const KeyRef& key, Entry* entry, Bytes group, Bytes name);
  void stream_remove_consumer(const KeyRef& key, Entry* entry, Bytes group, Bytes name);
  // REQUIRES: `ids` is not empty.
  void stream_put_pending(const KeyRef& key, Entry* entry, Bytes group, StreamConsumer* consumer,
                          std::span<const StreamId> ids, int64_t delivered_ms, int64_t deliveries);
  // How many of them were pending.
  uint64_t stream_acknowledge(const KeyRef& key, Entry* entry, Bytes group,
                              std::span<const StreamId> ids);

  // What every verb does for the key that it changes: its WATCHes are broken, and who tracks it is
  // told. For commands that do so in Redis even where they change nothing (LTRIM).
  void break_watches(Bytes key);

  // Tells whoever listens to keyspace notifications what has happened to the key. Verbs do so where
  // it always follows from them: a key is new, has expired, or went with its last element.
  void notify(KeyEvent event, Bytes key) {
    if (unit_->observer != nullptr) [[unlikely]]
      unit_->observer->event(*unit_, event, number_, key);
  }

  // Tells waiters that the key has (more) elements. Verbs that add elements do it.
  void signal(Bytes key);
  // Tells those who wait at a queue that something has happened to this job of it; or to the queue
  // as a whole: it has come into being, is gone, or has begun to miss events.
  void signal_job(Bytes key, Bytes job_id);
  void signal_queue(Bytes key);
  // Or that its log has another event: its number, its type as a bit (event_bit), its job.
  void signal_event(Bytes key, uint64_t seq, uint32_t type, Bytes job_id);

  Shard& shard() { return *shard_; }

  // Applies one decoded effect during replay; `key` is of effect.key.
  // False: it is damaged. Queues that it changed are in unit.dirty_queues, for their timers.
  static bool apply(Shard& shard, Unit& unit, const KeyRef& key, const Effect& effect);
  // The same for kMoveKey, which may name another shard.
  static bool apply_move(Shards& shards, Unit& unit, const Effect& effect);
  // For bringing what apply() will read into the cache: first the places of the key, then, once
  // those have arrived, its element's, if it has one.
  static void prefetch_key(const Shard& shard, const KeyRef& key, const Effect& effect);
  static ElementPlace element_of(const Shard& shard, const KeyRef& key, const Effect& effect);

  // Records that all keys at the index (kAllDatabases: of all) are gone, in every shard.
  static void record_flush(Unit& unit, uint8_t index);
  // Records where the databases of `shard`, and so of every shard, are.
  static void record_places(Unit& unit, const Shard& shard);

 private:
  Keyspace& mutable_keyspace() NO_THREAD_SAFETY_ANALYSIS {
    return shard_->databases[static_cast<size_t>(index_)];
  }
  // Some key of this shard is shown by a queue (Q.ADOPT); what changes is to be noted then.
  bool has_adopted_keys() const NO_THREAD_SAFETY_ANALYSIS { return shard_->adopted != nullptr; }
  // Tells watchers; every verb calls it once for the key that it changes.
  void touched(Bytes key);
  // `replaces`: the key was there a moment ago, so it is not new.
  void insert_entry(const KeyRef& key, Entry* entry, bool replaces = false);
  Entry* make(const KeyRef& key, Type type, bool replaces);
  void unlink(const KeyRef& key, Entry* entry);
  // Frees an unlinked entry with its value; what is large, and a queue, when the unit has ended.
  void discard(Entry* entry);
  // The keys go with the unit, as a whole.
  void retire_keys(Keyspace& keys);
  static void break_swapped_watches(Shard& shard, int number, int other, Unit& unit);
  void leave_for(Queue& queue, const Database& target, const KeyRef& to);
  void arrive(const KeyRef& to, Queue& queue, bool by_record);
  bool moves_by_record(const Entry& entry) const;
  void note_elements(const KeyRef& key, const Entry& entry);
  void track_expiry(const KeyRef& key, int64_t expire_ms);
  void untrack_expiry(const KeyRef& key, int64_t expire_ms);
  // The items at the positions [from, to).
  void record_list_items(const KeyRef& key, const List& list, size_t from, size_t to);
  void record_list_bounds(const KeyRef& key, const List& list);
  void apply_list(const KeyRef& key, const Effect& effect);
  void apply_sorted(const KeyRef& key, const Effect& effect);
  bool apply_queue(const KeyRef& key, const Effect& effect);
  void record_stream(const KeyRef& key, EffectType type, const StreamRecord& record);
  // A change that breaks no WATCH, with its record.
  void stream_changed(const KeyRef& key, EffectType type, const StreamRecord& record);
  void record_whole(const KeyRef& key, const Entry& entry);
  void record_string(Bytes key, Bytes value, int64_t expire_ms, LentWord* lent);
  void record_differences(const KeyRef& key, Bytes old, Bytes value);
  void record_whole_stream(const KeyRef& key, const Stream& stream);
  bool apply_stream(const KeyRef& key, const Effect& effect);
  Entry* replay_collection(const KeyRef& key, Type type);

  Shard* shard_;
  int number_;  // waiters and watchers go by it
  int index_;
  Unit* unit_;
};

// True if Redis would keep this text as an integer (OBJECT ENCODING int, members of an intset).
bool is_integer_text(Bytes text);

}  // namespace sluice
