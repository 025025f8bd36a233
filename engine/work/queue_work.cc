// What all verbs of a queue share: records, events, and the places of waiting jobs.
#include "engine/work/queue_work.h"

#include <algorithm>
#include <utility>

#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/job_record.h"

namespace sluice {

namespace {

// A verb trims at most this many events that are no longer retained; timers trim the rest.
constexpr size_t kTrimmedPerVerb = 16;

}  // namespace

QueueWork::QueueWork(Database database, const KeyRef& key, Queue& queue, Unit& unit)
    : database_(database), key_(key), queue_(&queue), unit_(&unit) {
  // The configuration may have come by replay, limits depend on the time.
  queue_->now(unit_->times.queue_ms);
  if (queue_->stats.since_ms == 0) queue_->stats.since_ms = queue_->queue_ms;
}

QueueWork::~QueueWork() {
  if (timers_changed_) list_queue_timers(database_.shard(), *queue_, true);
}

// --- Records ---

void QueueWork::touched() {
  // The end of the unit lists its timers. A new queue is listed at once, under its name as well.
  if (queue_->listed_due_ms == kNeverMs) timers_changed_ = true;
  ++unit_->changes;
  database_.break_watches(key_.key);
  record_head_at_end(*unit_, *queue_);
}

void QueueWork::signal() {
  queue_->offer_again();
  signal_added();
}

void QueueWork::signal_added() { database_.signal(key_.key); }

void QueueWork::wrote(EffectType type, Bytes field) {
  if (is_job_effect(type)) database_.signal_job(key_.key, field);
  touched();
}

RecordedEvent QueueWork::next_event(Bytes id, EventType type, const EventFields& fields) {
  const Retention& bounds = queue_->config.values().events;
  if (type == EventType::kNone) return {};
  if (bounds.count == 0) {
    if (queue_->events.miss()) database_.signal_queue(key_.key);
    return {};
  }
  const RecordedEvent event{type, queue_->events.last_seq() + 1, queue_->queue_ms, fields.bytes()};
  queue_->events.append(event.seq, event.time_ms, event.type, id, event.fields);
  queue_->events.trim(bounds, queue_->queue_ms, kTrimmedPerVerb);
  database_.signal_event(key_.key, event.seq, event_bit(type), id);
  return event;
}

void QueueWork::record_put(Job* job, EventType type, const EventFields& fields) {
  record_job(*job, EffectType::kJobPut, next_event(job->id(), type, fields));
}

void QueueWork::record_state(Job* job, EventType type, const EventFields& fields) {
  record_job(*job, EffectType::kJobState, next_event(job->id(), type, fields));
}

void QueueWork::record_job(const Job& job, EffectType type, const RecordedEvent& event) {
  const bool whole = type == EffectType::kJobPut;
  write(type, job.id(), [&](ByteBuffer& value) { encode_job(job, event, whole, value); });
  // Behind the job that changed it: only with a job is there a group. An idle rate that becomes a
  // group's amid a checkpoint's walk may be in no part of it.
  if (queue_->lanes.take_revived()) record_revived(job);
  if (owed_share_ == nullptr) return;
  record_group_share(*std::exchange(owed_share_, nullptr));
}

void QueueWork::record_gone(Bytes id, EventType type, const EventFields& fields) {
  const RecordedEvent event = next_event(id, type, fields);
  write(EffectType::kJobGone, id, [&](ByteBuffer& value) { encode_event(event, value); });
}

void QueueWork::record_log(const Job& job, uint64_t at, Bytes bytes) {
  write(EffectType::kJobLog, job.id(),
        [&](ByteBuffer& value) { encode_log(job, at, bytes, value); });
}

void QueueWork::record_share(ConfigLevel level, Bytes name, double virtual_ms, int64_t arrival_us) {
  write(EffectType::kQueueShare, name,
        [&](ByteBuffer& value) { encode_share(level, virtual_ms, arrival_us, value); });
}

void QueueWork::record_group_share(const Group& group) {
  record_share(ConfigLevel::kGroup, group.name, group.virtual_ms, group.limiter.arrival_us);
}

void QueueWork::record_release(const Release& release, RecordedRelease what) {
  write(EffectType::kQueueRelease, release.need,
        [&](ByteBuffer& value) { encode_release(release.number, what, value); });
}

void QueueWork::record_own_share() {
  queue_->share_dirty = true;
  record_head_at_end(*unit_, *queue_);
}

void QueueWork::record_limits(const Job& job) {
  if (queue_->config.values().fair || queue_->limiter.rate.tokens != 0) record_own_share();
  const Group& group = *job.lane->group;
  if (queue_->config.values().fair || group.limiter.rate.tokens != 0) {
    record_group_share(group);
  }
  for (const Key* key : job.lane->keys->keys) {
    if (key->limiter.rate.tokens != 0) {
      record_share(ConfigLevel::kKey, key->name, 0, key->limiter.arrival_us);
    }
  }
}

void QueueWork::record_revived(const Job& job) {
  record_limits(job);
  const JobSuccessor* successor =
      job.extras_if() == nullptr ? nullptr : job.extras_if()->successor.get();
  if (successor == nullptr || !successor->replaces) return;
  record_group_share(*queue_->lanes.find_group(successor->group));
}

// --- Waiting ---

void QueueWork::join_backlog(const Job& job) {
  Group* group = job.lane->group;
  if (!queue_->config.values().fair || group->pending != 0) return;
  // No credit for the time in which it asked for nothing.
  queue_->lanes.begin_backlog(group, queue_->queue_ms);
  // Also where nothing was charged: a replay may know an older share of a group of this name.
  owed_share_ = group;
}

bool QueueWork::start_ttl(Job* job) {
  const JobExtras* extras = job->extras_if();
  if (extras != nullptr && extras->ttl_due_ms != 0) return false;
  int64_t left_ms = extras == nullptr ? -1 : extras->ttl_left_ms;
  if (left_ms < 0) left_ms = job->ttl_ms();
  // A spent budget expires at the next tick; a job without a TTL never expires.
  if (left_ms == 0 && (extras == nullptr || extras->ttl_left_ms < 0)) return false;
  queue_->set_ttl_due(job, queue_->queue_ms + left_ms);
  return true;
}

int64_t ttl_left_ms(const Job& job, int64_t now_ms) {
  const int64_t left_ms = std::max<int64_t>(0, job.extras_if()->ttl_due_ms - now_ms);
  return left_ms != 0 && left_ms == job.ttl_ms() ? -1 : left_ms;
}

bool QueueWork::stop_ttl(Job* job) {
  JobExtras* extras = job->extras_if();
  if (extras == nullptr || extras->ttl_due_ms == 0) return false;
  extras->ttl_left_ms = ttl_left_ms(*job, queue_->queue_ms);
  queue_->set_ttl_due(job, 0);
  return true;
}

void QueueWork::follow_tickets(const Lane& lane, const Job* own) {
  // The newest jobs, as many as tickets are due, are pending. So only the two at the border can
  // have changed sides.
  const uint64_t due = lane.tickets.size();
  for (const uint64_t newer : {due - 1, due}) {
    if (newer >= lane.stack.size()) continue;  // also where none is due
    Job* job = lane.stack.at(lane.stack.size() - 1 - newer).value();
    const bool changed = newer < due ? start_ttl(job) : stop_ttl(job);
    if (changed && job != own) record_state(job, EventType::kNone);
  }
}

void QueueWork::place_waiting(Job* job, Backlog backlog) {
  if (job->extras_if() != nullptr && !job->extras().unmet.empty()) {
    job->state = JobState::kBlocked;
  } else if (job->gate_ms() > queue_->queue_ms) {
    job->state = JobState::kDelayed;
  } else {
    job->state = JobState::kPending;
    if (job->extras_if() != nullptr) job->extras().gate_ms = 0;
    if (backlog == Backlog::kJoins) join_backlog(*job);
  }
  queue_->place(job);
  if (queue_->shown_state(job) == JobState::kPending) start_ttl(job);
  if (job->lane->lifo) follow_tickets(*job->lane, job);
}

void QueueWork::unplace_waiting(Job* job) {
  stop_ttl(job);
  queue_->unplace(job);
  if (job->lane->lifo) follow_tickets(*job->lane, job);
}

void QueueWork::settle(Job* job) {
  Job* other = queue_->owned_ticket(job);
  if (other == job) return;
  // Both are shown as before.
  queue_->unplace(job);
  queue_->unplace(other);
  Queue::exchange_tickets(job, other);
  queue_->place(job);
  queue_->place(other);
  record_state(other, EventType::kNone);
}

void QueueWork::change_lane(Job* job, uint8_t band, bool bound) {
  std::vector<Bytes> keys;
  for (const Key* key : job->lane->keys->keys) keys.push_back(key->name);
  change_lane(job, band, job->lane->group->name, keys, bound);
}

void QueueWork::change_lane(Job* job, uint8_t band, Bytes group, std::span<const Bytes> keys,
                            bool bound) {
  Lane* old = job->lane;
  if (bound) job->extras().bind();
  job->band = band;
  job->lane = queue_->join_lane(band, group, keys, bound);
  queue_->lanes.leave(old);
}

int64_t QueueWork::gate_of(std::optional<int64_t> delay_ms, std::optional<int64_t> at_ms) const {
  if (at_ms) return unit_->times.queue_time_of(*at_ms);
  return delay_ms ? queue_->queue_ms + *delay_ms : 0;
}

int64_t QueueWork::kept_at(std::optional<int64_t> at_ms) const {
  return at_ms && unit_->times.ahead_ms != 0 ? *at_ms : 0;
}

void rank_by_release(Job* job) {
  job->rank = job->extras().release_ms - job->extras().boost_ms;
  job->seq = job->arrival();
}

}  // namespace sluice
