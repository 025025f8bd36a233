// The statistics of a queue whose jobs change by records (a standby): what the verbs of engine/work
// count where the records are made. So the ETA, MAXWAIT and `adaptive` continue after a takeover.
//
// A record says how a job is then, not what has happened. So some rare runs count differently: one
// that was cancelled, and whose worker then gave it back or was lost, is in the distributions; and
// without events (`events` 0) a run whose end has no time is not, nor an added job. The totals of
// the whole queue are in its head. Plain functions of one queue, under the shard's lock; nothing is
// counted during a replay.
#pragma once

#include "engine/queue/job_record.h"
#include "engine/queue/queue.h"

namespace sluice {

// What the end of a job in this state counts as, also where the records are made.
uint64_t Totals::*total_of(JobState state);

// Counts what a record is going to change in a job; null: there is no job of this id. Returns
// whether that adds a job: count_told_job() is called then, when the record has been applied.
bool count_told_change(Queue& queue, const Job* job, const RecordedEvent& event,
                       const RecordedState& state);
void count_told_job(Queue& queue, const Job& job, const RecordedEvent& event);
// The job is going to be removed.
void count_told_removal(Queue& queue, const Job& job, const RecordedEvent& event);

}  // namespace sluice
