#include "engine/keyspace/replay_expiries.h"

#include <algorithm>
#include <iterator>

namespace sluice {

void ReplayExpiries::add(unsigned shard, int database, int64_t expire_ms, uint64_t hash) {
  of(shard, database).added.push_back({static_cast<uint64_t>(expire_ms), hash});
}

void ReplayExpiries::remove(unsigned shard, int database, int64_t expire_ms, uint64_t hash) {
  Changes& changes = of(shard, database);
  changes.removed.push_back({static_cast<uint64_t>(expire_ms), hash});
  if (changes.removed.size() < changes.settle_at) return;
  settle(changes);
  // In proportion, so that sorting costs each removal only a logarithm.
  changes.settle_at = 1024 + changes.added.size() + 2 * changes.removed.size();
}

void ReplayExpiries::clear(unsigned shard, int database) { of(shard, database) = Changes(); }

// Takes out of both lists what they share, and leaves them sorted.
void ReplayExpiries::settle(Changes& changes) {
  std::sort(changes.added.begin(), changes.added.end());
  if (changes.removed.empty()) return;
  std::sort(changes.removed.begin(), changes.removed.end());
  std::vector<Expiry> added;
  std::vector<Expiry> removed;
  std::set_difference(changes.added.begin(), changes.added.end(), changes.removed.begin(),
                      changes.removed.end(), std::back_inserter(added));
  std::set_difference(changes.removed.begin(), changes.removed.end(), changes.added.begin(),
                      changes.added.end(), std::back_inserter(removed));
  changes.added = std::move(added);
  changes.removed = std::move(removed);
}

void ReplayExpiries::build(unsigned shard, int database, OrderedIndex<>& index) {
  Changes& changes = of(shard, database);
  settle(changes);
  for (const Expiry& expiry : changes.removed) {
    const bool was_there = index.erase(expiry.expire_ms, expiry.hash);
    CHECK(was_there);
  }
  for (const Expiry& expiry : changes.added) index.insert(expiry.expire_ms, expiry.hash);
  changes = Changes();
}

}  // namespace sluice
