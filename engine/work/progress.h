// What running jobs report of themselves: their progress, the events about it, and their logs.
//
// An event `progress` is written only for a job that a client waits for (Q.EVENTS ... ID). So it is
// in the job's record, and a replay, which has no clients, has the same events.
#pragma once

#include "engine/work/queue_work.h"

namespace sluice {

// Sets and records the progress of an active job.
void report_progress(QueueWork& work, Job* job, Bytes progress);
// Appends to the log of an active job, as much as `log_bytes` allows; its oldest bytes go first.
void append_log(QueueWork& work, Job* job, Bytes bytes);
// Writes events that are owed, of at most `limit` jobs. Returns the number of those examined.
size_t continue_progress(QueueWork& work, size_t limit);

}  // namespace sluice
