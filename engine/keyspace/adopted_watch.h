// The watch on keys that queues have adopted (Q.ADOPT): the adopted keys of each shard, and what a
// unit has changed in them.
//
// Database's functions note each change of an element of a watched key in the unit, with its
// previous value. At the end of the command AdoptedWork::settle turns the notes into transitions. A
// shard without watched keys has no AdoptedWatches, so the cost for other commands is one test of a
// null pointer. A command on a watched key holds the shards of the whole group
// (Execution::lock_for), so that the transitions are journaled in the unit of the change.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/limits.h"

namespace sluice {

struct AdoptedGroup;
class Entry;
class Queue;
class ScoredMember;
struct Shard;
class Unit;

// What a watched key is to its queue: the number of a pending key, or one of these.
inline constexpr size_t kAdoptedActive = 1000;
inline constexpr size_t kAdoptingQueue = 1001;  // the queue's own key

struct AdoptedWatch {
  std::shared_ptr<AdoptedGroup> group;
  size_t key = 0;
};

// The watched keys of one shard, under its lock.
class AdoptedWatches {
 public:
  using Keys = std::map<std::string, AdoptedWatch, std::less<>>;

  // Null if the key is not watched.
  const AdoptedWatch* find(int database, Bytes key) const;
  // A bit for each shard that has to be locked together with this one: for a change of the key with
  // this name in any database (MOVE names two), or of any key.
  uint32_t shards_of(Bytes key) const;
  uint32_t shards() const { return shards_; }
  void add(int database, Bytes key, AdoptedWatch watch);
  // Removes the watches of the group.
  void remove(const AdoptedGroup* group);
  bool empty() const { return count_ == 0; }
  const Keys& keys(int database) const { return keys_[static_cast<size_t>(database)]; }
  // A group homed in this shard at whose keys the timers must look.
  std::shared_ptr<AdoptedGroup> must_look() const;

 private:
  std::array<Keys, kDatabases> keys_;  // by Database::index()
  size_t count_ = 0;
  uint32_t shards_ = 0;
};

// One change of a watched key.
struct AdoptedNote {
  enum class What : uint8_t {
    kMember,     // an element was added or removed, or has another score
    kKeyCame,    // the key came with `members` elements, too many for a note each
    kKeyGone,    // the key was removed with `members` elements: DEL, RENAME, FLUSHDB, its expiry
    kOtherType,  // the key now holds another type
    kQueue,      // the queue itself was removed or renamed
  };
  What what = What::kMember;
  std::shared_ptr<AdoptedGroup> group;
  size_t key = 0;
  std::string name = {};  // the element; otherwise the key
  // kMember: whether it existed before, and its score then (pending keys)
  bool was_there = false;
  double old_score = 0;
  double new_score = 0;
  // kKeyCame, kKeyGone; the members by band if the key holds bands in its scores
  uint64_t members = 0;
  std::map<uint8_t, uint64_t> by_band = {};
};

struct AdoptedNotes {
  std::vector<AdoptedNote> notes;
  // Lines for the server's log, written when no lock is held.
  std::vector<std::string> warnings;
};

// --- Called by Database if Shard::adopted is not null ---

// Call before `member` of a sorted set gets this score; `found` is null if it is new.
void note_sorted_put(Shard& shard, Unit& unit, int database, Bytes key, Bytes member,
                     const ScoredMember* found, double score);
// Call before it is removed.
void note_sorted_remove(Shard& shard, Unit& unit, int database, Bytes key,
                        const ScoredMember& member);
// An element of a set was added or removed.
void note_set_change(Shard& shard, Unit& unit, int database, Bytes key, Bytes member, bool came);
// A whole value has come to this key: RENAME, MOVE, COPY, RESTORE.
void note_whole_key(Shard& shard, Unit& unit, int database, const Entry& entry);
// A key was created, with a type.
void note_new_key(Shard& shard, Unit& unit, int database, const Entry& entry);
// Call before a key is removed with all of its elements.
void note_key_gone(Shard& shard, Unit& unit, int database, const Entry& entry);
// The same for all watched keys of a database of this shard.
void note_flush(Shard& shard, Unit& unit, int database);

// The queue has adopted keys and is removed from the keyspace or renamed.
void note_queue_gone(Shard& shard, Unit& unit, Queue& queue);
void note_queue_moved(Shard& target, Unit& unit, Queue& queue);

}  // namespace sluice
