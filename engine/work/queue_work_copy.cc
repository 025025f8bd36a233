// COPY of a queue.
#include <algorithm>

#include "engine/queue/job_record.h"
#include "engine/work/queue_work.h"

namespace sluice {

void QueueWork::take_copy(const Queue& source) {
  queue_->now(source.queue_ms);
  queue_->next_seq = source.next_seq;
  for (const auto& [level, pattern] : source.config.rules()) {
    const std::vector<ConfigField> fields = source.config.recorded(level, pattern);
    config_changed(level, pattern, queue_->config.apply(level, pattern, fields));
  }
  std::vector<const Job*> live;
  source.jobs.for_each([&](const Job* job) {
    if (!is_terminal(job->state)) live.push_back(job);
  });
  // In order of arrival, which the event log shows.
  std::sort(live.begin(), live.end(), [](const Job* a, const Job* b) { return a->seq < b->seq; });
  // Before the jobs, which wait for them.
  for (const auto& [number, release] : source.releases.by_number()) {
    queue_->set_release(number, release.need, release.completed, true);
    record_release(release, recorded(release));
  }
  for (const Job* job : live) copy_job(*job);
  // Whose worker was told to stop must not run again, unless a successor has taken its place.
  for (const Job* job : live) {
    const JobRun* run = job->run();
    if (run == nullptr || !run->cancelled || job->extras_if()->successor != nullptr) continue;
    Job* copied = queue_->find(job->id());
    if (copied != nullptr && !is_terminal(copied->state)) {
      cancel(copied, run->cancel_reason, std::nullopt);
    }
  }
  touched();
  signal();
}

void QueueWork::copy_job(const Job& source) {
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
      extras.bind();  // as whoever goes back: it keeps its own ticket
    }
    bound = extras.bound;
    has_successor = extras.successor != nullptr;
  }
  job->lane = queue_->join_lane(job->band, rest.group, rest.keys, bound);
  if (job->extras_if() != nullptr && job->extras().ttl_due_ms != 0) {
    job->extras().ttl_left_ms = ttl_left_ms(*job, queue_->queue_ms);
    job->extras().ttl_due_ms = 0;
  }
  queue_->jobs.insert(job, hash_bytes(job->id()));
  if (has_successor) return become_successor(job, EventType::kNone, {});
  place_waiting(job);
  record_put(job, EventType::kAdded);
  count_added(*job);
}

}  // namespace sluice
