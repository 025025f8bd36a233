// AdoptedEdits: changes of one queue's adopted keys, which Q.MOVE, Q.CANCEL and expired leases
// make.
//
// Keys are changed by Database's functions, so their effects, WATCHes and waiters are those of
// plain commands. The caller settles the notes that the changes leave (AdoptedWork::settle).
//
// Made for each use, never kept. REQUIRES for all functions: `locked` has the shards of the keys.
#pragma once

#include <optional>
#include <string>

#include "engine/keyspace/database.h"

namespace sluice {

class AdoptedEdits {
 public:
  AdoptedEdits(Shards& shards, ShardMask locked, Unit& unit, const Queue& queue)
      : shards_(shards), locked_(locked), unit_(unit), queue_(queue) {}

  // Whether the key is absent or holds a sorted set.
  bool can_put_pending(size_t key);
  void put_pending(size_t key, Bytes id, double score);
  bool remove_pending(size_t key, Bytes id);
  bool remove_active(Bytes id);
  // The key of a member's payload, if it holds a string.
  std::optional<std::string> find_payload(Bytes id);
  void remove_payload(const std::string& name);

 private:
  Database database_of(const KeyRef& key);

  Shards& shards_;
  const ShardMask locked_;
  Unit& unit_;
  const Queue& queue_;
};

}  // namespace sluice
