// Runs: renewed, acknowledged, taken off their jobs.
#include "engine/work/run.h"

#include <algorithm>

#include "engine/queue/queue_error.h"
#include "engine/work/ends.h"
#include "engine/work/progress.h"

namespace sluice {

namespace {

void adapt(QueueWork& work) {
  Queue& queue = work.queue();
  const Adaptive& adaptive = queue.config.values().adaptive;
  if (adaptive.max == 0 || ++queue.adaptive_runs < Queue::kRunsToAdapt) return;
  queue.adaptive_runs = 0;
  const double mean = queue.stats.all.recent_run_ms.mean();
  const uint64_t before = queue.adaptive_max;
  uint64_t max = before;
  if (mean > static_cast<double>(adaptive.high_ms)) {
    max = max > adaptive.min + adaptive.step ? max - adaptive.step : adaptive.min;
  } else if (mean < static_cast<double>(adaptive.low_ms)) {
    max = std::min(max + adaptive.step, adaptive.max);
  }
  queue.adaptive_max = queue.limiter.max_active = max;
  if (max > before) work.signal();
  work.touched();
}

// The lease has completed the job, or the job that its successor has replaced: the worker repeats
// an acknowledgement because it lost the reply.
bool is_acknowledged(const Job* job, uint64_t lease) {
  if (job == nullptr || lease == 0) return false;
  if (job->state == JobState::kCompleted && job->end()->last_token == lease) return true;
  return job->extras_if() != nullptr && job->extras_if()->acknowledged == lease;
}

}  // namespace

Result<Job*> find_leased(const Queue& queue, Bytes id, uint64_t lease) {
  Job* job = queue.find(id);
  if (job == nullptr) return QueueError("NOJOB").with("id", id).status();
  if (lease == 0 && queue.config.values().fencing) {
    return bad_field("lease");
  }
  if (job->run() != nullptr && (lease == 0 || job->run()->token == lease)) return job;
  return QueueError("STALELEASE")
      .with("id", id)
      .with("state", job_state_name(queue.shown_state(job)))
      .status();
}

void count_failed_run(const Job& job) {
  const JobRun& run = *job.run();
  if (run.worker != nullptr && !run.cancelled) ++run.worker->failed;
}

JobRun end_run(QueueWork& work, Job* job, bool counts) {
  Queue& queue = work.queue();
  queue.unplace(job);
  JobRun run = std::move(*job->run());
  job->extras().run = nullptr;
  const int64_t run_ms = std::max<int64_t>(0, queue.queue_ms - run.started_ms);
  if (counts) {
    queue.for_each_stats_line(*job, [&](StatsLine& line) {
      line.run_ms.record(run_ms);
      line.recent_run_ms.record(run_ms);
    });
  }
  if (run.charged_ms != 0) {
    Group* group = job->lane->group;
    const double real_ms = static_cast<double>(run_ms) * job->cost();
    queue.lanes.charge_end(group, run.charged_ms, real_ms, queue.queue_ms);
    work.record_group_share(*group);
    work.record_own_share();
  }
  queue.workers.leave(run.worker);
  run.worker = nullptr;
  return run;
}

Status acknowledge_job(QueueWork& work, Bytes id, uint64_t lease, Bytes result) {
  const Result<Job*> leased = find_leased(work.queue(), id, lease);
  if (!leased.ok()) {
    return is_acknowledged(work.queue().find(id), lease) ? Status() : leased.status();
  }
  if (Worker* worker = (*leased)->run()->worker) {
    ++worker->completed;
    work.queue().hear_worker(worker);
  }
  const JobRun run = end_run(work, *leased, true);
  finish_job(work, *leased, JobState::kCompleted, {}, result, &run);
  adapt(work);
  return {};
}

Result<TouchOutcome> touch_job(QueueWork& work, Bytes id, uint64_t lease,
                               std::optional<int64_t> lease_ms, const Bytes* progress,
                               const Holder& holder) {
  Queue& queue = work.queue();
  const Result<Job*> leased = find_leased(queue, id, lease);
  if (!leased.ok()) return leased.status();
  Job* job = *leased;
  JobRun& run = *job->run();
  queue.hear_worker(run.worker);
  // A restart gives every lease its whole term again, so a new term is recorded; a renewal is not.
  bool changed = false;
  if (!run.cancelled) {
    changed = lease_ms && *lease_ms != run.lease_ms;
    if (lease_ms) run.lease_ms = *lease_ms;
    queue.set_deadline(job, work.times().steady_ms + run.lease_ms);
  }
  set_holder(work, job, holder);
  if (progress != nullptr) {
    report_progress(work, job, *progress);
  } else if (changed) {
    work.record_state(job, EventType::kNone);
  }
  const int64_t left_ms = std::max<int64_t>(0, run.due_steady() - work.times().steady_ms);
  return TouchOutcome{left_ms, run.cancelled, run.cancel_reason};
}

}  // namespace sluice
