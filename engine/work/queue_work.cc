// What all verbs of a queue share: records and events, the sides of waiting, the ends of a job.
#include "engine/work/queue_work.h"

#include <algorithm>
#include <utility>

#include "engine/base/prefetch_line.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/job_record.h"
#include "engine/reply/reply.h"
#include "engine/work/queue_serving.h"

namespace sluice {

namespace {

// A verb lets go of this many jobs or events that are not kept any longer; timers take the rest.
constexpr size_t kTrimmedPerVerb = 16;
// What it may cost to tell dependents of an end, by one verb or slice: each is one, and more by how
// much it needs besides.
constexpr size_t kToldPerHold = 256;
constexpr size_t kNeedsForOne = 4;
constexpr size_t kNeedBytesForOne = 1024;

// Needs that are not met yet stand in indexes, by their texts.
size_t telling_cost(const Job& job) {
  const std::vector<std::string>& unmet = job.extras_if()->unmet;
  size_t bytes = 0;
  for (const std::string& need : unmet) bytes += need.size();
  return 1 + unmet.size() / kNeedsForOne + bytes / kNeedBytesForOne;
}

bool is_job_record(EffectType type) {
  return type == EffectType::kJobPut || type == EffectType::kJobState ||
         type == EffectType::kJobGone;
}

}  // namespace

QueueWork::QueueWork(Database database, const KeyRef& key, Queue& queue, Unit& unit)
    : database_(database), key_(key), queue_(&queue), unit_(&unit) {
  // The configuration may have come by replay, limits depend on the time.
  queue_->now(unit_->times.queue_ms);
  if (queue_->stats.since_ms == 0) queue_->stats.since_ms = queue_->queue_ms;
}

QueueWork::~QueueWork() {
  if (changed_) list_queue_timers(database_.shard(), *queue_);
}

// --- Records ---

void QueueWork::touched() {
  changed_ = true;
  ++unit_->changes;
  database_.break_watches(key_.key);
  record_head_at_end(*unit_, *queue_);
}

void QueueWork::signal() { database_.signal(key_.key); }

void QueueWork::wrote(EffectType type, Bytes field) {
  if (is_job_record(type)) database_.signal_job(key_.key, field);
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
  // Behind the job that changed it: only with a job is there a group.
  if (owed_share_ == nullptr) return;
  const Group& group = *std::exchange(owed_share_, nullptr);
  record_share(ConfigLevel::kGroup, group.name, group.virtual_ms, group.limiter);
}

void QueueWork::record_gone(Bytes id, EventType type, const EventFields& fields) {
  const RecordedEvent event = next_event(id, type, fields);
  write(EffectType::kJobGone, id, [&](ByteBuffer& value) { encode_event(event, value); });
}

void QueueWork::record_share(ConfigLevel level, Bytes name, double virtual_ms,
                             const Limiter& limiter) {
  write(EffectType::kQueueShare, name,
        [&](ByteBuffer& value) { encode_share(level, virtual_ms, limiter.arrival_us, value); });
}

void QueueWork::record_release(const Release& release, RecordedRelease what) {
  write(EffectType::kQueueRelease, release.need,
        [&](ByteBuffer& value) { encode_release(release.number, what, value); });
}

void QueueWork::record_own_share() {
  record_share(ConfigLevel::kQueue, {}, queue_->lanes.virtual_ms(), queue_->limiter);
}

// What the admission of a job has changed besides the job: shares and rate tokens.
void QueueWork::record_limits(const Job& job) {
  if (queue_->config.values().fair || queue_->limiter.rate.tokens != 0) record_own_share();
  const Group& group = *job.lane->group;
  if (queue_->config.values().fair || group.limiter.rate.tokens != 0) {
    record_share(ConfigLevel::kGroup, group.name, group.virtual_ms, group.limiter);
  }
  for (const Key* key : job.lane->keys->keys) {
    if (key->limiter.rate.tokens != 0) {
      record_share(ConfigLevel::kKey, key->name, 0, key->limiter);
    }
  }
}

// --- Waiting ---

void QueueWork::join_backlog(const Job& job) {
  Group* group = job.lane->group;
  if (!queue_->config.values().fair || group->pending != 0 || still_backlogged_) return;
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
  // A budget that is spent expires with the next tick; none never does.
  if (left_ms == 0 && (extras == nullptr || extras->ttl_left_ms < 0)) return false;
  queue_->set_ttl_due(job, queue_->queue_ms + left_ms);
  return true;
}

bool QueueWork::stop_ttl(Job* job) {
  JobExtras* extras = job->extras_if();
  if (extras == nullptr || extras->ttl_due_ms == 0) return false;
  extras->ttl_left_ms = ttl_left_ms(*job, queue_->queue_ms);
  queue_->set_ttl_due(job, 0);
  return true;
}

// Who has spent nothing is as one that was never pending.
int64_t QueueWork::ttl_left_ms(const Job& job, int64_t now_ms) {
  const int64_t left_ms = std::max<int64_t>(0, job.extras_if()->ttl_due_ms - now_ms);
  return left_ms != 0 && left_ms == job.ttl_ms() ? -1 : left_ms;
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

void QueueWork::place_waiting(Job* job) {
  if (job->extras_if() != nullptr && !job->extras().unmet.empty()) {
    job->state = JobState::kBlocked;
  } else if (job->gate_ms() > queue_->queue_ms) {
    job->state = JobState::kDelayed;
  } else {
    job->state = JobState::kPending;
    if (job->extras_if() != nullptr) job->extras().gate_ms = 0;
    join_backlog(*job);
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

// --- Ends ---

namespace {

uint64_t Totals::*total_of(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return &Totals::completed;
    case JobState::kFailed:
      return &Totals::failed;
    case JobState::kCancelled:
      return &Totals::cancelled;
    default:
      return &Totals::expired;
  }
}

EventType event_of(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return EventType::kCompleted;
    case JobState::kFailed:
      return EventType::kFailed;
    case JobState::kCancelled:
      return EventType::kCancelled;
    default:
      return EventType::kExpired;
  }
}

}  // namespace

// Who waits for it hears at once, not when the unit ends: by then the job may be gone, or another
// one of this id be there.
void QueueWork::tell_end(const Job& job) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = database_.shard().waiters;
  if (lists.no_queue_waiters()) return;
  const std::string name(key_.key);
  const QueueWaiters* waiters = lists.find_queue(database_.number(), name);
  if (waiters == nullptr || waiters->by_job.empty()) return;
  const auto found = waiters->by_job.find(std::string(job.id()));
  if (found == waiters->by_job.end()) return;
  std::vector<std::shared_ptr<Waiter>> told;
  for (const auto& [order, waiter] : found->second) {
    if (dynamic_cast<const EndRequest*>(waiter->request.get()) != nullptr) told.push_back(waiter);
  }
  for (const std::shared_ptr<Waiter>& waiter : told) {
    lists.remove(name, waiter.get());
    if (!waiter->claim()) continue;
    Delivery delivery{waiter->port, {}, true};
    RespReply reply(delivery.bytes, waiter->protocol);
    static_cast<const EndRequest&>(*waiter->request).tell(*queue_, job, unit_->times, reply);
    unit_->deliveries.push_back(std::move(delivery));
  }
}

void QueueWork::finish(Job* job, JobState state, Bytes error, Bytes result, const JobRun* run) {
  queue_->for_each_stats_line(*job, [&](StatsLine& line) { ++(line.totals.*total_of(state)); });
  if (state == JobState::kCompleted) queue_->stats.completed.record(queue_->queue_ms);
  EventFields fields;
  if (run != nullptr) fields.add("lease", static_cast<int64_t>(run->token));
  if (!error.empty()) fields.add("error", error);
  const std::string id(job->id());
  JobExtras& extras = job->extras();
  extras.error = error;
  extras.unmet.clear();
  extras.end = std::make_unique<JobEnd>();
  extras.end->finished_ms = queue_->queue_ms;
  extras.end->result = result;
  if (run != nullptr) {
    extras.end->last_token = run->token;
    extras.end->run_ms = queue_->queue_ms - run->started_ms;
  }
  job->state = state;
  tell_end(*job);
  if (extras.successor != nullptr) {
    if (state == JobState::kCompleted) extras.acknowledged = extras.end->last_token;
    extras.end = nullptr;
    become_successor(job, event_of(state), fields);
    // Whoever needs this id waits for the successor, unless it has just been met.
    if (state == JobState::kCompleted) resolve_needs(id, true);
    signal();
    return;
  }
  extras.end->finish_order = queue_->next_finish++;
  queue_->place(job);
  record_state(job, event_of(state), fields);
  drop_retained(kTrimmedPerVerb);
  resolve_needs(id, state == JobState::kCompleted);
  signal();
}

// The waiting payload becomes the job, as a new one. The record of it carries the event of the run
// that has ended, so that the log tells both.
void QueueWork::become_successor(Job* job, EventType ended, const EventFields& fields) {
  const std::unique_ptr<JobSuccessor> successor = std::move(job->extras().successor);
  job = queue_->replace_payload(job, successor->payload);
  JobExtras& extras = job->extras();
  extras.attempts = extras.crashes = extras.retries_used = 0;
  extras.error.clear();
  extras.progress.clear();
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
    change_lane(job, band, successor->group, keys, false);
  } else {
    change_lane(job, band, false);
  }
  job->seq = queue_->next_seq++;
  extras.enqueued_ms = queue_->queue_ms;
  extras.release_ms = std::max(queue_->queue_ms, extras.gate_ms);
  job->rank = extras.release_ms - extras.boost_ms;
  place_waiting(job);
  record_put(job, ended, fields);
  record_state(job, EventType::kAdded);
  count_added(*job);
}

