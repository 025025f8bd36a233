// Database: one numbered database of one locked shard, as seen by a unit of work. Keys are changed
// only by its functions, streams by those of StreamEdits: each changes memory and, if the unit
// records, writes the effect.
//
// A handle of three pointers, made for each command and never kept. REQUIRES for all functions: the
// unit holds the shard's mutex. Pointers to entries are valid until the entry's key is deleted,
// replaced or (strings) written; pointers to nodes until their element is written or removed.
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

// The thresholds at which Redis changes its encodings; collections.h says what they mean here. For
// the whole process; CONFIG SET changes them while commands run, for later writes.
struct EncodingLimits {
  std::atomic<size_t> hash_listpack_entries{512};
  std::atomic<size_t> hash_listpack_value_bytes{64};
  std::atomic<size_t> set_intset_entries{512};
  std::atomic<size_t> sorted_listpack_entries{128};
  std::atomic<size_t> sorted_listpack_value_bytes{64};
  // A longer sparse HyperLogLog becomes dense.
  std::atomic<size_t> hll_sparse_max_bytes{3000};
};
extern EncodingLimits g_encoding_limits;

// Whether Redis keeps the collection in its small encoding after adding this element.
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

// Above these sizes a value that moves is journaled as one record: the number of elements, the
// bytes of a string, the memory of any other value. For the whole process; tests lower them.
struct MoveLimits {
  std::atomic<size_t> elements{1000};
  std::atomic<size_t> string_bytes{64 * 1024};
  std::atomic<size_t> memory_bytes{1024 * 1024};
};
extern MoveLimits g_move_limits;

class Database {
 public:
  // `number`: as clients know it.
  Database(Shard& shard, int number, Unit& unit) NO_THREAD_SAFETY_ANALYSIS
      : shard_(&shard),
        number_(number),
        index_(shard.places[static_cast<size_t>(number)]),
        unit_(&unit) {}
  // The database whose keys are at this index, which records and queues use.
  static Database at_index(Shard& shard, int index, Unit& unit);

  int number() const { return number_; }
  // Its index in Shard::databases, which records use.
  int index() const { return index_; }
  size_t size() const { return keyspace().entries.size(); }
  const Keyspace& keyspace() const NO_THREAD_SAFETY_ANALYSIS {
    return shard_->databases[static_cast<size_t>(index_)];
  }

  // --- Keys ---

  // The key's entry, or null. Deletes an expired key, as an effect.
  Entry* find(const KeyRef& key);
  // Writes a whole string value, replacing any value. `expire_ms` 0: never.
  void put_string(const KeyRef& key, Bytes value, int64_t expire_ms);
  // The same if the caller has just looked up the key (null: absent). `lent`: memory that holds
  // `value` and may be kept instead of copying it; null: none.
  void put_string(const KeyRef& key, Entry* found, Bytes value, int64_t expire_ms,
                  LentWord* lent = nullptr);
  // Makes the string `size` long with `bytes` at `offset`. `found` is its entry, or null for a new
  // key.
  void write_string(const KeyRef& key, Entry* found, size_t offset, Bytes bytes, size_t size);
  // Changes the string to `value` and keeps its expiry. Only the difference is recorded.
  void change_string(const KeyRef& key, Entry* found, Bytes value);
  // Makes a new empty collection for an absent key, or in place of `old`, which is removed with its
  // expiry. The caller adds an element in the same unit.
  Entry* create(const KeyRef& key, Type type, Entry* old = nullptr);
  // Adds an entry of any type but a queue, with its expiry. REQUIRES: the entry has this key, which
  // is absent.
  void put_entry(const KeyRef& key, OwnedEntry made);
  void remove(const KeyRef& key, Entry* entry);
  // Removes a collection that has lost its last element. Returns whether it did.
  bool remove_if_empty(const KeyRef& key, Entry* entry);
  // 0: never expires.
  void set_expire(const KeyRef& key, Entry* entry, int64_t expire_ms);
  // Moves the value itself and its expiry to `to` in `target` (perhaps another shard or database),
  // replacing the value there. A large value is journaled as kMoveKey if the journal accepts that,
  // else as a whole. REQUIRES: `to` is not the same key.
  void move(const KeyRef& from, Entry* entry, Database target, const KeyRef& to);
  // Copies the value in the same way. REQUIRES: not a queue (those: copy_into() of engine/work).
  void copy(Entry* entry, Database target, const KeyRef& to);
  // Removes everything in this database of this shard. Not recorded: one kFlush covers all shards,
  // see record_flush().
  void clear();
  // Two databases of this shard exchange their keys. Waiters and watchers stay with the numbers and
  // are notified. Not recorded: one record_places() covers all shards.
  static void swap(Shard& shard, int first, int second, Unit& unit);
  // Deletes up to `limit` expired keys and returns their number.
  size_t expire_due(size_t limit);

  // --- Hashes ---
  // hash_put returns whether the field is new, hash_delete whether it existed.
  bool hash_put(const KeyRef& key, Entry* entry, Bytes field, Bytes value);
  bool hash_delete(const KeyRef& key, Entry* entry, Bytes field);

  // --- Sets ---
  bool set_add(const KeyRef& key, Entry* entry, Bytes member);
  bool set_remove(const KeyRef& key, Entry* entry, Bytes member);

  // --- Sorted sets ---
  // Replaces the score of an existing member. `found` is the result of members.find(). The caller
  // must reject NaN.
  void sorted_put(const KeyRef& key, Entry* entry, ScoredMember* found, Bytes member, double score);
  void sorted_remove(const KeyRef& key, Entry* entry, ScoredMember* member);

