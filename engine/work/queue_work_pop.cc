// Q.POP: which job goes next, and its admission.
#include "engine/work/queue_work.h"

#include <algorithm>

#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/shard.h"

namespace sluice {

// --- Choice ---

bool QueueWork::slots_fit(const Job& job, const PopSpec& spec) const {
  return has_queue_slots(*queue_, job) &&
         (spec.cap == 0 || queue_->limiter.used + job.cost() <= spec.cap);
}

QueueWork::Choice QueueWork::choose(const PopSpec& spec) {
  const Limiter& limiter = queue_->limiter;
  if (queue_->count(JobState::kPending) == 0 || limiter.paused) return {};
  queue_->lanes.run_rates(queue_->queue_ms);
  if (limiter.rate_ready_ms(queue_->queue_ms) != 0) return {};
  if (spec.id) return choose_by_id(spec);
  const Choice best = first_in_order(*queue_, spec.match, queue_->queue_ms);
  // The next job waits for its slots; nobody passes it because it is large.
  if (best.job != nullptr && !slots_fit(*best.job, spec)) return {};
  return best;
}

QueueWork::Choice QueueWork::choose_by_id(const PopSpec& spec) {
  Job* job = queue_->find(*spec.id);
  if (job == nullptr || queue_->shown_state(job) != JobState::kPending) return {};
  if (!queue_->lanes.allows(job, queue_->queue_ms) || !slots_fit(*job, spec)) return {};
  // Slots that become free are kept for whoever is large and first: of its lane those of group and
  // keys, of all the queue's.
  if (!queue_->lanes.allows(job->lane->first(), queue_->queue_ms)) return {};
  const Job* first = first_in_order(*queue_, {}, queue_->queue_ms).job;
  if (first != nullptr && first != job && !has_queue_slots(*queue_, *first)) return {};
  if (!spec.match.empty() &&
      std::none_of(spec.match.begin(), spec.match.end(),
                   [&](const std::string& name) { return job->lane->keys->contains(name); })) {
    return {};
  }
  const Job* ticket = queue_->owned_ticket(job);
  return {job, effective_band(*queue_, *ticket, queue_->queue_ms),
          queue_->lanes.ready_key(job->lane, ticket)};
}

// --- Admission ---

std::string QueueWork::pop(const PopSpec& spec, const Holder& holder, std::vector<Job*>& jobs) {
  if (!spec.request_token.empty() && repeat_pop(spec, holder, jobs)) return {};
  if (spec.id) {
    const Job* job = queue_->find(*spec.id);
    if (job == nullptr || job->state >= JobState::kActive) {
      const Bytes state = job == nullptr ? Bytes("unknown") : job_state_name(job->state);
      return QueueError("GONE").with("id", *spec.id).with("state", state).text();
    }
  }
  while (jobs.size() < spec.count) {
    const Choice choice = choose(spec);
    if (choice.job == nullptr) break;
    admit(choice.job, spec, holder);
    jobs.push_back(choice.job);
  }
  return {};
}

// The same worker asks again because the reply was lost: it gets the same jobs, and full terms.
bool QueueWork::repeat_pop(const PopSpec& spec, const Holder& holder, std::vector<Job*>& jobs) {
  const Worker* worker = queue_->find_worker(spec.worker);
  if (worker == nullptr || worker->request_token != spec.request_token) return false;
  for (Job* job : worker->active) {
    if (job->run()->request_token == spec.request_token) jobs.push_back(job);
  }
  for (Job* job : jobs) {
    JobRun& run = *job->run();
    if (!run.cancelled) queue_->set_deadline(job, unit_->times.steady_ms + run.lease_ms);
    run.holder = holder.port;
    run.holder_protocol = holder.protocol;
    if (run.tied_client_id != 0) {
      queue_->tie(job, holder.client_id);
      tie_client(database_.shard(), holder.client_id, *queue_);
    }
    changed_ = true;
  }
  return !jobs.empty();
}

void QueueWork::admit(Job* job, const PopSpec& spec, const Holder& holder) {
  settle(job);
  unplace_waiting(job);
  const int64_t now = queue_->queue_ms;
  const QueueValues& values = queue_->config.values();
  JobExtras& extras = job->extras();
  const JobOptions* options = extras.options.get();
  extras.run = std::make_unique<JobRun>();
  JobRun& run = *extras.run;
  run.token = queue_->next_token++;
  run.worker = queue_->join_worker(spec.worker);
  run.request_token = spec.request_token;
  // A pop without a token forgets none.
  if (run.worker != nullptr && !spec.request_token.empty()) {
    run.worker->request_token = spec.request_token;
  }
  run.started_ms = now;
  run.started_steady = unit_->times.steady_ms;
  run.lease_ms = values.lease_ms;
  if (options != nullptr && options->lease_ms >= 0) run.lease_ms = options->lease_ms;
  if (spec.lease_ms >= 0) run.lease_ms = spec.lease_ms;
  run.deadline_steady = unit_->times.steady_ms + run.lease_ms;
  const int64_t max_run_ms =
      options != nullptr && options->max_run_ms >= 0 ? options->max_run_ms : values.max_run_ms;
  if (max_run_ms != 0) run.run_deadline_steady = unit_->times.steady_ms + max_run_ms;
  run.holder = holder.port;
  run.holder_protocol = holder.protocol;
  if (spec.tied && holder.client_id != 0) {
    run.tied_client_id = holder.client_id;
    tie_client(database_.shard(), holder.client_id, *queue_);
  }
  ++extras.attempts;
  job->state = JobState::kActive;
  if (values.fair) {
    Group* group = job->lane->group;
    run.charged_ms = expected_run_ms(*queue_) * job->cost();
    queue_->lanes.charge_start(group, run.charged_ms, now);
  }
  queue_->limiter.take_token(now);
  Lanes::take_tokens(job, now);
  queue_->place(job);
  const int64_t waited_ms = std::max<int64_t>(0, now - extras.release_ms);
  queue_->for_each_stats_line(*job, [&](StatsLine& line) {
    ++line.totals.started;
    line.wait_ms.record(waited_ms);
    line.recent_wait_ms.record(waited_ms);
  });
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  if (run.worker != nullptr) fields.add("worker", run.worker->name);
  fields.add("attempt", extras.attempts);
  record_state(job, EventType::kStarted, fields);
  record_limits(*job);
}

}  // namespace sluice
