// Ends of a run: acknowledged, refused, lost, too long; and TOUCH.
#include "engine/work/queue_work.h"

#include <algorithm>

#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/shard.h"

namespace sluice {

namespace {

// `adaptive` looks at the mean after so many completions.
constexpr uint64_t kRunsToAdapt = 100;
// Tied leases of lost connections that are looked at at once; timers go on with the rest.
constexpr size_t kShortenedAtOnce = 1024;

}  // namespace

// The active job that a worker speaks of with its lease. The error says what else is the case.
std::string QueueWork::find_leased(Bytes id, uint64_t lease, Job*& job) {
  job = queue_->find(id);
  if (job == nullptr) return QueueError("NOJOB").with("id", id).text();
  if (lease == 0 && queue_->config.values().fencing) {
    return QueueError("BADFIELD").with("field", Bytes("lease")).text();
  }
  if (job->run() != nullptr && (lease == 0 || job->run()->token == lease)) return {};
  return QueueError("STALELEASE")
      .with("id", id)
      .with("state", job_state_name(queue_->shown_state(job)))
      .text();
}

JobRun QueueWork::end_run(Job* job, bool counts) {
  queue_->unplace(job);
  JobRun run = std::move(*job->run());
  job->extras().run = nullptr;
  const int64_t run_ms = std::max<int64_t>(0, queue_->queue_ms - run.started_ms);
  if (counts) {
    queue_->for_each_stats_line(*job, [&](StatsLine& line) {
      line.run_ms.record(run_ms);
      line.recent_run_ms.record(run_ms);
    });
  }
  if (run.charged_ms != 0) {
    Group* group = job->lane->group;
    const double real_ms = static_cast<double>(run_ms) * job->cost();
    queue_->lanes.charge_end(group, run.charged_ms, real_ms, queue_->queue_ms);
    record_share(ConfigLevel::kGroup, group->name, group->virtual_ms, group->limiter);
    record_own_share();
  }
  queue_->leave_worker(run.worker);
  run.worker = nullptr;
  return run;
}

std::string QueueWork::acknowledge(Bytes id, uint64_t lease, Bytes result) {
  Job* job = nullptr;
  std::string error = find_leased(id, lease, job);
  if (!error.empty()) {
    // The acknowledgement that completed it, or what was before it under this id, again: its reply
    // was lost.
    const bool ended = job != nullptr && job->state == JobState::kCompleted;
    const bool again = job != nullptr && lease != 0 &&
                       ((ended && job->end()->last_token == lease) ||
                        (job->extras_if() != nullptr && job->extras_if()->acknowledged == lease));
    return again ? std::string() : error;
  }
  const JobRun run = end_run(job, true);
  finish(job, JobState::kCompleted, {}, result, &run);
  adapt();
  return {};
}

void QueueWork::adapt() {
  const Adaptive& adaptive = queue_->config.values().adaptive;
  if (adaptive.max == 0 || ++queue_->adaptive_runs < kRunsToAdapt) return;
  queue_->adaptive_runs = 0;
  const double mean = queue_->stats.all.recent_run_ms.mean();
  const uint64_t before = queue_->adaptive_max;
  uint64_t max = before;
  if (mean > static_cast<double>(adaptive.high_ms)) {
    max = max > adaptive.min + adaptive.step ? max - adaptive.step : adaptive.min;
  } else if (mean < static_cast<double>(adaptive.low_ms)) {
    max = std::min(max + adaptive.step, adaptive.max);
  }
  queue_->adaptive_max = queue_->limiter.max_active = max;
  if (max > before) signal();
  touched();
}

// --- Failures ---

// Full jitter: a random time up to base * 2^n. The randomness comes from the job and its lease, so
// that the engine needs no source of it; what was chosen is in the journal.
int64_t QueueWork::backoff_ms(const Job& job, const JobRun& run) const {
  const QueueValues& values = queue_->config.values();
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

void QueueWork::fail_attempt(Job* job, const JobRun& run, Bytes error,
                             std::optional<int64_t> delay_ms) {
  const QueueValues& values = queue_->config.values();
  JobExtras& extras = job->extras();
  uint32_t retries = values.retry;
  if (extras.options != nullptr && extras.options->retry >= 0) {
    retries = static_cast<uint32_t>(extras.options->retry);
  }
  // Whoever was told to stop is not tried again.
  if (run.cancelled) return finish(job, JobState::kCancelled, run.cancel_reason, {}, &run);
  if (extras.retries_used >= retries) return finish(job, JobState::kFailed, error, {}, &run);
  ++extras.retries_used;
  extras.error = error;
  const int64_t wait_ms = delay_ms ? *delay_ms : backoff_ms(*job, run);
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  if (!error.empty()) fields.add("error", error);
  fields.add("delay_ms", wait_ms);
  go_back(job, wait_ms == 0 ? 0 : queue_->queue_ms + wait_ms, EventType::kRetrying, fields);
}

std::string QueueWork::refuse(Bytes id, uint64_t lease, NackMode mode,
                              std::optional<int64_t> delay_ms, Bytes error, NackOutcome& outcome) {
  Job* job = nullptr;
  std::string stale = find_leased(id, lease, job);
  if (!stale.empty()) return stale;
  const std::string name(id);
  const JobRun run = end_run(job, mode != NackMode::kSilent);
  switch (mode) {
    case NackMode::kFail:
      fail_attempt(job, run, error, delay_ms);
      break;
    case NackMode::kFatal:
      if (run.cancelled) {
        finish(job, JobState::kCancelled, run.cancel_reason, {}, &run);
      } else {
        finish(job, JobState::kFailed, error, {}, &run);
      }
      break;
    case NackMode::kSilent:
      if (run.cancelled) {
        finish(job, JobState::kCancelled, run.cancel_reason, {}, &run);
        break;
      }
      --job->extras().attempts;
      give_tokens_back(job);
      EventFields fields;
      fields.add("lease", static_cast<int64_t>(run.token));
      go_back(job, delay_ms && *delay_ms != 0 ? queue_->queue_ms + *delay_ms : 0,
              EventType::kReturned, fields);
      break;
  }
  // Where it is not retained at all, it has ended.
  const JobState end = run.cancelled ? JobState::kCancelled : JobState::kFailed;
  describe_nack(queue_->find(name), end, outcome);
  return {};
}

void QueueWork::describe_nack(const Job* job, JobState end, NackOutcome& outcome) const {
  outcome.state = job == nullptr ? end : queue_->shown_state(job);
  if (job == nullptr || is_terminal(job->state)) return;
  outcome.not_before_ms = job->state == JobState::kDelayed ? job->gate_ms() : 0;
  const JobOptions* options = job->options();
  const int64_t retries = options != nullptr && options->retry >= 0
                              ? options->retry
                              : static_cast<int64_t>(queue_->config.values().retry);
  // The run to come is one of them.
  outcome.attempts_left = retries - job->extras_if()->retries_used + 1;
}

// A token that was taken for a run that never was. Journaled with the job's return.
void QueueWork::give_tokens_back(Job* job) {
  queue_->limiter.give_token_back();
  job->lane->group->limiter.give_token_back();
  for (Key* key : job->lane->keys->keys) key->limiter.give_token_back();
  // Another job may have it at once.
  queue_->lanes.refresh_group(job->lane->group, queue_->queue_ms);
  for (Key* key : job->lane->keys->keys) queue_->lanes.refresh_key(key, queue_->queue_ms);
  record_limits(*job);
}

void QueueWork::lose_lease(Job* job) {
  const JobRun run = end_run(job, false);
  if (run.cancelled) return finish(job, JobState::kCancelled, run.cancel_reason, {}, &run);
  JobExtras& extras = job->extras();
  ++extras.crashes;
  if (extras.crashes > queue_->config.values().crash_limit) {
    return finish(job, JobState::kFailed, "lease lost", {}, &run);
  }
  queue_->for_each_stats_line(*job, [](StatsLine& line) { ++line.totals.reclaimed; });
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  go_back(job, 0, EventType::kReclaimed, fields);
}

void QueueWork::exceed_run(Job* job) {
  const JobRun run = end_run(job, true);
  fail_attempt(job, run, "max_run", std::nullopt);
}

// --- Q.TOUCH ---

std::string QueueWork::touch(Bytes id, uint64_t lease, std::optional<int64_t> lease_ms,
                             const Bytes* progress, const Holder& holder, TouchOutcome& outcome) {
  Job* job = nullptr;
  std::string error = find_leased(id, lease, job);
  if (!error.empty()) return error;
  JobRun& run = *job->run();
  // A restart gives every lease its whole term again, so a new term is recorded; a renewal is not.
  bool changed = progress != nullptr;
  if (!run.cancelled) {
    changed = changed || (lease_ms && *lease_ms != run.lease_ms);
    if (lease_ms) run.lease_ms = *lease_ms;
    queue_->set_deadline(job, unit_->times.steady_ms + run.lease_ms);
  }
  run.holder = holder.port;
  run.holder_protocol = holder.protocol;
  if (run.tied_client_id != 0 && holder.client_id != 0) {
    queue_->tie(job, holder.client_id);
    tie_client(database_.shard(), holder.client_id, *queue_);
  }
  changed_ = true;  // the timer of its lease
  if (progress != nullptr) queue_->set_progress(job, *progress);
  if (changed) record_state(job, EventType::kNone);
  outcome.left_ms = std::max<int64_t>(0, run.due_steady() - unit_->times.steady_ms);
  outcome.cancelled = run.cancelled;
  outcome.cancel_reason = run.cancel_reason;
  return {};
}

// --- Timers and connections ---

size_t QueueWork::run_leases(size_t limit) {
  size_t done = 0;
  const int64_t now = unit_->times.steady_ms;
  while (done < limit && !queue_->leases.empty() &&
         static_cast<int64_t>(queue_->leases.front().major) <= now) {
    Job* job = queue_->leases.front().value;
    if (job->run()->run_deadline_steady <= now) {
      exceed_run(job);
    } else {
      lose_lease(job);
    }
    ++done;
  }
  return done;
}

void QueueWork::connection_lost(uint64_t client_id) {
  const int64_t now = unit_->times.steady_ms;
  LostConnection lost{client_id, 0, now, now + queue_->config.values().disconnect_grace_ms};
  size_t left = kShortenedAtOnce;
  if (!shorten_leases(lost, left)) queue_->lost_connections.push_back(lost);
  changed_ = true;
}

void QueueWork::go_on_with_lost() {
  auto& lost = queue_->lost_connections;
  size_t left = kShortenedAtOnce;
  while (!lost.empty() && shorten_leases(lost.front(), left)) lost.erase(lost.begin());
  // The timers of other queues have waited meanwhile.
  if (!lost.empty()) lost.front().due_steady = unit_->times.steady_ms;
}

// At most `left` more; false: it has more of them.
bool QueueWork::shorten_leases(LostConnection& lost, size_t& left) {
  auto at = queue_->tied.lower_bound(lost.client_id, lost.next_token);
  for (; at.valid() && at.major() == lost.client_id; at.next()) {
    if (left == 0) return false;
    --left;
    Job* job = at.value();
    if (job->run()->deadline_steady > lost.latest_steady) {
      queue_->set_deadline(job, lost.latest_steady);
    }
    lost.next_token = at.minor() + 1;
  }
  return true;
}

}  // namespace sluice