void QueueWork::count_added(const Job& job) {
  queue_->for_each_stats_line(job, [](StatsLine& line) { ++line.totals.added; });
  queue_->stats.added.record(queue_->queue_ms);
}

void QueueWork::merge_options(JobExtras& extras, const JobOptions& given) {
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
  if (!given.needs.empty()) options().needs = given.needs;
  if (!given.tags.empty()) options().tags = given.tags;
}

// Back to waiting at its rank, not before the gate. It keeps its own ticket from now on.
void QueueWork::go_back(Job* job, int64_t gate_ms, EventType event, const EventFields& fields) {
  if (job->extras().successor != nullptr) {
    become_successor(job, event, fields);
  } else {
    job->extras().bind();
    if (job->lane->lifo) change_lane(job, job->band, true);
    job->extras().gate_ms = gate_ms;
    place_waiting(job);
    record_state(job, event, fields);
  }
  signal();
}

// Of those that wait for this need, the first by rank; null: nobody does.
Job* QueueWork::first_dependent(const std::string& need) const {
  const auto found = queue_->dependents.find(need);
  return found == queue_->dependents.end() ? nullptr : found->second.front().value;
}

void QueueWork::meet_need(Job* job, const std::string& need) {
  told_ += telling_cost(*job);
  queue_->unplace(job);
  std::erase(job->extras().unmet, need);
  place_waiting(job);
  // One that its gate still holds is told when that opens.
  record_state(job, job->state == JobState::kPending ? EventType::kReady : EventType::kNone);
}

