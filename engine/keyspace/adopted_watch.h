// How the keys that queues have adopted (Q.ADOPT) are watched: which they are in each shard, and
// what a unit has changed in them.
//
// The verbs of Database note each change of a watched key's element in the unit, with what was
// there before; at the end of the command AdoptedWork::settle makes transitions of the notes. A
// shard in which no key is watched has no AdoptedWatches: that null pointer is all that a raw
// command sees of it. Whoever runs a command on a watched key holds the shards of the whole group
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
  // Null: nobody watches the key.
  const AdoptedWatch* find(int database, Bytes key) const;
  // A bit for each shard that has to be locked with this one: for a change of the key of this name
  // in whichever database (MOVE names two), or of any key.
  uint32_t shards_of(Bytes key) const;
  uint32_t shards() const { return shards_; }
  void add(int database, Bytes key, AdoptedWatch watch);
  // Forgets what belongs to the group.
  void remove(const AdoptedGroup* group);
  bool empty() const { return count_ == 0; }
  // A group of this shard's whose keys have changed where not all of its shards were locked, and
  // which has not been looked at since.
  std::shared_ptr<AdoptedGroup> take_missed();

 private:
  std::array<std::map<std::string, AdoptedWatch, std::less<>>, kDatabases>
      keys_;  // by Database::index()
  size_t count_ = 0;
  uint32_t shards_ = 0;
};

// One change of a watched key.
struct AdoptedNote {
  enum class What : uint8_t {
    kMember,     // an element came, went, or has another score
    kKeyGone,    // the key is gone with `members` elements: DEL, RENAME, FLUSHDB, its expiry
    kOtherType,  // the key has come to hold another type
    kQueue,      // the queue itself is gone, or has another name
  };
  What what = What::kMember;
  std::shared_ptr<AdoptedGroup> group;
  size_t key = 0;
  std::string name = {};  // the element; otherwise the key
  // kMember: whether it was there before, and with which score (pending keys)
  bool was_there = false;
  double old_score = 0;
  double new_score = 0;
  uint64_t members = 0;
};

struct AdoptedNotes {
  std::vector<AdoptedNote> notes;
  // Lines for the server's log, to be written when nothing is locked.
  std::vector<std::string> warnings;
};

// --- Called by Database where Shard::adopted is not null ---

// Before `member` of a sorted set gets this score; `found` is null if it is new.
void note_sorted_put(Shard& shard, Unit& unit, int database, Bytes key, Bytes member,
                     const ScoredMember* found, double score);
// Before it is removed.
void note_sorted_remove(Shard& shard, Unit& unit, int database, Bytes key,
                        const ScoredMember& member);
// An element of a set has come (or gone).
void note_set_change(Shard& shard, Unit& unit, int database, Bytes key, Bytes member, bool came);
// A key has come into being, with a type.
void note_new_key(Shard& shard, Unit& unit, int database, const Entry& entry);
// A key is about to go, with all that it holds.
void note_key_gone(Shard& shard, Unit& unit, int database, const Entry& entry);
// The same for all watched keys of a database of this shard.
void note_flush(Shard& shard, Unit& unit, int database);

// The queue has adopted keys and leaves the keyspace, or its name.
void note_queue_gone(Shard& shard, Unit& unit, Queue& queue);
void note_queue_moved(Shard& target, Unit& unit, Queue& queue);

}  // namespace sluice
