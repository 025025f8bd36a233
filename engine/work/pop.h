// Q.POP: the choice of the next job, and its admission: it becomes active, with a lease.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/queue/dispatch_order.h"
#include "engine/work/queue_work.h"

namespace sluice {

// The arguments of Q.POP (and of Q.ACK ... POP) for one queue.
struct PopSpec {
  std::string worker;  // empty: not named
  uint32_t count = 1;
  int64_t lease_ms = -1;  // -1: the job's, else the queue's
  bool tied = false;
  uint64_t cap = 0;  // 0: none
  std::optional<std::string> id;
  std::vector<std::string> match;
  std::string request_token;  // empty: none
};

// The client that takes leases: for pushes and TIED.
struct Holder {
  std::shared_ptr<ClientPort> port;
  uint64_t client_id = 0;
};

// The jobs that are active now, or still are by the same request token, in order; none: nothing
// can be given out now. Refused with GONE for a pop by ID whose job is unknown, active or ended.
Result<std::vector<Job*>> pop_jobs(QueueWork& work, const PopSpec& spec, const Holder& holder);
// For a pop that pop_jobs() serves later: from now on the same request again is a repeat.
void note_request(QueueWork& work, const PopSpec& spec);
// The job that pop_jobs() would take first, and its place in the dispatch order among several
// waiters' choices; null: none.
DispatchChoice choose_job(QueueWork& work, const PopSpec& spec);
// The client that holds the lease of an active job from now on.
void set_holder(QueueWork& work, Job* job, const Holder& holder);

}  // namespace sluice
