// How a job ends, or waits again after a run, and how long an ended job is retained.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/work/queue_work.h"

namespace sluice {

// An unplaced job ends; `run`: what end_run() returned, null if it did not run. A successor takes
// its place, else it is placed among the ended. Records it, ends or releases what needs it, and may
// destroy it.
void finish_job(QueueWork& work, Job* job, JobState state, Bytes error, Bytes result,
                const JobRun* run);
// The same after a run that was told to stop: it is not tried again.
void finish_cancelled(QueueWork& work, Job* job, const JobRun& run);
// Answers the clients that wait for the end of this job: now, since by the end of the unit the job
// may be destroyed, or another one may have its id.
void tell_end(QueueWork& work, const Job& job);
// An unplaced job that waits gives way to another one of its id: answers the clients that wait for
// its end, and destroys it.
void end_replaced(QueueWork& work, Job* job);
// The successor has become the job: clients that wait for its end wait for that of the job.
void tell_succession(QueueWork& work, const Job& job);
// An unplaced job waits again at its rank, not before the gate (0: now), bound to its ticket; or
// its successor does.
void return_job(QueueWork& work, Job* job, int64_t gate_ms, EventType event,
                const EventFields& fields);
// Drops at most `limit` completed and `limit` other ended jobs that are no longer retained.
void drop_retained(QueueWork& work, size_t limit);
// Q.PURGE: destroys an ended job.
void forget_job(QueueWork& work, Job* job);

}  // namespace sluice
