// Q.ADD: new jobs, and what IFDUP says where the id exists.
#include "engine/work/queue_work.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <span>

#include "engine/keyspace/shard.h"
#include "engine/queue/forecast.h"

namespace sluice {

namespace {

// What `retry_after_ms` says while nothing is known of how long jobs take.
constexpr int64_t kDefaultRetryAfterMs = 1000;

JobOptions options_of(const JobSpec& spec) {
  JobOptions options;
  if (spec.lease_ms) options.lease_ms = *spec.lease_ms;
  if (spec.max_run_ms) options.max_run_ms = *spec.max_run_ms;
  if (spec.retry) options.retry = static_cast<int32_t>(*spec.retry);
  if (spec.backoff_ms) {
    options.backoff_base_ms = spec.backoff_ms->first;
    options.backoff_max_ms = spec.backoff_ms->second;
  }
  for (const Bytes need : spec.needs) options.needs.emplace_back(need);
  for (const auto& [name, value] : spec.tags) options.tags.emplace_back(name, value);
  return options;
}

// The keys that were named, in any order and as often as they like, are those of the set.
bool are_keys(std::span<const Bytes> named, const KeySet& set) {
  if (named.empty() || set.keys.empty()) return named.empty() == set.keys.empty();
  const std::set<Bytes> keys(named.begin(), named.end());
  return std::equal(keys.begin(), keys.end(), set.keys.begin(), set.keys.end(),
                    [](Bytes name, const Key* key) { return name == key->name; });
}

std::string bad_field(Bytes field) { return QueueError("BADFIELD").with("field", field).text(); }

}  // namespace

std::string QueueWork::refused(Rejection reason, const QueueError& error) {
  count_rejection(reason);
  return error.text();
}

std::string QueueWork::add(const JobSpec& spec, AddOutcome& outcome) {
  const uint64_t max_payload = queue_->config.values().max_payload;
  if (max_payload != 0 && spec.payload.size() > max_payload) {
    return refused(Rejection::kTooBig, QueueError("TOOBIG").with("limit", max_payload));
  }
  if (spec.id != "*") {
    if (Job* old = queue_->find(spec.id)) return add_again(spec, old, outcome);
  }
  return add_new(spec, false, outcome);
}

// --- New jobs ---

std::string QueueWork::check_cost(const JobSpec& spec) const {
  const uint32_t cost = spec.cost.value_or(1);
  if (cost <= 1) return {};
  const QueueValues& values = queue_->config.values();
  // What `adaptive` may lower the cap to: above it the job could wait for ever.
  const uint64_t slots = values.adaptive.max != 0 ? values.adaptive.min : queue_->max_active();
  const Reserve& reserve = values.reserve;
  const bool leaves_some =
      reserve.band >= 0 && spec.band.value_or(values.default_band) > reserve.band;
  bool fits = slots == 0 || cost + (leaves_some ? reserve.slots : 0) <= slots;
  const GroupConfig group =
      spec.group && !spec.group->empty() ? queue_->group_config(*spec.group) : GroupConfig{};
  fits = fits && (group.limits.max_active == 0 || cost <= group.limits.max_active);
  for (const Bytes key : spec.keys) {
    const uint64_t max = queue_->config.key(key).max_active;
    fits = fits && (max == 0 || cost <= max);
  }
  return fits ? std::string() : bad_field("cost");
}

std::string QueueWork::check_needs(const JobSpec& spec, std::vector<std::string>& unmet) {
  for (const Bytes need : spec.needs) {
    const Job* job = queue_->find(need);
    if (job == nullptr) return QueueError("NOJOB").with("id", need).text();
    if (job->state == JobState::kCompleted) continue;
    if (is_terminal(job->state)) {
      return refused(
          Rejection::kNeedFailed,
          QueueError("NEEDFAILED").with("id", need).with("state", job_state_name(job->state)));
    }
    if (std::find(unmet.begin(), unmet.end(), need) == unmet.end()) unmet.emplace_back(need);
  }
  return {};
}

std::string QueueWork::check_pause(Paused paused) {
  if (!pauses_in(paused)) return {};
  return refused(Rejection::kPaused, QueueError("PAUSED").with("direction", Bytes("in")));
}

std::string QueueWork::full_error(uint64_t max) {
  const RecentMean& runs = queue_->stats.all.recent_run_ms;
  int64_t retry_ms = kDefaultRetryAfterMs;
  if (runs.count() != 0) {
    const uint64_t slots = std::max<uint64_t>(
        1, queue_->max_active() != 0 ? queue_->max_active() : queue_->count(JobState::kActive));
    retry_ms = std::max<int64_t>(1, static_cast<int64_t>(runs.mean() / static_cast<double>(slots)));
  }
  return refused(Rejection::kQueueFull, QueueError("QFULL")
                                            .with("pending", queue_->waiting())
                                            .with("max", max)
                                            .with("retry_after_ms", retry_ms));
}

// The last job of the least urgent band below the newcomer's, which makes room for it; null: none.
Job* QueueWork::find_displaced(uint8_t band) const {
  const std::vector<uint8_t>& bands = queue_->lanes.used_bands();
  for (size_t i = bands.size(); i != 0 && bands[i - 1] > band; --i) {
    const auto& pending = queue_->lanes.band(bands[i - 1])->pending;
    if (!pending.empty()) return queue_->ticket_owner(pending.back().value);
  }
  return nullptr;
}

std::string QueueWork::check_group_room(const Queue::NamedGroup& group) {
  const Limits& limits = group.config.limits;
  const auto full = [&](Bytes limit, uint64_t value) {
    return refused(Rejection::kGroupFull, QueueError("GROUPFULL")
                                              .with("group", group.name)
                                              .with("limit", limit)
                                              .with("value", value));
  };
  if (limits.max_waiting != 0 && group.waiting >= limits.max_waiting) {
    return full("max_waiting", limits.max_waiting);
  }
  if (limits.max_total != 0 && group.waiting + group.active >= limits.max_total) {
    return full("max_total", limits.max_total);
  }
  return {};
}

// What replaces the job takes its place, or that of its successor, in the same group; any other
// group is asked.
std::string QueueWork::check_other_group(const Queue::NamedGroup& group, const Job& job) {
  const JobExtras* extras = job.extras_if();
  const JobSuccessor* successor = extras == nullptr ? nullptr : extras->successor.get();
  const bool is_there =
      successor != nullptr && successor->replaces && successor->group == group.name;
  if (group.name.empty() || group.name == job.lane->group->name || is_there) return {};
  std::string error = check_pause(group.config.limits.paused);
  return error.empty() ? check_group_room(group) : error;
}

std::string QueueWork::check_room(const Queue::NamedGroup& group, uint8_t band, Newcomer newcomer) {
  const Limits& limits = queue_->config.values().limits;
  const uint64_t waiting = queue_->waiting();
  const bool full = limits.max_waiting != 0 && waiting >= limits.max_waiting;
  const bool total_full =
      limits.max_total != 0 && waiting + queue_->count(JobState::kActive) >= limits.max_total;
  const bool any_full = full || total_full;
  const bool displaces =
      any_full && queue_->config.values().displace && newcomer != Newcomer::kBlocked;
  Job* displaced = displaces ? find_displaced(band) : nullptr;
  if (any_full && displaced == nullptr) {
    return full_error(full ? limits.max_waiting : limits.max_total);
  }
  // A group's limit always refuses; nobody is displaced for a job that is refused.
  if (!group.name.empty()) {
    std::string error = check_group_room(group);
    if (!error.empty()) return error;
  }
  if (displaced != nullptr && newcomer != Newcomer::kTooLate) {
    cancel(displaced, "displaced", std::nullopt);
  }
  return {};
}

int64_t QueueWork::gate_of(std::optional<int64_t> delay_ms, std::optional<int64_t> at_ms) const {
  if (at_ms) return unit_->times.queue_time_of(*at_ms);
  return delay_ms ? queue_->queue_ms + *delay_ms : 0;
}

int64_t QueueWork::kept_at(std::optional<int64_t> at_ms) const {
  return at_ms && unit_->times.ahead_ms != 0 ? *at_ms : 0;
}

Job* QueueWork::build(const JobSpec& spec, uint8_t band, Bytes id, const Queue::NamedGroup& group,
                      std::vector<std::string> unmet) {
  Job* job = Job::make(id, spec.payload);
  const int64_t now = queue_->queue_ms;
  job->seq = queue_->next_seq++;
  job->band = band;
  job->lane = queue_->join_lane(band, group, spec.keys, false);
  int64_t gate_ms = gate_of(spec.delay_ms, spec.at_ms);
  if (gate_ms <= now) gate_ms = 0;
  const int64_t at_ms = kept_at(spec.at_ms);
  const int64_t boost_ms = spec.boost_ms.value_or(0);
  const int64_t ttl_ms = spec.ttl_ms.value_or(group.config.ttl_ms);
  const int64_t release_ms = std::max(now, gate_ms);
  job->rank = release_ms;  // what extras begin with
  const bool has_options = spec.lease_ms || spec.max_run_ms || spec.retry || spec.backoff_ms ||
                           !spec.needs.empty() || !spec.tags.empty();
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
    if (has_options) extras.options = std::make_unique<JobOptions>(options_of(spec));
  }
  job->rank = release_ms - boost_ms;
  return job;
}

