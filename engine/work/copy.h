// COPY of a queue.
#pragma once

#include <cstdint>

#include "engine/work/queue_work.h"

namespace sluice {

// The copy is one step, which holds all other clients up. So a queue with more than 4,000 live jobs
// or rules of its configuration, or with more than 4 MiB in its live jobs, must not be copied.
// Returns the limit that it exceeds, or 0.
uint64_t exceeded_copy_limit(const Queue& source);

// The queue of `work`, which is new, gets the configuration and the live jobs of another one.
// Active jobs wait again, as if they had never been popped; leases, statistics, events and ended
// jobs are not copied.
void copy_into(QueueWork& work, const Queue& source);

}  // namespace sluice