void QueueWork::fail_need(Job* job, const std::string& need) {
  told_ += telling_cost(*job);
  queue_->unplace(job);
  finish(job, JobState::kCancelled, "need " + need, {}, nullptr);
}

void QueueWork::resolve_needs(const std::string& id, bool completed) {
  if (completed) {
    Job* job = first_dependent(id);
    for (; job != nullptr && told_ < kToldPerHold; job = first_dependent(id)) meet_need(job, id);
    if (job != nullptr) begin_release(id, true);
    return;
  }
  if (!queue_->dependents.contains(id)) return;
  failed_needs_.push_back(id);
  // Chains of needs may be long: one loop, at the outermost call, ends them all.
  if (resolving_) return;
  resolving_ = true;
  while (!failed_needs_.empty()) {
    const std::string need = failed_needs_.back();
    Job* job = first_dependent(need);
    if (job != nullptr && told_ < kToldPerHold) {
      fail_need(job, need);
      continue;
    }
    failed_needs_.pop_back();
    if (job != nullptr) begin_release(need, false);
  }
  resolving_ = false;
}

// --- Releases ---

void QueueWork::begin_release(const std::string& need, bool completed) {
  const Release& release = queue_->begin_release(queue_->next_seq++, need, completed);
  record_release(release, recorded(release));
}

// What is told here may end another one by then: each is looked for anew.
void QueueWork::go_on_with_releases() {
  while (!queue_->releases.empty() && told_ < kToldPerHold) {
    const Release& release = queue_->releases.front();
    if (release.dependents.empty()) {
      ++told_;
      record_release(release, RecordedRelease::kOver);
      queue_->releases.erase(release.number);
      continue;
    }
    Job* job = release.dependents.front().value;
    if (release.completed) {
      meet_need(job, release.need);
    } else {
      fail_need(job, release.need);
    }
  }
}

// --- Retention ---

void QueueWork::drop_retained(size_t limit) {
  const QueueValues& values = queue_->config.values();
  const Retention* const bounds[] = {&values.retain_completed, &values.retain_failed};
  for (size_t kind = 0; kind < 2; ++kind) {
    auto& ended = queue_->ended[kind];
    for (size_t left = limit; left != 0 && !ended.empty(); --left) {
      const auto [order, finished_ms, oldest] = ended.front();
      const Retention& bound = *bounds[kind];
      const bool too_old =
          bound.age_ms != 0 && static_cast<int64_t>(finished_ms) + bound.age_ms <= queue_->queue_ms;
      if (!too_old && !queue_->retains_too_much(kind)) break;
      record_gone(oldest->id(), EventType::kNone);
      queue_->erase(oldest);
      // The one that goes next has not been looked at for long.
      if (!ended.empty()) prefetch_line(ended.front().value);
    }
  }
}

void QueueWork::forget(Job* job) {
  CHECK(is_terminal(job->state));
  record_gone(job->id(), EventType::kForgotten);
  queue_->erase(job);
}

}  // namespace sluice