// The lane that the job would come to; null: there is none yet.
const Lane* QueueWork::find_lane(const JobSpec& spec, uint8_t band) const {
  const Group* group = queue_->lanes.find_group(spec.group.value_or(Bytes()));
  if (group == nullptr) return nullptr;
  const bool lifo = group->config.order.is_lifo(band);
  const auto is_it = [&](const Lane* lane) {
    return lane->lifo == lifo && lane->band == band && are_keys(spec.keys, *lane->keys);
  };
  const auto found = std::find_if(group->lanes.begin(), group->lanes.end(), is_it);
  return found == group->lanes.end() ? nullptr : *found;
}

size_t QueueWork::waiting_pops() NO_THREAD_SAFETY_ANALYSIS {
  const WaiterLists& waiters = database_.shard().waiters;
  if (waiters.no_queue_waiters()) return 0;
  const QueueWaiters* here = waiters.find_queue(database_.number(), std::string(key_.key));
  return here == nullptr ? 0 : here->all_pops.size();
}

std::string QueueWork::check_wait(const JobSpec& spec, uint8_t band,
                                  const Queue::NamedGroup& group) {
  if (!spec.max_wait_ms) return {};
  ForecastPlace place;
  place.band = band;
  place.rank = queue_->queue_ms - spec.boost_ms.value_or(0);
  place.seq = UINT64_MAX;
  place.group = queue_->lanes.find_group(group.name);
  place.lane = find_lane(spec, band);
  place.weight = group.config.weight;
  std::vector<Key*> keys;
  for (const Bytes name : spec.keys) {
    if (Key* key = queue_->lanes.find_key(name)) keys.push_back(key);
  }
  place.keys = keys;
  // The newest job of a LIFO lane goes by the lane's first ticket.
  const Lane* lane = place.lane;
  if (lane != nullptr && lane->lifo && lane->has_pending() &&
      lane->first_ticket()->rank <= place.rank) {
    place.rank = lane->first_ticket()->rank;
    place.seq = lane->first_ticket()->seq;
  }
  uint64_t before = 0;
  for (const uint8_t number : queue_->lanes.used_bands()) {
    if (number > band) break;
    const auto& pending = queue_->lanes.band(number)->pending;
    before += number < band ? pending.size() : pending.count_below(rank_key(place.rank), place.seq);
  }
  const int64_t eta_ms = queue_->eta_ms(place, before, {queue_->queue_ms, waiting_pops()});
  if (eta_ms <= *spec.max_wait_ms) return {};
  return refused(
      Rejection::kTooLate,
      QueueError("TOOLATE").with("eta_ms", eta_ms).with("maxwait_ms", *spec.max_wait_ms));
}

