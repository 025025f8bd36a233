// Failed runs: NACK, retries and their backoff, and Q.RETRY.
#include "engine/work/retry.h"

#include <algorithm>

#include "engine/work/ends.h"
#include "engine/work/run.h"

namespace sluice {

namespace {

// Full jitter: a random time up to base * 2^n. The randomness is a hash of the job and its lease,
// as the engine has no source of it; the journal records the time that was chosen.
int64_t backoff_ms(const Job& job, const JobRun& run, const QueueValues& values) {
  int64_t base_ms = values.backoff_base_ms;
  int64_t max_ms = values.backoff_max_ms;
  if (job.options() != nullptr && job.options()->backoff_base_ms >= 0) {
    base_ms = job.options()->backoff_base_ms;
    max_ms = job.options()->backoff_max_ms;
  }
  const int doublings = std::min<int>(job.extras_if()->retries_used - 1, 40);
  int64_t limit_ms = base_ms;
  for (int i = 0; i < doublings && limit_ms < max_ms; ++i) limit_ms *= 2;
  limit_ms = std::min(limit_ms, max_ms);
  if (limit_ms <= 0) return 0;
  const std::string seed = std::string(job.id()) + std::to_string(run.token);
  return static_cast<int64_t>(hash_bytes(seed) % (static_cast<uint64_t>(limit_ms) + 1));
}

// Gives back the rate tokens of a run that did not take place. Journaled with the job's return.
void give_tokens_back(QueueWork& work, Job* job, const JobRun& run) {
  Queue& queue = work.queue();
  queue.limiter.give_token_back(run.started_ms);
  job->lane->group->limiter.give_token_back(run.started_ms);
  for (Key* key : job->lane->keys->keys) key->limiter.give_token_back(run.started_ms);
  // Another job may take them at once.
  queue.lanes.refresh_group(job->lane->group, queue.queue_ms);
  for (Key* key : job->lane->keys->keys) queue.lanes.refresh_key(key, queue.queue_ms);
  work.record_limits(*job);
}

// `end`: the state in which the job has ended if it is no longer retained (null).
NackOutcome describe_nack(const Queue& queue, const Job* job, JobState end) {
  NackOutcome outcome;
  outcome.state = job == nullptr ? end : queue.shown_state(job);
  if (job == nullptr || is_terminal(job->state)) return outcome;
  outcome.not_before_ms = job->state == JobState::kDelayed ? job->gate_ms() : 0;
  const int64_t retries = retries_of(*job, queue.config.values());
  // Retries, and the first attempt.
  outcome.attempts_left = retries - job->extras_if()->retries_used + 1;
  return outcome;
}

}  // namespace

uint32_t retries_of(const Job& job, const QueueValues& values) {
  const JobOptions* options = job.options();
  return options != nullptr && options->retry >= 0 ? static_cast<uint32_t>(options->retry)
                                                   : values.retry;
}

void fail_attempt(QueueWork& work, Job* job, const JobRun& run, Bytes error,
                  std::optional<int64_t> delay_ms) {
  const QueueValues& values = work.queue().config.values();
  JobExtras& extras = job->extras();
  if (extras.retries_used >= retries_of(*job, values)) {
    return finish_job(work, job, JobState::kFailed, error, {}, &run);
  }
  ++extras.retries_used;
  extras.error = error;
  const int64_t wait_ms = delay_ms ? *delay_ms : backoff_ms(*job, run, values);
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  if (!error.empty()) fields.add("error", error);
  fields.add("delay_ms", wait_ms);
  return_job(work, job, wait_ms == 0 ? 0 : work.queue().queue_ms + wait_ms, EventType::kRetrying,
             fields);
}

Result<NackOutcome> nack_job(QueueWork& work, Bytes id, uint64_t lease, NackMode mode,
                             std::optional<int64_t> delay_ms, Bytes error) {
  const Result<Job*> leased = find_leased(work.queue(), id, lease);
  if (!leased.ok()) return leased.status();
  work.queue().hear_worker((*leased)->run()->worker);
  return nack_run(work, *leased, mode, delay_ms, error);
}

NackOutcome nack_run(QueueWork& work, Job* job, NackMode mode, std::optional<int64_t> delay_ms,
                     Bytes error) {
  Queue& queue = work.queue();
  const std::string name(job->id());
  if (mode != NackMode::kSilent) count_failed_run(*job);
  const JobRun run = end_run(work, job, mode != NackMode::kSilent);
  if (run.cancelled) {
    finish_cancelled(work, job, run);
  } else if (mode == NackMode::kFail) {
    fail_attempt(work, job, run, error, delay_ms);
  } else if (mode == NackMode::kFatal) {
    finish_job(work, job, JobState::kFailed, error, {}, &run);
  } else {
    --job->extras().attempts;
    give_tokens_back(work, job, run);
    EventFields fields;
    fields.add("lease", static_cast<int64_t>(run.token));
    return_job(work, job, delay_ms && *delay_ms != 0 ? queue.queue_ms + *delay_ms : 0,
               EventType::kReturned, fields);
  }
  const JobState end = run.cancelled ? JobState::kCancelled : JobState::kFailed;
  return describe_nack(queue, queue.find(name), end);
}

bool retry_job(QueueWork& work, Job* job) {
  Queue& queue = work.queue();
  if (!is_terminal(job->state)) return false;
  queue.unplace(job);
  JobExtras& extras = job->extras();
  extras.end = nullptr;
  extras.attempts = extras.crashes = extras.retries_used = 0;
  extras.gate_ms = extras.at_ms = 0;
  extras.ttl_left_ms = -1;
  extras.error.clear();
  extras.progress.clear();
  extras.log = nullptr;
  extras.unmet.clear();
  extras.bind();
  extras.arrival = 0;
  if (job->lane->lifo) work.change_lane(job, job->band, true);
  extras.release_ms = queue.queue_ms;
  job->rank = extras.release_ms - extras.boost_ms;
  job->seq = queue.next_seq++;
  work.place_waiting(job);
  work.record_state(job, EventType::kRetrying);
  work.signal();
  return true;
}

}  // namespace sluice
