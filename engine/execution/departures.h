// Departures: waiters, watches and tied leases that have ended, but stand in lists of shards that
// could not be locked.
//
// A script may hold shards until somebody kills it, and a time-out, a lost connection or DISCARD
// must not wait for that. Nobody minds what stays in the lists: a waiter that has ended is passed
// over, and a watch set without its connection is only written to. Both are kept alive here and
// taken out when the shards are free; an Execution looks after each of its lock holds. Tied leases
// are journaled when they end, so they wait for the shard's timers, as do those that are too many
// to end at once.
//
// Any thread, and under any locks but its own: it takes shards by try_lock only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/clients/client.h"
#include "engine/keyspace/waiter.h"

namespace sluice {

class Engine;

class Departures {
 public:
  // `keys`: where the waiter still stands.
  void leave(std::shared_ptr<Waiter> waiter, std::vector<std::string> keys);
  // `watched`: which keys still know the set.
  void leave(std::unique_ptr<WatchSet> set, std::vector<WatchedKey> watched);

  // A lost connection that may hold tied leases in a shard; and those that a shard's timers, which
  // hold its lock, are to look for.
  void leave_ties(unsigned shard, uint64_t client_id);
  std::vector<uint64_t> take_ties(unsigned shard);

  // Without a lock.
  bool none() const { return !waiting_.load(std::memory_order_relaxed); }
  // Takes out what stands in shards that are free now. The caller holds none.
  void settle(Engine& engine);

 private:
  struct Departure {
    std::shared_ptr<Waiter> waiter;
    std::vector<std::string> keys;
    std::unique_ptr<WatchSet> watch_set;
    std::vector<WatchedKey> watched;
  };
  static bool settle_one(Engine& engine, Departure& departure);

  std::atomic<bool> waiting_{false};
  Mutex mutex_;
  std::vector<Departure> departures_ GUARDED_BY(mutex_);
  std::vector<std::pair<unsigned, uint64_t>> ties_ GUARDED_BY(mutex_);  // shard, client
};

}  // namespace sluice
