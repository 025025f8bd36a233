// Q.ADD: new jobs, and what IFDUP does where the id exists.
#include "engine/work/add.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <span>

#include "engine/keyspace/shard.h"
#include "engine/work/ends.h"
#include "engine/work/needs.h"
#include "engine/work/refusals.h"
#include "engine/work/steer.h"

namespace sluice {

namespace {

JobOptions options_of(const JobSpec& spec) {
  JobOptions options;
  if (spec.lease_ms) options.lease_ms = *spec.lease_ms;
  if (spec.max_run_ms) options.max_run_ms = *spec.max_run_ms;
  if (spec.retry) options.retry = static_cast<int32_t>(*spec.retry);
  if (spec.backoff_ms) {
    options.backoff_base_ms = spec.backoff_ms->first;
    options.backoff_max_ms = spec.backoff_ms->second;
  }
  for (const auto& [name, value] : spec.tags) options.tags.emplace_back(name, value);
  return options;
}

void name_needs(const JobSpec& spec, JobOptions& options) {
  options.needs.assign(spec.needs.begin(), spec.needs.end());
  options.needs.insert(options.needs.end(), spec.afters.begin(), spec.afters.end());
  options.after_count = static_cast<uint32_t>(spec.afters.size());
}

void merge_options(JobExtras& extras, const JobOptions& given) {
  const auto options = [&]() -> JobOptions& {
    if (extras.options == nullptr) extras.options = std::make_unique<JobOptions>();
    return *extras.options;
  };
  if (given.lease_ms >= 0) options().lease_ms = given.lease_ms;
  if (given.max_run_ms >= 0) options().max_run_ms = given.max_run_ms;
  if (given.retry >= 0) options().retry = given.retry;
  if (given.backoff_base_ms >= 0) {
    options().backoff_base_ms = given.backoff_base_ms;
    options().backoff_max_ms = given.backoff_max_ms;
  }
  if (!given.needs.empty()) {
    options().needs = given.needs;
    options().after_count = given.after_count;
  }
  if (!given.tags.empty()) options().tags = given.tags;
}

// --- New jobs ---

Job* build(QueueWork& work, const JobSpec& spec, uint8_t band, Bytes id,
           const Queue::NamedGroup& group, std::vector<std::string> unmet) {
  Queue& queue = work.queue();
  Job* job = Job::make(id, spec.payload);
  const int64_t now = queue.queue_ms;
  job->seq = queue.next_seq++;
  job->band = band;
  job->lane = queue.join_lane(band, group, spec.keys, false);
  int64_t gate_ms = work.gate_of(spec.delay_ms, spec.at_ms);
  if (gate_ms <= now) gate_ms = 0;
  const int64_t at_ms = work.kept_at(spec.at_ms);
  const int64_t boost_ms = spec.boost_ms.value_or(0);
  const int64_t ttl_ms = spec.ttl_ms.value_or(group.config.ttl_ms);
  const int64_t release_ms = std::max(now, gate_ms);
  job->rank = release_ms;  // what extras begin with
  const bool has_options = spec.lease_ms || spec.max_run_ms || spec.retry || spec.backoff_ms ||
                           !spec.needs.empty() || !spec.afters.empty() || !spec.tags.empty();
  if (has_options || gate_ms != 0 || at_ms != 0 || boost_ms != 0 || spec.cost.value_or(1) != 1 ||
      ttl_ms != 0 || !unmet.empty()) {
    JobExtras& extras = job->extras();
    extras.enqueued_ms = now;
    extras.gate_ms = gate_ms;
    extras.at_ms = at_ms;
    extras.boost_ms = boost_ms;
    extras.cost = spec.cost.value_or(1);
    if (ttl_ms != 0) extras.ttl_ms = ttl_ms;
    extras.unmet = std::move(unmet);
    if (has_options) {
      extras.options = std::make_unique<JobOptions>(options_of(spec));
      name_needs(spec, *extras.options);
    }
  }
  job->rank = release_ms - boost_ms;
  return job;
}

void place_new(QueueWork& work, Job* job) {
  work.queue().jobs.insert(job, hash_bytes(job->id()));
  work.place_waiting(job);
  work.record_put(job, EventType::kAdded);
  count_added(work, *job);
  work.signal_added();
}

// An id of a job that the queue chooses. No name of a queue gets one twice, as neither part goes
// back: not the time, across restarts, nor the number while the server runs. But a caller may have
// named a job so.
std::string generate_id(QueueWork& work) {
  std::atomic<uint64_t>& generated = *work.database().shard().generated_ids;
  std::string id;
  do {
    id = std::to_string(work.queue().queue_ms) + "-" +
         std::to_string(generated.fetch_add(1, std::memory_order_relaxed) + 1);
  } while (work.queue().find(id) != nullptr);
  return id;
}

// `replaces_ended`: an ended job of this id is retained, and the new one takes its place.
Result<AddOutcome> add_new(QueueWork& work, const JobSpec& spec, bool replaces_ended) {
  Queue& queue = work.queue();
  const QueueValues& values = queue.config.values();
  const Queue::NamedGroup group = queue.named_group(spec.group.value_or(Bytes()));
  const uint8_t band = spec.band.value_or(values.default_band);
  Status status = check_cost(queue, spec);
  if (!status.ok()) return status;
  Result<std::vector<std::string>> unmet = check_needs(work, spec);
  if (!unmet.ok()) return unmet.status();
  status = check_pause(work, values.limits.paused);
  if (status.ok()) status = check_pause(work, group.config.limits.paused);
  if (!status.ok()) return status;
  // Before another job is displaced for one that is then too late.
  Status too_late = check_wait(work, spec, band, group);
  const Newcomer newcomer = !too_late.ok()   ? Newcomer::kTooLate
                            : unmet->empty() ? Newcomer::kRuns
                                             : Newcomer::kBlocked;
  status = check_room(work, group, band, newcomer);
  if (status.ok()) status = std::move(too_late);
  if (!status.ok()) return status;
  const std::string id = spec.id == "*" ? generate_id(work) : std::string(spec.id);
  // What made room for the new job may have dropped the old one.
  if (Job* old = replaces_ended ? queue.find(id) : nullptr) {
    work.record_gone(id, EventType::kNone);
    queue.erase(old);
  }
  Job* job = build(work, spec, band, id, group, std::move(*unmet));
  place_new(work, job);
  return AddOutcome{"added", job};
}

// --- The id exists ---

// The update names the release that the job has. A gate that has passed is not kept, but the time
// of the release is.
bool is_released_at(const Times& times, const JobSpec& spec, const Job& job) {
  const auto is_gate = [&](int64_t named_ms) {
    const int64_t from_ms = std::max(named_ms, job.enqueued_ms());
    return from_ms == std::max(job.gate_ms(), job.enqueued_ms()) || from_ms == job.release_ms();
  };
  if (spec.delay_ms) return is_gate(job.enqueued_ms() + *spec.delay_ms);
  if (!spec.at_ms) return true;
  // The wall clock may have been stepped since the job came.
  const JobExtras* extras = job.extras_if();
  if (extras != nullptr && extras->at_ms != 0) return *spec.at_ms == extras->at_ms;
  return *spec.at_ms == job.gate_ms() || *spec.at_ms == job.release_ms() ||
         is_gate(times.queue_time_of(*spec.at_ms));
}

// Refuses an update of what only a replacement changes.
Status check_unchanged(const Times& times, const JobSpec& spec, const Job& job) {
  const JobExtras* extras = job.extras_if();
  const int64_t boost_ms = extras == nullptr ? 0 : extras->boost_ms;
  if (spec.boost_ms && *spec.boost_ms != boost_ms) return bad_field("boost");
  if (!is_released_at(times, spec, job)) return bad_field(spec.at_ms ? "at" : "delay");
  if (spec.group && *spec.group != job.lane->group->name) return bad_field("group");
  if (spec.cost && *spec.cost != job.cost()) return bad_field("cost");
  if (!spec.keys.empty() && !are_keys(spec.keys, *job.lane->keys)) return bad_field("key");
  const JobOptions* options = job.options();
  const auto are_those = [](const std::vector<Bytes>& named, std::span<const std::string> held) {
    return std::set<Bytes>(named.begin(), named.end()) == std::set<Bytes>(held.begin(), held.end());
  };
  if (!spec.needs.empty() && (options == nullptr || !are_those(spec.needs, options->by_need()))) {
    return bad_field("need");
  }
  if (!spec.afters.empty() &&
      (options == nullptr || !are_those(spec.afters, options->by_after()))) {
    return bad_field("after");
  }
  return {};
}

Result<AddOutcome> update_waiting(QueueWork& work, const JobSpec& spec, Job* job) {
  Status status = check_unchanged(work.times(), spec, *job);
  if (!status.ok()) return status;
  const bool other_band = spec.band && *spec.band != job->band;
  if (other_band) work.settle(job);
  const bool was_pending = job->state == JobState::kPending;
  work.unplace_waiting(job);
  job = work.queue().replace_payload(job, spec.payload);
  merge_options(job->extras(), options_of(spec));
  if (spec.ttl_ms) {
    job->extras().ttl_ms = *spec.ttl_ms;
    job->extras().ttl_left_ms = -1;
  }
  if (other_band) {
    work.change_lane(job, *spec.band, job->extras().bound);
    // FRONT and BACK hold within a band; a job that is not bound has neither.
    if (job->extras().bound) rank_by_release(job);
  }
  work.place_waiting(job, was_pending ? QueueWork::Backlog::kKept : QueueWork::Backlog::kJoins);
  work.record_put(job, EventType::kUpdated);
  work.signal();
  return AddOutcome{"updated", job};
}

// Needs of a job that others need already could close a circle. Its followers do not wait any
// longer once it is replaced.
Status check_circle(const Queue& queue, const JobSpec& spec,
                    const std::vector<std::string>& unmet) {
  const bool needed = queue.dependents.contains(std::string(spec.id));
  for (const std::string& id : unmet) {
    if (id != spec.id && !needed) continue;
    const bool after = std::find(spec.afters.begin(), spec.afters.end(), id) != spec.afters.end();
    return bad_field(after ? "after" : "need");
  }
  return {};
}

Result<AddOutcome> replace_waiting(QueueWork& work, const JobSpec& spec, Job* job) {
  Queue& queue = work.queue();
  Status status = check_cost(queue, spec);
  if (!status.ok()) return status;
  Result<std::vector<std::string>> unmet = check_needs(work, spec);
  if (!unmet.ok()) return unmet.status();
  const Queue::NamedGroup group = queue.named_group(spec.group.value_or(Bytes()));
  status = check_other_group(work, group, *job);
  if (!status.ok()) return status;
  status = check_circle(queue, spec, *unmet);
  if (!status.ok()) return status;
  work.settle(job);
  work.unplace_waiting(job);
  queue.for_each_stats_line(*job, [](StatsLine& line) { ++line.totals.cancelled; });
  EventFields fields;
  fields.add("error", Bytes("replaced"));
  const std::string id(job->id());
  work.record_gone(id, EventType::kCancelled, fields);
  // Clients and jobs that wait for its end are told; jobs that need this id wait for the new job.
  end_replaced(work, job);
  const uint8_t band = spec.band.value_or(queue.config.values().default_band);
  Job* made = build(work, spec, band, id, group, std::move(*unmet));
  place_new(work, made);
  queue.offer_again();  // What was behind it may start.
  release_followers(work, id);
  return AddOutcome{"replaced", made};
}

// The job is active: the new payload waits for the end of its run.
Result<AddOutcome> set_successor(QueueWork& work, const JobSpec& spec, Job* job) {
  Queue& queue = work.queue();
  const bool replaces = spec.if_duplicate == IfDuplicate::kReplace;
  const Queue::NamedGroup group = queue.named_group(spec.group.value_or(Bytes()));
  Status status = replaces ? check_cost(queue, spec) : check_unchanged(work.times(), spec, *job);
  // A replacement is a new job under an id that others may need, so it can have no needs itself.
  if (replaces && status.ok() && !spec.needs.empty()) status = bad_field("need");
  if (replaces && status.ok() && !spec.afters.empty()) status = bad_field("after");
  if (replaces && status.ok()) status = check_other_group(work, group, *job);
  if (!status.ok()) return status;
  auto successor = std::make_unique<JobSuccessor>();
  successor->payload = spec.payload;
  successor->replaces = replaces;
  if (spec.band) successor->band = *spec.band;
  if (spec.ttl_ms) successor->ttl_ms = *spec.ttl_ms;
  successor->options = options_of(spec);
  if (replaces) {
    if (!spec.band) successor->band = queue.config.values().default_band;
    if (!spec.ttl_ms && group.config.ttl_ms != 0) successor->ttl_ms = group.config.ttl_ms;
    successor->group = spec.group.value_or(Bytes());
    successor->keys.assign(spec.keys.begin(), spec.keys.end());
    successor->cost = spec.cost.value_or(1);
    successor->boost_ms = spec.boost_ms.value_or(0);
    successor->gate_ms = work.gate_of(spec.delay_ms, spec.at_ms);
    successor->at_ms = work.kept_at(spec.at_ms);
  }
  queue.unplace(job);
  job->extras().successor = std::move(successor);
  queue.place(job);
  work.record_state(job, EventType::kUpdated);
  if (replaces) signal_cancel(work, job, "replaced", std::nullopt);
  return AddOutcome{"queued", job};
}

Result<AddOutcome> add_again(QueueWork& work, const JobSpec& spec, Job* old) {
  if (spec.if_duplicate == IfDuplicate::kError) {
    return refused(work, Rejection::kDuplicate,
                   QueueError("DUPLICATE")
                       .with("id", spec.id)
                       .with("state", job_state_name(work.queue().shown_state(old))));
  }
  if (spec.if_duplicate == IfDuplicate::kKeep) return AddOutcome{"kept", old};
  if (is_terminal(old->state)) return add_new(work, spec, true);
  if (old->state == JobState::kActive) return set_successor(work, spec, old);
  return spec.if_duplicate == IfDuplicate::kUpdate ? update_waiting(work, spec, old)
                                                   : replace_waiting(work, spec, old);
}

}  // namespace

Result<AddOutcome> add_job(QueueWork& work, const JobSpec& spec) {
  const uint64_t max_payload = work.queue().config.values().max_payload;
  if (max_payload != 0 && spec.payload.size() > max_payload) {
    return refused(work, Rejection::kTooBig, QueueError("TOOBIG").with("limit", max_payload));
  }
  if (spec.id != "*") {
    if (Job* old = work.queue().find(spec.id)) return add_again(work, spec, old);
  }
  return add_new(work, spec, false);
}

void become_successor(QueueWork& work, Job* job, EventType ended, const EventFields& fields) {
  Queue& queue = work.queue();
  const std::unique_ptr<JobSuccessor> successor = std::move(job->extras().successor);
  job = queue.replace_payload(job, successor->payload);
  JobExtras& extras = job->extras();
  extras.attempts = extras.crashes = extras.retries_used = 0;
  extras.error.clear();
  extras.progress.clear();
  extras.log = nullptr;
  extras.ttl_left_ms = -1;
  extras.gate_ms = extras.at_ms = 0;
  if (successor->replaces) {
    extras.options = nullptr;
    extras.ttl_ms = -1;
    extras.cost = successor->cost;
    extras.boost_ms = successor->boost_ms;
    extras.gate_ms = successor->gate_ms;
    extras.at_ms = successor->at_ms;
  }
  if (successor->ttl_ms >= 0) extras.ttl_ms = successor->ttl_ms;
  merge_options(extras, successor->options);
  const uint8_t band = successor->band >= 0 ? static_cast<uint8_t>(successor->band) : job->band;
  extras.bound = false;
  extras.arrival = 0;
  if (successor->replaces) {
    const std::vector<Bytes> keys(successor->keys.begin(), successor->keys.end());
    work.change_lane(job, band, successor->group, keys, false);
  } else {
    work.change_lane(job, band, false);
  }
  job->seq = queue.next_seq++;
  extras.enqueued_ms = queue.queue_ms;
  extras.release_ms = std::max(queue.queue_ms, extras.gate_ms);
  job->rank = extras.release_ms - extras.boost_ms;
  work.place_waiting(job);
  work.record_put(job, ended, fields);
  work.record_state(job, EventType::kAdded);
  count_added(work, *job);
  tell_succession(work, *job);
}

void count_added(QueueWork& work, const Job& job) {
  Queue& queue = work.queue();
  queue.for_each_stats_line(job, [](StatsLine& line) { ++line.totals.added; });
  queue.stats.added.record(queue.queue_ms);
}

}  // namespace sluice
