// What a shard knows of its queues besides their keys: which of them have something to do when, and
// which connections hold tied leases.
//
// All of it is guarded by the shard's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/structures/ordered_index.h"

namespace sluice {

class Queue;
class Unit;
struct Shard;
struct Times;

// The queues of a shard by their names, and by the time at which run_queue_timers() has work for
// them. Owns none.
struct QueueTimers {
  // Names in the order of their bytes.
  struct ByKey {
    bool operator()(const Queue* a, const Queue* b) const;
  };

  OrderedIndex<Queue*, ByKey> by_name;  // all of them: (Queue::database, the name's first bytes)
  OrderedIndex<Queue*> by_time;         // all of them: queue_timers.cc says where
  OrderedIndex<Queue*> by_steady;       // (Queue::listed_due_steady, 0)
  // Greater than all tokens of leases and numbers of events that a queue here has ever given.
  uint64_t floor = 1;
};

// Puts the queue where it belongs by its next_due_ms() and next_due_steady(), and lets the shard's
// next_due times fall to them. To be called after every change of a queue; costs nothing where
// neither time has changed. A retired queue is not listed again.
void list_queue_timers(Shard& shard, Queue& queue);
// Takes it out of them: it leaves the shard.
void unlist_queue_timers(Shard& shard, Queue& queue);

// The queue that has been due longest; null: none is due. Sets its timer_lag_ms.
Queue* due_queue(Shard& shard, const Times& now);
// Sets the shard's next_due times of queues anew.
void set_queue_due_times(Shard& shard);

// The queue's key is gone: takes the queue out of the unit's dirty list and of the timers. Its
// leases are stale from now on, and a later queue's tokens are greater than its own: the token
// floor rises, as a record of the unit. The queue itself stays until the unit ends.
void retire_queue(Shard& shard, Unit& unit, Queue* queue);
// The same for all queues of a database (Database::index()) at once. They stay where they are: the
// caller retires them with their entries. Returns those that show plain keys (Q.ADOPT).
std::vector<Queue*> retire_queues(Shard& shard, Unit& unit, int database);

// Raises the floor under the tokens of queues that are made later.
void raise_token_floor(Shard& shard, Unit& unit, uint64_t token);
// The queues of two databases (Database::index()) exchange their names: from now on their tokens
// are greater than all that queues of these names have given. Raises the floor, records the heads.
void outgrow_tokens(Shard& shard, Unit& unit, int first, int second);

// Names of queues in which a connection holds (or held) tied leases, by its id. An entry stays
// until the connection goes; a name whose queue is gone means nothing.
struct TiedClients {
  using Names = std::set<std::pair<int, std::string>>;  // Database::index(), key
  std::map<uint64_t, Names> by_client;
};
// A connection holds a tied lease in this queue. Called when it gets one.
void tie_client(Shard& shard, uint64_t client_id, const Queue& queue);
// The same for all tied leases of a queue.
void tie_clients(Shard& shard, const Queue& queue);
// Queues of a connection that is lost, at most so many; forgets them. None: it has no more.
std::vector<std::pair<int, std::string>> untie_client(Shard& shard, uint64_t client_id,
                                                      size_t most);

}  // namespace sluice
