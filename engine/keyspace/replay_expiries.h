// ReplayExpiries: the expiries that replay has met, as plain lists. Entering each into its index
// when it is met would take a fifth of the time of loading many keys that expire; sorted and
// appended at the end they take a small part of that.
//
// Memory: 16 bytes for each expiry that holds and at most about as many for those that do not hold
// any more. Belongs to one replay and its thread; build() comes once, after the last record.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "engine/keyspace/shard.h"

namespace sluice {

class ReplayExpiries {
 public:
  void add(unsigned shard, int database, int64_t expire_ms, uint64_t hash);
  // One that was added before, or stood in the index before replay began.
  void remove(unsigned shard, int database, int64_t expire_ms, uint64_t hash);
  // All keys of this database in this shard are gone. The index is the caller's to clear.
  void clear(unsigned shard, int database);
  // Brings the index of this database in this shard up to date, and forgets the lists.
  void build(unsigned shard, int database, OrderedIndex<>& index);

 private:
  struct Expiry {
    uint64_t expire_ms;
    uint64_t hash;
    auto operator<=>(const Expiry&) const = default;
  };
  // Multisets: an expiry that was added and removed again stands in both.
  struct Changes {
    std::vector<Expiry> added;
    std::vector<Expiry> removed;
    size_t settle_at = 1024;  // removed ones
  };

  Changes& of(unsigned shard, int database) {
    return changes_[shard * kDatabases + static_cast<unsigned>(database)];
  }
  static void sort(std::vector<Expiry>& expiries);
  static void settle(Changes& changes);

  std::array<Changes, size_t{kShards} * kDatabases> changes_;
};

}  // namespace sluice