std::string QueueWork::add_new(const JobSpec& spec, bool retained, AddOutcome& outcome) {
  std::vector<std::string> unmet;
  const Queue::NamedGroup group = queue_->named_group(spec.group.value_or(Bytes()));
  const uint8_t band = spec.band.value_or(queue_->config.values().default_band);
  std::string error = check_cost(spec);
  if (error.empty()) error = check_needs(spec, unmet);
  if (error.empty()) error = check_pause(queue_->config.values().limits.paused);
  if (error.empty()) error = check_pause(group.config.limits.paused);
  // Before anybody is displaced for a job that is then too late.
  std::string too_late = error.empty() ? check_wait(spec, band, group) : std::string();
  const Newcomer newcomer = !too_late.empty() ? Newcomer::kTooLate
                            : unmet.empty()   ? Newcomer::kRuns
                                              : Newcomer::kBlocked;
  if (error.empty()) error = check_room(group, band, newcomer);
  if (error.empty()) error = std::move(too_late);
  if (!error.empty()) return error;
  std::string id(spec.id);
  if (id == "*") {
    // No name of a queue gets one twice, as neither part goes back: not the time, across restarts,
    // nor the number while the server runs. But a caller may have named a job so.
    std::atomic<uint64_t>& generated = *database_.shard().generated_ids;
    do {
      id = std::to_string(queue_->queue_ms) + "-" +
           std::to_string(generated.fetch_add(1, std::memory_order_relaxed) + 1);
    } while (queue_->find(id) != nullptr);
  } else if (Job* old = retained ? queue_->find(id) : nullptr) {
    // The caller wants a new one (IFDUP). What made room for it may have let go of the old one.
    record_gone(id, EventType::kNone);
    queue_->erase(old);
  }
  Job* job = build(spec, band, id, group, std::move(unmet));
  place_new(job);
  outcome = {"added", job};
  return {};
}

