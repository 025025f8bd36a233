// AdoptedState: state that is shared by all queues of a server that have adopted Redis keys
// (Q.ADOPT). The engine owns it.
#pragma once

#include <atomic>
#include <cstddef>

#include "engine/base/log_pace.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/adopted_keys.h"

namespace sluice {

class Acl;

struct AdoptedState {
  // The arguments must outlive this object.
  AdoptedState(Shards& all_shards, const Acl& users) : shards(all_shards), acl(users) {}

  // The timers of the group's queue look at its keys.
  void look_later(AdoptedGroup& group) const {
    group.missed.store(true);
    shards[group.home].next_due_steady_ms.store(0, std::memory_order_release);
  }

  Shards& shards;
  const Acl& acl;

  // The number of queues that have adopted keys. While it is 0, no command checks for watched keys.
  // Changed under the locks of all shards, so a holder of any of them reads the right value.
  std::atomic<size_t> queues{0};

  // Lines of the log that clients can cause at will: each kind once a minute, by the steady clock
  // of a batch (Times).
  LogPace queue_gone;
  LogPace adoption_ended;
  LogPace key_gone;
  LogPace key_type;
  LogPace lease_lost;
  LogPace payload_stays;
};

}  // namespace sluice
