// AdoptedState: what the queues of a server that show plain Redis keys (Q.ADOPT) share. The engine
// owns it.
#pragma once

#include <atomic>
#include <cstddef>

#include "engine/base/log_pace.h"
#include "engine/keyspace/shard.h"

namespace sluice {

class Acl;

struct AdoptedState {
  // Both outlive it.
  AdoptedState(Shards& all_shards, const Acl& users) : shards(all_shards), acl(users) {}

  Shards& shards;
  const Acl& acl;

  // How many queues show keys: without one, nobody looks for watched keys. Changed under the locks
  // of all shards, so whoever holds one sees it right.
  std::atomic<size_t> queues{0};

  // Lines of the log that clients can bring about at will: each kind once a minute, by the steady
  // clock of a batch (Times).
  LogPace queue_gone;
  LogPace adoption_ended;
  LogPace key_gone;
  LogPace key_type;
  LogPace lease_lost;
  LogPace payload_stays;
};

}  // namespace sluice