void QueueWork::place_new(Job* job) {
  queue_->jobs.insert(job, hash_bytes(job->id()));
  place_waiting(job);
  record_put(job, EventType::kAdded);
  count_added(*job);
  signal();
}

// --- The id exists ---

std::string QueueWork::add_again(const JobSpec& spec, Job* old, AddOutcome& outcome) {
  switch (spec.if_duplicate) {
    case IfDuplicate::kError:
      return refused(Rejection::kDuplicate,
                     QueueError("DUPLICATE")
                         .with("id", spec.id)
                         .with("state", job_state_name(queue_->shown_state(old))));
    case IfDuplicate::kKeep:
      outcome = {"kept", old};
      return {};
    case IfDuplicate::kUpdate:
      if (is_terminal(old->state)) return add_new(spec, true, outcome);
      if (old->state == JobState::kActive) return set_successor(spec, old, outcome);
      return update_waiting(spec, old, outcome);
    case IfDuplicate::kReplace:
      break;
  }
  if (is_terminal(old->state)) return add_new(spec, true, outcome);
  if (old->state == JobState::kActive) return set_successor(spec, old, outcome);
  return replace_waiting(spec, old, outcome);
}

// Whether the update names the release that the job has. A gate that has passed is not kept, but
// when the job was released is.
bool QueueWork::is_released_at(const JobSpec& spec, const Job& job) const {
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
         is_gate(unit_->times.queue_time_of(*spec.at_ms));
}

// What an update may name only with the value that the job has.
std::string QueueWork::check_unchanged(const JobSpec& spec, const Job& job) const {
  const JobExtras* extras = job.extras_if();
  const int64_t boost_ms = extras == nullptr ? 0 : extras->boost_ms;
  if (spec.boost_ms && *spec.boost_ms != boost_ms) return bad_field("boost");
  if (!is_released_at(spec, job)) return bad_field(spec.at_ms ? "at" : "delay");
  if (spec.group && *spec.group != job.lane->group->name) return bad_field("group");
  if (spec.cost && *spec.cost != job.cost()) return bad_field("cost");
  if (!spec.keys.empty() && !are_keys(spec.keys, *job.lane->keys)) return bad_field("key");
  if (!spec.needs.empty()) {
    // Neither says one twice; their order means nothing.
    const std::set<Bytes> named(spec.needs.begin(), spec.needs.end());
    const JobOptions* options = job.options();
    if (options == nullptr ||
        named != std::set<Bytes>(options->needs.begin(), options->needs.end())) {
      return bad_field("need");
    }
  }
  return {};
}

