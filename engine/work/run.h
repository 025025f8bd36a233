// A run: how it is renewed, acknowledged and taken off its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/work/pop.h"

namespace sluice {

// The active job that a worker names with its lease; `lease`: the token, or 0 for `*`. Refused with
// NOJOB, STALELEASE or (fencing on, `*`) BADFIELD.
Result<Job*> find_leased(const Queue& queue, Bytes id, uint64_t lease);
// Takes the run off an active job: its slots, its charge, its worker. The job is left unplaced.
// `counts`: the run says how long jobs take.
JobRun end_run(QueueWork& work, Job* job, bool counts);
// Counts a run as a failure of its worker, unless its job was told to stop. Before end_run().
void count_failed_run(const Job& job);

// Q.ACK. Acknowledging again with the lease that completed the job succeeds, and changes nothing.
Status acknowledge_job(QueueWork& work, Bytes id, uint64_t lease, Bytes result);

struct TouchOutcome {
  int64_t left_ms = 0;
  bool cancelled = false;
  std::string cancel_reason;
};
// Q.TOUCH. `lease_ms`: a new term; `progress`: null where none was given.
Result<TouchOutcome> touch_job(QueueWork& work, Bytes id, uint64_t lease,
                               std::optional<int64_t> lease_ms, const Bytes* progress,
                               const Holder& holder);

}  // namespace sluice
