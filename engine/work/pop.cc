// Q.POP: which job goes next, and its admission.
#include "engine/work/pop.h"

#include <algorithm>

#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

bool slots_fit(const Queue& queue, const Job& job, const PopSpec& spec) {
  return has_queue_slots(queue, job) &&
         (spec.cap == 0 || queue.limiter.used + job.cost() <= spec.cap);
}

DispatchChoice choose_by_id(const Queue& queue, const PopSpec& spec) {
  Job* job = queue.find(*spec.id);
  if (job == nullptr || queue.shown_state(job) != JobState::kPending) return {};
  if (!queue.lanes.allows(job, queue.queue_ms) || !slots_fit(queue, *job, spec)) return {};
  // Slots that become free are kept for a large job that is first: those of group and keys for the
  // first of its lane, those of the queue for the first of all.
  if (!queue.lanes.allows(job->lane->first(), queue.queue_ms)) return {};
  const Job* first = first_in_order(queue, {}, queue.queue_ms).job;
  if (first != nullptr && first != job && !has_queue_slots(queue, *first)) return {};
  if (!spec.match.empty() &&
      std::none_of(spec.match.begin(), spec.match.end(),
                   [&](const std::string& name) { return job->lane->keys->contains(name); })) {
    return {};
  }
  const Job* ticket = queue.owned_ticket(job);
  return {job, effective_band(queue, *ticket, queue.queue_ms),
          queue.lanes.ready_key(job->lane, ticket)};
}

Worker* hear_worker(QueueWork& work, Bytes name) {
  Queue& queue = work.queue();
  const size_t known = queue.workers.by_name().size();
  Worker* worker = queue.hear_worker(name);
  if (queue.workers.by_name().size() != known) work.change_timers();
  return worker;
}

// The worker repeats a request because it lost the reply: it gets the same jobs, with full terms.
std::vector<Job*> repeat_pop(QueueWork& work, const Worker* worker, const PopSpec& spec,
                             const Holder& holder) {
  Queue& queue = work.queue();
  std::vector<Job*> jobs;
  if (worker == nullptr || worker->request_token != spec.request_token) return jobs;
  for (auto at = worker->active.begin(); at.valid(); at.next()) {
    if (at.value()->run()->request_token == spec.request_token) jobs.push_back(at.value());
  }
  for (Job* job : jobs) {
    JobRun& run = *job->run();
    if (!run.cancelled) queue.set_deadline(job, work.times().steady_ms + run.lease_ms);
    set_holder(work, job, holder);
  }
  return jobs;
}

void admit(QueueWork& work, Job* job, Worker* worker, const PopSpec& spec, const Holder& holder) {
  Queue& queue = work.queue();
  work.settle(job);
  work.unplace_waiting(job);
  const int64_t now = queue.queue_ms;
  const QueueValues& values = queue.config.values();
  JobExtras& extras = job->extras();
  const JobOptions* options = extras.options.get();
  extras.run = std::make_unique<JobRun>();
  JobRun& run = *extras.run;
  run.token = queue.next_token++;
  run.worker = worker;
  run.request_token = spec.request_token;
  run.started_ms = now;
  run.started_steady = work.times().steady_ms;
  run.lease_ms = values.lease_ms;
  if (options != nullptr && options->lease_ms >= 0) run.lease_ms = options->lease_ms;
  if (spec.lease_ms >= 0) run.lease_ms = spec.lease_ms;
  run.deadline_steady = work.times().steady_ms + run.lease_ms;
  const int64_t max_run_ms =
      options != nullptr && options->max_run_ms >= 0 ? options->max_run_ms : values.max_run_ms;
  if (max_run_ms != 0) run.run_deadline_steady = work.times().steady_ms + max_run_ms;
  run.holder = holder.port;
  if (spec.tied && holder.client_id != 0) {
    run.tied_client_id = holder.client_id;
    tie_client(work.database().shard(), holder.client_id, queue);
  }
  ++extras.attempts;
  job->state = JobState::kActive;
  if (values.fair) {
    Group* group = job->lane->group;
    run.charged_ms = expected_run_ms(queue) * job->cost();
    queue.lanes.charge_start(group, run.charged_ms, now);
  }
  queue.limiter.take_token(now);
  Lanes::take_tokens(job, now);
  queue.place(job);
  const int64_t waited_ms = std::max<int64_t>(0, now - extras.release_ms);
  queue.for_each_stats_line(*job, [&](StatsLine& line) {
    ++line.totals.started;
    line.wait_ms.record(waited_ms);
    line.recent_wait_ms.record(waited_ms);
  });
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  if (run.worker != nullptr) fields.add("worker", run.worker->name);
  fields.add("attempt", extras.attempts);
  work.record_state(job, EventType::kStarted, fields);
  work.record_limits(*job);
}

}  // namespace

DispatchChoice choose_job(QueueWork& work, const PopSpec& spec) {
  Queue& queue = work.queue();
  const Limiter& limiter = queue.limiter;
  if (queue.count(JobState::kPending) == 0 || limiter.paused) return {};
  queue.run_rates_early(queue.queue_ms);
  if (limiter.rate_ready_ms(queue.queue_ms) != 0) return {};
  if (queue.config.quiet(spec.worker)) return {};
  if (spec.id) return choose_by_id(queue, spec);
  const DispatchChoice best = first_in_order(queue, spec.match, queue.queue_ms);
  // The next job waits for its slots; nobody passes it because it is large.
  if (best.job != nullptr && !slots_fit(queue, *best.job, spec)) return {};
  return best;
}

Result<std::vector<Job*>> pop_jobs(QueueWork& work, const PopSpec& spec, const Holder& holder) {
  std::vector<Job*> jobs;
  Worker* worker = hear_worker(work, spec.worker);
  if (!spec.request_token.empty()) jobs = repeat_pop(work, worker, spec, holder);
  if (!jobs.empty()) return jobs;
  work.queue().workers.note_request(worker, spec.request_token);
  if (spec.id) {
    const Job* job = work.queue().find(*spec.id);
    if (job == nullptr || job->state >= JobState::kActive) {
      const Bytes state = job == nullptr ? Bytes("unknown") : job_state_name(job->state);
      return QueueError("GONE").with("id", *spec.id).with("state", state).status();
    }
  }
  while (jobs.size() < spec.count) {
    const DispatchChoice choice = choose_job(work, spec);
    if (choice.job == nullptr) break;
    admit(work, choice.job, worker, spec, holder);
    jobs.push_back(choice.job);
  }
  return jobs;
}

void note_request(QueueWork& work, const PopSpec& spec) {
  work.queue().workers.note_request(hear_worker(work, spec.worker), spec.request_token);
}

void set_holder(QueueWork& work, Job* job, const Holder& holder) {
  JobRun& run = *job->run();
  run.holder = holder.port;
  if (run.tied_client_id != 0 && holder.client_id != 0) {
    work.queue().tie(job, holder.client_id);
    tie_client(work.database().shard(), holder.client_id, work.queue());
  }
  work.change_timers();
}

}  // namespace sluice
