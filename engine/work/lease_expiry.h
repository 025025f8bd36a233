// Leases that expire: the job waits again, or fails after too many lost leases (`crash_limit`).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/work/queue_work.h"

namespace sluice {

// The error of a job that fails because its leases were lost.
inline constexpr Bytes kLeaseLost = "lease lost";
// Ends the run of an active job as one whose lease has run out. `error`: of the job if it fails.
void lose_lease(QueueWork& work, Job* job, Bytes error);
// Ends at most `limit` runs whose lease or MAXRUN is over; returns their number.
size_t expire_leases(QueueWork& work, size_t limit);
// The connection of tied leases is lost: they end after the grace time. If there are very many,
// some are shortened at once and the rest by continue_lost_connections(), which timers call.
void lose_connection(QueueWork& work, uint64_t client_id);
void continue_lost_connections(QueueWork& work);

}  // namespace sluice
