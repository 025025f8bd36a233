// Which waiters at a queue are served next (engine/keyspace/waiter.h holds them).
//
// Among the pops: for the first job in dispatch order that any of them accepts (MATCH, CAP, ID),
// the earliest that accepts it. Pops with the same MATCH and CAP accept the same jobs, so only the
// first of each such signature is considered, and among the pops by ID first the one of the job
// that is next anyway. Plain functions. REQUIRES for everything here: the lock of the queue's
// shard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/keyspace/waiter.h"
#include "engine/reply/reply.h"
#include "engine/work/pop.h"

namespace sluice {

// What a blocked Q.POP wants.
struct PopRequest : WaiterRequest {
  PopSpec spec;
};
// What a blocked Q.GET wants, and how it is told of the job's end.
struct EndRequest : WaiterRequest {
  // It waits for the end of the successor that waits under the id now.
  bool awaits_successor = false;
  // Writes the reply. The job is in no index, and its `end` is set.
  virtual void tell(const Queue& queue, const Job& job, const Times& now, Reply& reply) const = 0;
};
// A waiter for this pop, without its `serve` function and its keys.
std::shared_ptr<Waiter> make_pop_waiter(std::unique_ptr<PopRequest> request, int64_t timeout_ms);
// A pop by this ID is over: the job is unknown, active or ended, and the pop is answered GONE.
bool is_over(const Queue& queue, Bytes id);
// Worker and token of a pop with REQID, as one text; empty: it has none.
std::string request_key(const PopSpec& spec);

struct NextPop {
  std::shared_ptr<Waiter> waiter{};  // null if none can be served now
  size_t looks = 0;                  // the number of pops examined
  // None of the others can be served; those with ID are too many to be examined at once.
  bool too_many = false;
};

// The pop that gets the next job. Considers pops up to the order `last`.
NextPop next_pop(const QueueWaiters& waiters, QueueWork& work, uint64_t last);
// There is a job for this pop now.
bool can_be_served(const Waiter& waiter, QueueWork& work);

// The waiters for jobs and events that a change concerns. `accepts` decides for a job or the whole
// queue; for an event, its type.
std::vector<std::shared_ptr<Waiter>> concerned_waiters(const QueueWaiters& waiters,
                                                       const SignalledKey& ready,
                                                       const Entry& entry);
// Those that are answered when the queue is gone.
std::vector<std::shared_ptr<Waiter>> waiters_of_lost_queue(const QueueWaiters& waiters);

}  // namespace sluice