  // --- Lists ---
  // Positions count from the head, beginning with 0.
  void list_push(const KeyRef& key, Entry* entry, Bytes item, bool front);
  void list_pop(const KeyRef& key, Entry* entry, bool front);
  void list_set(const KeyRef& key, Entry* entry, size_t position, Bytes item);
  // Inserts before the item at `position`; position == size appends.
  void list_insert(const KeyRef& key, Entry* entry, size_t position, Bytes item);
  // Erases the items at these positions, which ascend.
  void list_erase(const KeyRef& key, Entry* entry, const std::vector<size_t>& positions);
  // Keeps `count` items from `first` on.
  void list_trim(const KeyRef& key, Entry* entry, size_t first, size_t count);

  // Invalidates WATCHes and tracked copies of the key, as every change here does. For commands that
  // do so in Redis even if they change nothing (LTRIM).
  void break_watches(Bytes key) NO_THREAD_SAFETY_ANALYSIS {
    if (unit_->observer != nullptr || shard_->watched_keys != 0) [[unlikely]]
      tell_watchers(key);
  }

  // Publishes a keyspace notification. Database publishes the events that always follow from its
  // functions: a key is new, has expired, or was removed with its last element.
  void notify(KeyEvent event, Bytes key) {
    if (unit_->observer != nullptr) [[unlikely]]
      unit_->observer->event(*unit_, event, number_, key);
  }

  // Notifies waiters that the key has (more) elements. Functions that add elements do it.
  void signal(Bytes key);
  // Notifies waiters at a queue of a change of this job; or of the queue as a whole: it was
  // created, was deleted, or has begun to miss events.
  void signal_job(Bytes key, Bytes job_id);
  void signal_queue(Bytes key);
  // The same, if the queue has left its name, where another one may be before they are examined.
  void signal_queue_gone(Bytes key);
  // Notifies them of another event in its log: its number, its type as a bit (event_bit), its job.
  void signal_event(Bytes key, uint64_t seq, uint32_t type, Bytes job_id);

  Shard& shard() { return *shard_; }

  // Applies one decoded effect where records decide (Unit::told); `key` is effect.key. Returns
  // false if the effect is damaged. Queues that it changed are added to unit.dirty_queues, for
  // their timers.
  static bool apply(Shard& shard, Unit& unit, const KeyRef& key, const Effect& effect);
  // The same for kMoveKey, which may name another shard.
  static bool apply_move(Shards& shards, Unit& unit, const Effect& effect);
  // For prefetching what apply() will read: first the places of the key, then, once those have
  // arrived, its element's, if the effect has one.
  static void prefetch_key(const Shard& shard, const KeyRef& key, const Effect& effect);
  static ElementPlace element_of(const Shard& shard, const KeyRef& key, const Effect& effect);

  // Records that all keys at the index (kAllDatabases: at every index) were removed, in every
  // shard.
  static void record_flush(Unit& unit, uint8_t index);
  // Records the places of the databases in `shard`, which are the same in every shard.
  static void record_places(Unit& unit, const Shard& shard);

 private:
  friend class StreamEdits;

  Keyspace& mutable_keyspace() NO_THREAD_SAFETY_ANALYSIS {
    return shard_->databases[static_cast<size_t>(index_)];
  }
  // Whether a queue has adopted a key of this shard (Q.ADOPT). Changes must be noted then.
  bool has_adopted_keys() const NO_THREAD_SAFETY_ANALYSIS { return shard_->adopted != nullptr; }
  // Notifies watchers. Every function calls it once for the key that it changes.
  void touched(Bytes key) {
    ++unit_->changes;
    break_watches(key);
  }
  void tell_watchers(Bytes key);
  // `replaces`: the key had a value just before, so it is not new.
  void insert_entry(const KeyRef& key, Entry* entry, bool replaces = false);
  void unlink(const KeyRef& key, Entry* entry);
  // Frees an unlinked entry with its value. A large value or a queue is freed when the unit has
  // ended.
  void discard(Entry* entry);
  // Hands all keys over to the unit.
  void retire_keys(Keyspace& keys);
  static void break_swapped_watches(Shard& shard, int number, int other, Unit& unit);
  void leave_for(Queue& queue, const Database& target, const KeyRef& to);
  void arrive(const KeyRef& to, Queue& queue, bool by_record);
  bool moves_by_record(const Entry& entry) const;
  void track_expiry(const KeyRef& key, int64_t expire_ms);
  void untrack_expiry(const KeyRef& key, int64_t expire_ms);
  // Records the items at the positions [from, to).
  void record_list_items(const KeyRef& key, const List& list, size_t from, size_t to);
  void record_list_bounds(const KeyRef& key, const List& list);
  void apply_list(const KeyRef& key, const Effect& effect);
  void apply_sorted(const KeyRef& key, const Effect& effect);
  bool apply_queue(const KeyRef& key, const Effect& effect);
  void signal_told(const KeyRef& key, const Effect& effect, const Queue& queue, uint64_t last_seq);
  void record_whole(const KeyRef& key, const Entry& entry);
  void record_string(Bytes key, Bytes value, int64_t expire_ms, LentWord* lent);
  void record_differences(const KeyRef& key, Bytes old, Bytes value);
  void record_whole_stream(const KeyRef& key, const Stream& stream);
  bool apply_stream(const KeyRef& key, const Effect& effect);
  Entry* replay_collection(const KeyRef& key, Type type);

  Shard* shard_;
  int number_;  // waiters and watchers use it
  int index_;
  Unit* unit_;
};

// Whether Redis would store this text as an integer (OBJECT ENCODING int, members of an intset).
bool is_integer_text(Bytes text);

}  // namespace sluice
