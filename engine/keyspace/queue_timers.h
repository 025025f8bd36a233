// The queues of a shard by the time of their next work, and the connections that hold tied leases.
//
// Guarded by the shard's lock.
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

// The queues of one database in a shard by name, and by the time at which run_queue_timers() has
// work for them. Does not own them. Each database has its own, so that a flush takes all of them at
// once.
struct QueueTimers {
  // Names in the order of their bytes.
  struct ByKey {
    bool operator()(const Queue* a, const Queue* b) const;
  };

  OrderedIndex<Queue*, ByKey> by_name;  // all of them: (the name's first bytes, 0)
  OrderedIndex<Queue*> by_time;         // all of them, see list_queue_timers
  OrderedIndex<Queue*> by_steady;       // (Queue::listed_due_steady, 0)
  // Greater than all tokens of leases and numbers of events that a queue here has ever used.
  uint64_t floor = 1;
};

// Lists the queue by its next_due_ms() and next_due_steady(), and lowers the shard's next_due times
// to them. Call it for every queue that a unit has changed; it costs nothing if neither time has
// changed. A retired queue is not listed again. `keeps_due`: what is due already stays so until
// run_queue_timers() has run. (A command may apply a refilled rate before its timer, which then has
// still to serve the pops that wait for it.)
void list_queue_timers(Shard& shard, Queue& queue, bool keeps_due = false);
// Removes the queue from the timers, when it leaves the shard.
void unlist_queue_timers(Shard& shard, Queue& queue);

// The queue that has been due longest, or null. Sets its timer_lag_ms.
Queue* due_queue(Shard& shard, const Times& now);
// Recomputes the shard's next_due times of queues. It is due at once if the timers must look at
// adopted keys.
void set_queue_due_times(Shard& shard);

// The queue's key is deleted: removes the queue from the unit's dirty list and from the timers. Its
// leases are stale from now on, and a later queue's tokens are greater than its own: the token
// floor rises, as a record of the unit. The queue itself exists until the unit ends.
void retire_queue(Shard& shard, Unit& unit, Queue* queue);
// The same for all queues of a database (Database::index()) at once. The caller retires the queues
// with their entries. Returns those that have adopted plain keys (Q.ADOPT).
std::vector<Queue*> retire_queues(Shard& shard, Unit& unit, int database);

// Raises the lower bound for the tokens of queues that are made later.
void raise_token_floor(Shard& shard, Unit& unit, uint64_t token);
// The queues of two databases (Database::index()) exchange their names: from now on their tokens
// are greater than all tokens of earlier queues of these names. Raises the floor and records the
// heads.
void outgrow_tokens(Shard& shard, Unit& unit, int first, int second);

// Names of queues in which a connection holds (or held) tied leases, by the connection's id. An
// entry exists until the connection closes; the name of a deleted queue has no effect.
struct TiedClients {
  using Names = std::set<std::pair<int, std::string>>;  // Database::index(), key
  std::map<uint64_t, Names> by_client;
};
// A connection holds a tied lease in this queue. Called when it gets the lease.
void tie_client(Shard& shard, uint64_t client_id, const Queue& queue);
// The same for all tied leases of a queue.
void tie_clients(Shard& shard, const Queue& queue);
// Returns at most `most` queues of a lost connection and removes them here. Empty: there are no
// more.
std::vector<std::pair<int, std::string>> untie_client(Shard& shard, uint64_t client_id,
                                                      size_t most);

}  // namespace sluice
