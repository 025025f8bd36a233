// Steering of single jobs: Q.CANCEL and Q.MOVE.
#include "engine/work/steer.h"

#include <algorithm>

#include "engine/reply/reply.h"
#include "engine/work/ends.h"
#include "engine/work/run.h"

namespace sluice {

namespace {

// A holder that speaks RESP3 now hears at once; others hear with their next TOUCH.
void push_cancel(QueueWork& work, const Job& job, const JobRun& run, Bytes reason) {
  std::shared_ptr<ClientPort> port = run.holder.lock();
  if (port == nullptr) return;
  Delivery delivery{std::move(port), {}, Delivery::Kind::kPush};
  RespReply push(delivery.bytes, 3);
  push.push(5);
  push.bulk("q.cancel");
  push.bulk(work.key());
  push.bulk(job.id());
  push.integer(static_cast<int64_t>(run.token));
  push.bulk(reason);
  work.unit().deliveries.push_back(std::move(delivery));
}

}  // namespace

void signal_cancel(QueueWork& work, Job* job, Bytes reason, std::optional<int64_t> grace_ms) {
  JobRun& run = *job->run();
  run.cancelled = true;
  run.cancel_reason = reason;
  if (grace_ms) {
    work.queue().set_deadline(job,
                              std::min(run.deadline_steady, work.times().steady_ms + *grace_ms));
  }
  // Nothing extends the lease any more, and a restart gives it no more than its rest.
  run.lease_ms = std::max<int64_t>(1, run.deadline_steady - work.times().steady_ms);
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  fields.add("reason", reason);
  work.record_state(job, EventType::kSignalled, fields);
  push_cancel(work, *job, run, reason);
}

CancelOutcome cancel_job(QueueWork& work, Job* job, Bytes reason, std::optional<int64_t> grace_ms) {
  if (is_terminal(job->state)) return CancelOutcome::kGone;
  const std::string why = reason.empty() ? "cancelled" : std::string(reason);
  if (job->state != JobState::kActive) {
    work.settle(job);
    work.unplace_waiting(job);
    finish_job(work, job, JobState::kCancelled, why, {}, nullptr);
    return CancelOutcome::kCancelled;
  }
  if (job->extras().successor != nullptr) {
    work.queue().unplace(job);
    job->extras().successor = nullptr;
    work.queue().place(job);
  }
  if (grace_ms && *grace_ms == 0) {
    JobRun run = end_run(work, job, false);
    push_cancel(work, *job, run, why);
    finish_job(work, job, JobState::kCancelled, why, {}, &run);
    return CancelOutcome::kCancelled;
  }
  signal_cancel(work, job, why, grace_ms);
  return CancelOutcome::kSignalled;
}

bool move_job(QueueWork& work, Job* job, const MoveSpec& spec) {
  if (job->state >= JobState::kActive) return false;
  Queue& queue = work.queue();
  const uint8_t band = spec.band.value_or(job->band);
  // PRI alone, with the band that the job has.
  if (band == job->band && !spec.front && !spec.back && !spec.boost_ms && !spec.delay_ms &&
      !spec.at_ms) {
    return true;
  }
  work.settle(job);
  const bool was_pending = job->state == JobState::kPending;
  work.unplace_waiting(job);
  const bool was_lifo = job->lane->lifo;
  JobExtras& extras = job->extras();
  // A moved job is bound to its ticket, also if it comes from a band without pairing.
  extras.bind();
  if (band != job->band || was_lifo) work.change_lane(job, band, true);
  if (spec.boost_ms) extras.boost_ms = *spec.boost_ms;
  if (spec.delay_ms || spec.at_ms) {
    extras.gate_ms = work.gate_of(spec.delay_ms, spec.at_ms);
    extras.at_ms = work.kept_at(spec.at_ms);
    extras.release_ms = std::max(extras.gate_ms, queue.queue_ms);
  }
  if (spec.front || spec.back) {
    extras.gate_ms = 0;
    // Its release is the moment at which its delay is over: its wait and its rank count from it.
    if (extras.release_ms > queue.queue_ms) {
      extras.release_ms = queue.queue_ms;
      extras.at_ms = 0;
    }
  }
  if (spec.front) {
    // The last job that was moved ranks lowest, so it is first.
    job->rank = kFrontRanks - static_cast<int64_t>(queue.next_seq++);
  } else if (spec.back) {
    // Behind all jobs of the band, also delayed and active ones; among equal ranks it is last.
    job->rank = std::max(queue.queue_ms, queue.lanes.band(band)->last_rank());
    extras.arrival = job->arrival();
    job->seq = queue.next_seq++;
  } else {
    rank_by_release(job);
  }
  work.place_waiting(job, was_pending ? QueueWork::Backlog::kKept : QueueWork::Backlog::kJoins);
  work.record_state(job, EventType::kMoved);
  work.signal();
  return true;
}

}  // namespace sluice
