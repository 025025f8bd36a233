// Departures: waiters, watches and tied leases that have ended but are still in lists of shards
// that could not be locked; and waiters that get a last look at their keys.
//
// A script may hold shards until it is killed, and a time-out, a lost connection or DISCARD must
// not wait for that. Entries that remain in the lists are harmless: a waiter that has ended is
// skipped, and a watch set without its connection is only written to. Both are kept alive here and
// removed when the shards are free; an Execution tries that after each of its lock holds. The end
// of a tied lease is journaled, so tied leases wait for the shard's timers; and so do those that
// are too many to end at once.
//
// Thread-safe. May be called under any locks but its own: it takes shards by try_lock only.
#pragma once

#include <atomic>
#include <deque>
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
  // `keys`: the keys that still list the waiter.
  void leave(std::shared_ptr<Waiter> waiter, std::vector<std::string> keys);
  // `watched`: the keys that still list the set.
  void leave(std::unique_ptr<WatchSet> set, std::vector<WatchedKey> watched);

  // Notes a lost connection that may hold tied leases in a shard; and returns those of a shard to
  // its timers, which hold its lock.
  void leave_ties(unsigned shard, uint64_t client_id);
  std::vector<uint64_t> take_ties(unsigned shard);

  // The waiter's time is over, and it is served as its key is then (Waiter::served_when_late): by
  // the timers, which need no hurry for a shard that a script holds. It keeps waiting until then,
  // and may be served otherwise.
  void leave_late(std::shared_ptr<Waiter> waiter);
  // Takes some of them, the earliest first.
  std::vector<std::shared_ptr<Waiter>> take_late(size_t limit);
  bool has_late() const { return has_late_.load(std::memory_order_acquire); }

  // Whether it is empty but for waiters that are late. Takes no lock.
  bool none() const { return !waiting_.load(std::memory_order_relaxed); }
  // Removes entries from shards that are free now. The caller holds no shard.
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
  std::atomic<bool> has_late_{false};
  std::deque<std::shared_ptr<Waiter>> late_ GUARDED_BY(mutex_);
};

}  // namespace sluice
