// COPY of a queue.
#include "engine/work/copy.h"

#include <algorithm>

#include "engine/queue/job_record.h"
#include "engine/work/add.h"
#include "engine/work/configure.h"
#include "engine/work/steer.h"

namespace sluice {

namespace {

constexpr uint64_t kMaxCopied = 4000;  // jobs, rules
constexpr uint64_t kMaxCopiedBytes = 4 << 20;

void copy_job(QueueWork& work, const Job& source) {
  Queue& queue = work.queue();
  // A record holds all that is known of a job, and nothing of the queue that it is in.
  ByteBuffer record;
  encode_job(source, {}, true, record);
  Bytes from = record.view();
  RecordedEvent event;
  RecordedState state;
  RecordedRest rest;
  const bool whole = decode_event(from, event) && decode_state(from, 0, state) &&
                     decode_rest(from, state.rank, rest);
  CHECK(whole);
  Job* job = Job::make(source.id(), rest.payload);
  job->rank = state.rank;
  job->seq = state.seq;
  job->band = state.band;
  bool bound = false;
  bool has_successor = false;
  if (source.extras_if() != nullptr) {
    JobExtras& extras = job->extras();
    extras = std::move(state.extras);
    extras.cost = rest.cost;
    extras.enqueued_ms = rest.enqueued_ms;
    extras.options = std::move(rest.options);
    extras.acknowledged = 0;  // leases stay behind
    if (extras.run != nullptr) {
      extras.run = nullptr;
      --extras.attempts;
      extras.bind();  // as every job that returns: it keeps its own ticket
    }
    if (source.extras_if()->log != nullptr) {
      extras.log = std::make_unique<JobLog>(*source.extras_if()->log);
    }
    bound = extras.bound;
    has_successor = extras.successor != nullptr;
  }
  job->lane = queue.join_lane(job->band, rest.group, rest.keys, bound);
  if (job->extras_if() != nullptr && job->extras().ttl_due_ms != 0) {
    job->extras().ttl_left_ms = ttl_left_ms(*job, queue.queue_ms);
    job->extras().ttl_due_ms = 0;
  }
  queue.jobs.insert(job, hash_bytes(job->id()));
  if (has_successor) return become_successor(work, job, EventType::kNone, {});
  work.place_waiting(job);
  work.record_put(job, EventType::kAdded);
  if (job->extras_if() != nullptr && job->extras().log != nullptr) {
    const JobLog& log = *job->extras().log;
    work.record_log(*job, log.offset, log.bytes);
  }
  count_added(work, *job);
}

// The jobs that have not ended, in order of arrival, which the event log shows. From the indexes of
// their states: very many ended ones may be kept.
std::vector<const Job*> jobs_to_copy(const Queue& source) {
  std::vector<const Job*> live;
  const auto add = [&live](const OrderedIndex<Job*>& index) {
    for (auto at = index.begin(); at.valid(); at.next()) live.push_back(at.value());
  };
  for (const uint8_t band : source.lanes.used_bands()) add(source.lanes.band(band)->pending);
  add(source.delays);
  add(source.runs);
  // A blocked job is listed at each of its needs.
  const auto add_blocked = [&live](const std::string& need, const OrderedIndex<Job*>& index) {
    for (auto at = index.begin(); at.valid(); at.next()) {
      if (at.value()->extras_if()->unmet.front() == need) live.push_back(at.value());
    }
  };
  for (const Queue::Awaiting* awaiting : {&source.dependents, &source.followers}) {
    for (const auto& [need, blocked] : *awaiting) add_blocked(need, blocked);
  }
  for (const auto& [number, release] : source.releases.by_number()) {
    add_blocked(release.need, release.dependents);
  }
  std::sort(live.begin(), live.end(), [](const Job* a, const Job* b) { return a->seq < b->seq; });
  return live;
}

}  // namespace

uint64_t exceeded_copy_limit(const Queue& source) {
  if (source.live_jobs() > kMaxCopied || source.config.rule_count() > kMaxCopied) return kMaxCopied;
  uint64_t bytes = 0;
  for (const Job* job : jobs_to_copy(source)) bytes += job->memory_bytes();
  return bytes > kMaxCopiedBytes ? kMaxCopiedBytes : 0;
}

void copy_into(QueueWork& work, const Queue& source) {
  Queue& queue = work.queue();
  queue.now(source.queue_ms);
  queue.next_seq = source.next_seq;
  for (const auto& [level, pattern] : source.config.rules()) {
    const std::vector<ConfigField> fields = source.config.recorded(level, pattern);
    config_changed(work, level, pattern, queue.config.apply(level, pattern, fields));
  }
  const std::vector<const Job*> live = jobs_to_copy(source);
  // Before the jobs, which wait for them.
  for (const auto& [number, release] : source.releases.by_number()) {
    queue.add_release(number, release.need, release.followers, release.completed);
    work.record_release(release, recorded(release));
  }
  for (const Job* job : live) copy_job(work, *job);
  // A job whose worker was told to stop must not run again, but its successor does.
  for (const Job* job : live) {
    const JobRun* run = job->run();
    if (run == nullptr || !run->cancelled || job->extras_if()->successor != nullptr) continue;
    Job* copied = queue.find(job->id());
    if (copied != nullptr && !is_terminal(copied->state)) {
      cancel_job(work, copied, run->cancel_reason, std::nullopt);
    }
  }
  work.touched();
  work.signal();
}

}  // namespace sluice
