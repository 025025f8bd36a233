// Steering: cancel, move, retry, configuration; and the timers of waiting jobs.
#include "engine/work/queue_work.h"

#include <algorithm>

#include "engine/reply/reply.h"

namespace sluice {

namespace {

// Ended jobs that a smaller retention lets go at once.
constexpr size_t kForgottenAtOnce = 256;
// Steps of a change of the configuration (Lanes::reconfigure_some) in one hold: a millisecond.
constexpr size_t kReconfiguredAtOnce = 512;

}  // namespace

// --- Q.CANCEL ---

QueueWork::Cancelled QueueWork::cancel(Job* job, Bytes reason, std::optional<int64_t> grace_ms) {
  if (is_terminal(job->state)) return Cancelled::kGone;
  const std::string why = reason.empty() ? "cancelled" : std::string(reason);
  if (job->state != JobState::kActive) {
    settle(job);
    unplace_waiting(job);
    finish(job, JobState::kCancelled, why, {}, nullptr);
    return Cancelled::kCancelled;
  }
  if (job->extras().successor != nullptr) {
    queue_->unplace(job);
    job->extras().successor = nullptr;
    queue_->place(job);
  }
  if (grace_ms && *grace_ms == 0) {
    JobRun run = end_run(job, false);
    push_cancel(*job, run, why);
    finish(job, JobState::kCancelled, why, {}, &run);
    return Cancelled::kCancelled;
  }
  signal_cancel(job, why, grace_ms);
  return Cancelled::kSignalled;
}

void QueueWork::signal_cancel(Job* job, Bytes reason, std::optional<int64_t> grace_ms) {
  JobRun& run = *job->run();
  run.cancelled = true;
  run.cancel_reason = reason;
  if (grace_ms) {
    queue_->set_deadline(job, std::min(run.deadline_steady, unit_->times.steady_ms + *grace_ms));
  }
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  fields.add("reason", reason);
  record_state(job, EventType::kSignalled, fields);
  push_cancel(*job, run, reason);
}

// The holder hears at once, if it speaks RESP3; others with their next TOUCH.
void QueueWork::push_cancel(const Job& job, const JobRun& run, Bytes reason) {
  std::shared_ptr<ClientPort> port = run.holder.lock();
  if (port == nullptr || run.holder_protocol != 3) return;
  Delivery delivery{std::move(port), {}, false};
  RespReply push(delivery.bytes, 3);
  push.push(5);
  push.bulk("q.cancel");
  push.bulk(key_.key);
  push.bulk(job.id());
  push.integer(static_cast<int64_t>(run.token));
  push.bulk(reason);
  unit_->deliveries.push_back(std::move(delivery));
}

// --- Q.MOVE ---

// The place of a bound job that is neither at the front nor at the back.
void QueueWork::rank_by_release(Job* job) {
  job->rank = job->extras().release_ms - job->extras().boost_ms;
  job->seq = job->arrival();
}

bool QueueWork::move(Job* job, const MoveSpec& spec) {
  if (job->state >= JobState::kActive) return false;
  const uint8_t band = spec.band.value_or(job->band);
  // The band that it has, and nothing else.
  if (band == job->band && !spec.front && !spec.back && !spec.boost_ms && !spec.delay_ms &&
      !spec.at_ms) {
    return true;
  }
  settle(job);
  still_backlogged_ = job->state == JobState::kPending;
  unplace_waiting(job);
  const bool was_lifo = job->lane->lifo;
  JobExtras& extras = job->extras();
  // What is moved is bound to its ticket, also where it comes from a band without pairing.
  extras.bind();
  if (band != job->band || was_lifo) change_lane(job, band, true);
  if (spec.boost_ms) extras.boost_ms = *spec.boost_ms;
  if (spec.delay_ms || spec.at_ms) {
    extras.gate_ms = gate_of(spec.delay_ms, spec.at_ms);
    extras.at_ms = kept_at(spec.at_ms);
    extras.release_ms = std::max(extras.gate_ms, queue_->queue_ms);
  }
  if (spec.front || spec.back) extras.gate_ms = 0;
  if (spec.front) {
    // The last one moved is lowest, and so first.
    job->rank = kFrontRanks - static_cast<int64_t>(queue_->next_seq++);
  } else if (spec.back) {
    // Behind whatever is in the band, delayed and active jobs too; of equal ranks it is last.
    job->rank = std::max(queue_->queue_ms, queue_->lanes.band(band)->last_rank());
    extras.arrival = job->arrival();
    job->seq = queue_->next_seq++;
  } else {
    rank_by_release(job);
  }
  place_waiting(job);
  still_backlogged_ = false;
  record_state(job, EventType::kMoved);
  signal();
  return true;
}

// --- Q.RETRY ---

bool QueueWork::retry(Job* job) {
  if (!is_terminal(job->state)) return false;
  queue_->unplace(job);
  JobExtras& extras = job->extras();
  extras.end = nullptr;
  extras.attempts = extras.crashes = extras.retries_used = 0;
  extras.gate_ms = extras.at_ms = 0;
  extras.ttl_left_ms = -1;
  extras.error.clear();
  extras.progress.clear();
  extras.unmet.clear();
  extras.bind();
  extras.arrival = 0;
  if (job->lane->lifo) change_lane(job, job->band, true);
  extras.release_ms = queue_->queue_ms;
  job->rank = extras.release_ms - extras.boost_ms;
  job->seq = queue_->next_seq++;
  place_waiting(job);
  record_state(job, EventType::kRetrying);
  signal();
  return true;
}

// --- Configuration ---

std::string QueueWork::configure(ConfigLevel level, Bytes pattern,
                                 std::span<const std::pair<Bytes, Bytes>> fields) {
  const ConfigChange change = queue_->config.set(level, pattern, fields);
  if (!change.bad.empty()) return QueueError("BADFIELD").with("field", change.bad).text();
  config_changed(level, pattern, change);
  return {};
}

std::string QueueWork::reset_config(ConfigLevel level, Bytes pattern) {
  const ConfigChange change = queue_->config.reset(level, pattern);
  if (!change.bad.empty()) return QueueError("BADFIELD").with("field", change.bad).text();
  config_changed(level, pattern, change);
  return {};
}

void QueueWork::config_changed(ConfigLevel level, Bytes pattern, const ConfigChange& change) {
  if (change.scope == ConfigScope::kNothing) return;
  write(EffectType::kQueueConfig, {}, [&](ByteBuffer& value) {
    encode_config(level, pattern, queue_->config.recorded(level, pattern), value);
  });
  std::vector<Lanes::BoundRate> bound;
  queue_->reconfigure(change, kReconfiguredAtOnce, &bound);
  if (queue_->limiter.bound_arrival(queue_->queue_ms)) record_own_share();
  record_bound(bound);
  queue_->events.trim(queue_->config.values().events, queue_->queue_ms, SIZE_MAX);
  // Timers go on where there is more.
  drop_retained(kForgottenAtOnce);
  signal();
}

// What was taken by an old rate holds a new one up for no longer than its own burst would. Recorded
// as values behind the configuration: a replay has another time when it comes to that.
void QueueWork::record_bound(const std::vector<Lanes::BoundRate>& bound) {
  for (const Lanes::BoundRate& rate : bound) {
    write(EffectType::kQueueShare, rate.name, [&](ByteBuffer& value) {
      encode_share(rate.level, rate.virtual_ms, rate.arrival_us, value);
    });
  }
}

// --- Timers ---

size_t QueueWork::run_timers(size_t limit) {
  const int64_t now = queue_->queue_ms;
  go_on_with_releases();
  go_on_with_lost();
  size_t done = run_leases(limit);
  while (done < limit && !queue_->delays.empty() &&
         static_cast<int64_t>(queue_->delays.front().major) <= now) {
    Job* job = queue_->delays.front().value;
    queue_->unplace(job);
    job->extras().gate_ms = 0;
    place_waiting(job);
    record_state(job, EventType::kReady);
    ++done;
  }
  while (done < limit && !queue_->ttls.empty() &&
         static_cast<int64_t>(queue_->ttls.front().major) <= now) {
    Job* job = queue_->ttls.front().value;
    settle(job);
    unplace_waiting(job);
    ++done;
    finish(job, JobState::kExpired, "ttl", {}, nullptr);
  }
  const uint64_t ended = queue_->ended[0].size() + queue_->ended[1].size();
  drop_retained(limit);
  done += ended - queue_->ended[0].size() - queue_->ended[1].size();
  const uint64_t kept = queue_->events.count();
  queue_->events.trim(queue_->config.values().events, now, limit);
  // The head says what is kept: what is too old does not come back with a restart.
  if (queue_->events.count() != kept) touched();
  if (queue_->lanes.is_reconfiguring()) {
    std::vector<Lanes::BoundRate> bound;
    queue_->lanes.reconfigure_some(kReconfiguredAtOnce, now, &bound);
    record_bound(bound);
  }
  queue_->lanes.run_rates(now);
  // A refilled rate makes work possible without any other change.
  signal();
  changed_ = true;
  return done;
}

}  // namespace sluice
