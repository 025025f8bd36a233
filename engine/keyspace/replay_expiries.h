// ReplayExpiries: the expiries found in replay, as plain lists. Inserting each into its index at
// once would take a fifth of the time of loading many keys that expire; sorting them and appending
// them at the end takes a small part of that.
//
// Memory: 16 bytes for each valid expiry and at most about as many for those that are no longer
// valid. Belongs to one replay and its thread. Call build() once for each index, after the last
// record.
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
  // Removes an expiry that was added before, or that the index had before replay.
  void remove(unsigned shard, int database, int64_t expire_ms, uint64_t hash);
  // All keys of this database in this shard were removed. The caller clears the index.
  void clear(unsigned shard, int database);
  // Brings the index of this database in this shard up to date and clears the lists.
  void build(unsigned shard, int database, OrderedIndex<>& index);

 private:
  struct Expiry {
    uint64_t expire_ms;
    uint64_t hash;
    auto operator<=>(const Expiry&) const = default;
  };
  // Multisets: an expiry that was added and removed again is in both.
  struct Changes {
    std::vector<Expiry> added;
    std::vector<Expiry> removed;
    size_t settle_at = 1024;  // number of removed ones
  };

  Changes& of(unsigned shard, int database) {
    return changes_[shard * kDatabases + static_cast<unsigned>(database)];
  }
  static void sort(std::vector<Expiry>& expiries);
  static void settle(Changes& changes);

  std::array<Changes, size_t{kShards} * kDatabases> changes_;
};

}  // namespace sluice