std::string QueueWork::update_waiting(const JobSpec& spec, Job* job, AddOutcome& outcome) {
  std::string error = check_unchanged(spec, *job);
  if (!error.empty()) return error;
  const bool other_band = spec.band && *spec.band != job->band;
  if (other_band) settle(job);
  still_backlogged_ = job->state == JobState::kPending;
  unplace_waiting(job);
  job = queue_->replace_payload(job, spec.payload);
  JobOptions options = options_of(spec);
  options.needs.clear();
  merge_options(job->extras(), options);
  if (spec.ttl_ms) {
    job->extras().ttl_ms = *spec.ttl_ms;
    job->extras().ttl_left_ms = -1;
  }
  if (other_band) {
    change_lane(job, *spec.band, job->extras().bound);
    // Of its old band it was at the front or the back; a job that is not bound is at neither.
    if (job->extras().bound) rank_by_release(job);
  }
  place_waiting(job);
  still_backlogged_ = false;
  record_put(job, EventType::kUpdated);
  signal();
  outcome = {"updated", job};
  return {};
}

std::string QueueWork::replace_waiting(const JobSpec& spec, Job* job, AddOutcome& outcome) {
  std::vector<std::string> unmet;
  std::string error = check_cost(spec);
  if (error.empty()) error = check_needs(spec, unmet);
  const Queue::NamedGroup group = queue_->named_group(spec.group.value_or(Bytes()));
  if (error.empty()) error = check_other_group(group, *job);
  if (!error.empty()) return error;
  // Needs of a job that others need already could close a circle.
  const bool needed = queue_->dependents.contains(std::string(spec.id));
  const bool itself = std::find(unmet.begin(), unmet.end(), spec.id) != unmet.end();
  if (itself || (needed && !unmet.empty())) return bad_field("need");
  settle(job);
  unplace_waiting(job);
  queue_->for_each_stats_line(*job, [](StatsLine& line) { ++line.totals.cancelled; });
  EventFields fields;
  fields.add("error", Bytes("replaced"));
  const std::string id(job->id());
  record_gone(id, EventType::kCancelled, fields);
  // Who waits for its end hears of it; whoever needs this id waits for the new job.
  JobExtras& extras = job->extras();
  extras.error = "replaced";
  extras.unmet.clear();
  extras.end = std::make_unique<JobEnd>();
  extras.end->finished_ms = queue_->queue_ms;
  job->state = JobState::kCancelled;
  tell_end(*job);
  queue_->place(job);
  queue_->erase(job);
  const uint8_t band = spec.band.value_or(queue_->config.values().default_band);
  Job* made = build(spec, band, id, group, std::move(unmet));
  place_new(made);
  outcome = {"replaced", made};
  return {};
}

std::string QueueWork::set_successor(const JobSpec& spec, Job* job, AddOutcome& outcome) {
  const bool replaces = spec.if_duplicate == IfDuplicate::kReplace;
  // A replacement is a new job in all but its id, which exists: so it can need nobody.
  std::string error = replaces ? check_cost(spec) : check_unchanged(spec, *job);
  if (replaces && error.empty() && !spec.needs.empty()) error = bad_field("need");
  const Queue::NamedGroup group = queue_->named_group(spec.group.value_or(Bytes()));
  if (replaces && error.empty()) error = check_other_group(group, *job);
  if (!error.empty()) return error;
  auto successor = std::make_unique<JobSuccessor>();
  successor->payload = spec.payload;
  successor->replaces = replaces;
  if (spec.band) successor->band = *spec.band;
  if (spec.ttl_ms) successor->ttl_ms = *spec.ttl_ms;
  successor->options = options_of(spec);
  successor->options.needs.clear();
  if (replaces) {
    if (!spec.band) successor->band = queue_->config.values().default_band;
    if (!spec.ttl_ms && group.config.ttl_ms != 0) successor->ttl_ms = group.config.ttl_ms;
    successor->group = spec.group.value_or(Bytes());
    successor->keys.assign(spec.keys.begin(), spec.keys.end());
    successor->cost = spec.cost.value_or(1);
    successor->boost_ms = spec.boost_ms.value_or(0);
    successor->gate_ms = gate_of(spec.delay_ms, spec.at_ms);
    successor->at_ms = kept_at(spec.at_ms);
  }
  queue_->unplace(job);
  job->extras().successor = std::move(successor);
  queue_->place(job);
  record_state(job, EventType::kUpdated);
  if (replaces) signal_cancel(job, "replaced", std::nullopt);
  outcome = {"queued", job};
  return {};
}

}  // namespace sluice
