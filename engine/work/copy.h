// COPY of a queue.
#pragma once

#include "engine/work/queue_work.h"

namespace sluice {

// The queue of `work`, which is new, gets the configuration and the live jobs of another one.
// Active jobs wait again, as if they had never been popped; leases, statistics, events and ended
// jobs are not copied.
void copy_into(QueueWork& work, const Queue& source);

}  // namespace sluice
