// What a queue does when a time has come.
#pragma once

#include <cstddef>

#include "engine/work/queue_work.h"

namespace sluice {

// About `limit` jobs and events whose time has come: delays, TTLs, leases, run limits, retention,
// owed progress events; returns their number. Also a step of releases, lost connections and changes
// of the configuration; it refills rates and forgets workers.
size_t run_queue_timers(QueueWork& work, size_t limit);

}  // namespace sluice
