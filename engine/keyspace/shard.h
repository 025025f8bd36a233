// Shard: a sixteenth of all keys, with everything that belongs to them, under one mutex.
//
// Every access to `Keyspace`, watchers and waiters happens with `mutex` held, in Execution or in a
// walk; the atomics may be read by any thread. Shards are locked in ascending index, or by
// try_lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/mutex.h"
#include "engine/keyspace/adopted_watch.h"
#include "engine/keyspace/collections.h"
#include "engine/keyspace/entry.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/waiter.h"
#include "engine/ports/event_spill.h"
#include "engine/ports/journal.h"

namespace sluice {

inline constexpr unsigned kShards = 16;
// Longer than a shard is ever locked, except by a script.
inline constexpr int64_t kLockPatienceMs = 20;
inline constexpr int64_t kNeverMs = std::numeric_limits<int64_t>::max();

using ShardMask = uint32_t;
inline constexpr ShardMask kAllShards = (1U << kShards) - 1;

// A key with values derived from it: its hash, and the shard that its hash tag chooses.
struct KeyRef {
  Bytes key;
  uint64_t hash = 0;
  unsigned shard = 0;

  KeyRef() = default;
  explicit KeyRef(Bytes bytes) : key(bytes), hash(hash_bytes(bytes)) {
    const Bytes tag = hash_tag(bytes);
    // Uses the low bits: the maps inside a shard split by the high ones.
    shard = static_cast<unsigned>(tag.size() == bytes.size() ? hash : hash_bytes(tag)) % kShards;
  }
};

// The keys of one database in one shard.
struct Keyspace {
  SplitMap<Entry, EntryTraits> entries;
  // (expire_ms, hash of the key): a multiset; the key itself is found by its hash.
  OrderedIndex<> expiries;

  ~Keyspace() { entries.for_each(Entry::destroy); }
};

using DatabasePlaces = std::array<uint8_t, kDatabases>;

inline constexpr DatabasePlaces places_at_first() {
  DatabasePlaces places{};
  for (size_t number = 0; number < places.size(); ++number) {
    places[number] = static_cast<uint8_t>(number);
  }
  return places;
}

// The keys that one connection watches (WATCH). A change of such a key sets `broken` under the
// shard's lock. The connection reads it in EXEC with the shards of all its watched keys locked.
struct WatchSet {
  std::atomic<bool> broken{false};
};

struct Shard {
  TimedMutex mutex;
  unsigned index = 0;

  // By index, which is not the number that clients know: places[number] is the index of the keys of
  // database `number`, the same in every shard. SWAPDB exchanges two places and moves no key.
  std::array<Keyspace, kDatabases> databases GUARDED_BY(mutex);
  DatabasePlaces places GUARDED_BY(mutex) = places_at_first();
  std::array<std::unordered_map<std::string, std::vector<WatchSet*>>, kDatabases> watchers
      GUARDED_BY(mutex);
  size_t watched_keys GUARDED_BY(mutex) = 0;
  WaiterLists waiters GUARDED_BY(mutex);
  std::array<QueueTimers, kDatabases> queue_timers GUARDED_BY(mutex);  // by Queue::database
  TiedClients tied_clients GUARDED_BY(mutex);
  // The keys of this shard that queues have adopted (Q.ADOPT), and such queues; may be null.
  std::unique_ptr<AdoptedWatches> adopted GUARDED_BY(mutex);
  // Lower bound for the tokens of queues that are created later. The engine's, one for all shards,
  // raised under the lock of a queue that is deleted.
  std::atomic<uint64_t>* token_floor = nullptr;
  // The number of ids that queues have generated since the start (Q.ADD `*`). The engine's, one for
  // all shards.
  std::atomic<uint64_t>* generated_ids = nullptr;
  // Holds older events of queues; the engine's, may be null. Set before the first queue.
  EventSpill* event_spill = nullptr;

  // The lsn of the last unit that changed this shard: a read waits until it is durable.
  Lsn last_lsn GUARDED_BY(mutex) = 0;
  // When run_timers has work here, by each of the clocks of Times: the wall clock (keys that
  // expire), queue time (queues), the steady clock (leases, queues that are being freed).
  std::atomic<int64_t> next_due_ms{kNeverMs};
  std::atomic<int64_t> next_due_queue_ms{kNeverMs};
  std::atomic<int64_t> next_due_steady_ms{kNeverMs};
  // Written under the lock, read by any thread: the number of connections in tied_clients.
  std::atomic<size_t> tied_connections{0};
  // Written under the lock, read by any thread: DBSIZE and INFO.
  std::array<std::atomic<uint64_t>, kDatabases> key_counts{};
};

using Shards = std::array<Shard, kShards>;

}  // namespace sluice
