#include "engine/queue/queue.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/queue/adopted_keys.h"
#include "engine/queue/forecast.h"
#include "engine/queue/worker_silence.h"

namespace sluice {

namespace {

uint64_t finished_key(const Job* job) { return static_cast<uint64_t>(job->end()->finished_ms); }

bool has_ticket(JobState state) {
  return state == JobState::kPending || state == JobState::kDelayed;
}

}  // namespace

Queue::Queue() : lanes(config) { take_own_limits(); }

Queue::~Queue() {
  // The timers hold a pointer to each queue that they list.
  CHECK(!retired || (listed_due_ms == INT64_MAX && listed_due_steady == INT64_MAX));
  jobs.for_each(Job::destroy);
}

// --- Indexes of jobs ---

void Queue::insert(Job* job, uint64_t id_hash) {
  // The jobs of a checkpoint arrive in the order of the map that was walked.
  if (is_replaying() && jobs.size() == jobs.kMaxOrdered) jobs.reserve_by_density();
  jobs.insert(job, id_hash);
  place(job);
}

void Queue::erase(Job* job) {
  unplace(job);
  const bool found = jobs.erase_node(job, hash_bytes(job->id()));
  CHECK(found);
  lanes.leave(job->lane);
  Job::destroy(job);
}

Job* Queue::replace_payload(Job* job, Bytes payload) {
  Job* made = job->with_payload(payload);
  jobs.replace(job, made, hash_bytes(made->id()));
  Job::destroy(job);
  return made;
}

// A group with jobs already has its resolved rules.
GroupConfig Queue::group_config(Bytes name) const {
  const Group* known = lanes.find_group(name);
  return known != nullptr ? known->config : config.group(name);
}

Queue::NamedGroup Queue::named_group(Bytes name) const {
  const Group* known = lanes.find_group(name);
  if (known == nullptr) return {name, config.group(name)};
  return {name, known->config, known->waiting, known->active};
}

Lane* Queue::join_lane(uint8_t band, const NamedGroup& group, std::span<const Bytes> keys,
                       bool bound) {
  const bool lifo = !bound && group.config.order.is_lifo(band);
  return lanes.join(band, group.name, keys, lifo, queue_ms);
}

void Queue::count_in(const Job* job, bool in) {
  const uint64_t one = in ? 1 : UINT64_MAX;  // adding this takes one away
  counts_[static_cast<size_t>(job->state)] += one;
  job_bytes_ += in ? job->memory_bytes() : -job->memory_bytes();
  Group* group = job->lane->group;
  Band* band = lanes.band(job->band);
  if (job->state < JobState::kActive) {
    group->waiting += one;
    band->waiting += one;
  } else if (job->state == JobState::kActive) {
    group->active += one;
    band->active += one;
  }
  if (job->state == JobState::kDelayed) {
    group->delayed += one;
    band->delayed += one;
  } else if (job->state == JobState::kBlocked) {
    group->blocked += one;
    band->blocked += one;
  }
  count_tags(job, one);
  const JobExtras* extras = job->extras_if();
  if (extras == nullptr || extras->successor == nullptr) return;
  successors += one;
  band->waiting += one;
  // A successor counts as waiting in the group to which it will belong.
  const JobSuccessor& successor = *extras->successor;
  const bool elsewhere = successor.replaces && successor.group != group->name;
  if (elsewhere) group = in ? lanes.hold(successor.group) : lanes.find_group(successor.group);
  group->waiting += one;
  if (elsewhere && !in) lanes.let_go(group);
}

void Queue::count_tags(const Job* job, uint64_t one) {
  if (job->options() == nullptr) return;
  if (job->state != JobState::kPending && job->state != JobState::kActive) return;
  for (const auto& [name, value] : job->options()->tags) {
    TagLine* line = stats.tag(name, value);
    if (line == nullptr) continue;
    (job->state == JobState::kPending ? line->pending : line->active) += one;
  }
}

// A job whose state is not one of `later` is in the band's own order, or in none.
void Queue::place_later(Job* job) {
  if (job->state == JobState::kPending || is_terminal(job->state) || job->rank <= queue_ms) return;
  lanes.band(job->band)->later.insert(rank_key(job->rank), job->seq, job);
}

void Queue::unplace_later(Job* job) {
  if (job->state == JobState::kPending || is_terminal(job->state)) return;
  OrderedIndex<Job*>& later = lanes.band(job->band)->later;
  // Whether it was added depends on the queue time at which it was placed.
  if (!later.empty()) later.erase(rank_key(job->rank), job->seq, job);
}

void Queue::place(Job* job) {
  if (job->state == JobState::kActive && job->run()->worker != nullptr) {
    workers.add_run(job->run()->worker, job);
  }
  if (is_replaying()) return arrivals_->add(job);
  // A damaged record may have a blocked job without needs. Allocates the extras now, because memory
  // is counted next.
  if (job->state == JobState::kBlocked) job->extras();
  count_in(job, true);
  place_later(job);
  switch (job->state) {
    case JobState::kBlocked:
      for (const std::string& need : job->extras().unmet) {
        add_awaiting(need, job);
      }
      break;
    case JobState::kDelayed:
      delays.insert(static_cast<uint64_t>(job->gate_ms()), job->seq, job);
      lanes.add_ticket(job, false, queue_ms);
      insert_ttl(job);
      break;
    case JobState::kPending:
      lanes.add_ticket(job, true, queue_ms);
      insert_ttl(job);
      break;
    case JobState::kActive:
      place_active(job);
      break;
    default:
      ended[ended_kind(job->state)].insert(job->end()->finish_order, finished_key(job), job);
      ended_bytes[ended_kind(job->state)] += job->retained_bytes();
  }
}

void Queue::unplace(Job* job) {
  if (job->state == JobState::kActive && job->run()->worker != nullptr) {
    workers.remove_run(job->run()->worker, job);
  }
  if (is_replaying()) return arrivals_->remove(job);
  count_in(job, false);
  unplace_later(job);
  bool found = true;
  switch (job->state) {
    case JobState::kBlocked:
      unplace_blocked(job);
      break;
    case JobState::kDelayed:
      found = delays.erase(static_cast<uint64_t>(job->gate_ms()), job->seq, job);
      lanes.remove_ticket(job, false, queue_ms);
      erase_ttl(job);
      break;
    case JobState::kPending:
      lanes.remove_ticket(job, true, queue_ms);
      erase_ttl(job);
      break;
    case JobState::kActive:
      unplace_active(job);
      break;
    default:
      found = ended[ended_kind(job->state)].erase(job->end()->finish_order, finished_key(job), job);
      ended_bytes[ended_kind(job->state)] -= job->retained_bytes();
  }
  CHECK(found);
}

void Queue::place_active(Job* job) {
  const JobRun& run = *job->run();
  leases.insert(static_cast<uint64_t>(run.due_steady()), run.token, job);
  runs.insert(static_cast<uint64_t>(run.started_ms), run.token, job);
  insert_tied(job);
  limiter.used += job->cost();
  lanes.admit(job, queue_ms);
}

// In a LIFO lane a job whose own ticket is not due may be pending by another's ticket.
void Queue::insert_ttl(Job* job) {
  const JobExtras* extras = job->extras_if();
  if (extras == nullptr || extras->ttl_due_ms == 0) return;
  ttls.insert(static_cast<uint64_t>(extras->ttl_due_ms), job->arrival(), job);
}

void Queue::erase_ttl(Job* job) {
  const JobExtras* extras = job->extras_if();
  if (extras == nullptr || extras->ttl_due_ms == 0) return;
  const bool found = ttls.erase(static_cast<uint64_t>(extras->ttl_due_ms), job->arrival(), job);
  CHECK(found);
}

void Queue::set_ttl_due(Job* job, int64_t due_ms) {
  erase_ttl(job);
  job->extras().ttl_due_ms = due_ms;
  insert_ttl(job);
}

void Queue::set_progress(Job* job, Bytes progress) {
  job_bytes_ -= job->memory_bytes();
  job->extras().progress = progress;
  job_bytes_ += job->memory_bytes();
}

void Queue::pace_progress(Bytes id) {
  if (progress_pace == nullptr) progress_pace = std::make_unique<ProgressPace>();
  progress_pace->begin(id, queue_ms);
}

void Queue::set_deadline(Job* job, int64_t deadline_steady) {
  JobRun& run = *job->run();
  const bool found = leases.erase(static_cast<uint64_t>(run.due_steady()), run.token, job);
  CHECK(found);
  run.deadline_steady = deadline_steady;
  leases.insert(static_cast<uint64_t>(run.due_steady()), run.token, job);
}

void Queue::insert_tied(Job* job) {
  const JobRun& run = *job->run();
  if (run.tied_client_id != 0) tied.insert(run.tied_client_id, run.token, job);
}

void Queue::erase_tied(Job* job) {
  const JobRun& run = *job->run();
  if (run.tied_client_id == 0) return;
  const bool found = tied.erase(run.tied_client_id, run.token, job);
  CHECK(found);
}

void Queue::tie(Job* job, uint64_t client_id) {
  erase_tied(job);
  job->run()->tied_client_id = client_id;
  insert_tied(job);
}

void Queue::unplace_active(Job* job) {
  const JobRun& run = *job->run();
  const bool found = leases.erase(static_cast<uint64_t>(run.due_steady()), run.token, job) &&
                     runs.erase(static_cast<uint64_t>(run.started_ms), run.token, job);
  CHECK(found);
  erase_tied(job);
  CHECK(limiter.used >= job->cost());
  limiter.used -= job->cost();
  lanes.release(job, queue_ms);
}

// --- Workers ---

Worker* Queue::hear_worker(Bytes name) {
  Worker* worker = workers.hear(name, queue_ms);
  if (worker != nullptr && config.has_worker_names()) config.heard(name, queue_ms);
  return worker;
}

void Queue::hear_worker(Worker* worker) {
  workers.hear(worker, queue_ms);
  if (worker != nullptr && config.has_worker_names()) config.heard(worker->name, queue_ms);
}

// --- LIFO tickets ---

Job* Queue::owned_ticket(const Job* job) const {
  const Lane* lane = job->lane;
  if (!lane->lifo || !has_ticket(job->state)) return const_cast<Job*>(job);
  Job* self = const_cast<Job*>(job);
  const uint64_t newer = lane->stack.size() - 1 - lane->stack.rank(job->arrival(), 0, self);
  const uint64_t due = lane->tickets.size();
  return newer < due ? lane->tickets.at(newer).value() : lane->gated.at(newer - due).value();
}

Job* Queue::ticket_owner(Job* ticket) {
  const Lane* lane = ticket->lane;
  if (!lane->lifo) return ticket;
  const uint64_t key = rank_key(ticket->rank);
  const uint64_t before = ticket->state == JobState::kPending
                              ? lane->tickets.rank(key, ticket->seq, ticket)
                              : lane->tickets.size() + lane->gated.rank(key, ticket->seq, ticket);
  return lane->stack.at(lane->stack.size() - 1 - before).value();
}

JobState Queue::shown_state(const Job* job) const { return owned_ticket(job)->state; }

void Queue::exchange_tickets(Job* a, Job* b) {
  JobExtras& first = a->extras();
  JobExtras& second = b->extras();
  // From now on the place in the stack and the ticket's number are separate.
  first.arrival = a->arrival();
  second.arrival = b->arrival();
  std::swap(a->rank, b->rank);
  std::swap(a->seq, b->seq);
  std::swap(a->state, b->state);
  std::swap(first.release_ms, second.release_ms);
  std::swap(first.boost_ms, second.boost_ms);
  std::swap(first.gate_ms, second.gate_ms);
  std::swap(first.at_ms, second.at_ms);
}

// --- Order ---

uint64_t Queue::position(const Job* job) const {
  Job* ticket = owned_ticket(job);
  CHECK(ticket->state == JobState::kPending);
  uint64_t before = 0;
  for (const uint8_t number : lanes.used_bands()) {
    if (number >= ticket->band) break;
    before += lanes.band(number)->pending.size();
  }
  return before +
         lanes.band(ticket->band)->pending.rank(rank_key(ticket->rank), ticket->seq, ticket);
}

void Queue::reconfigure(const ConfigChange& change, size_t steps,
                        std::vector<Lanes::BoundRate>* bound) {
  if (change.level == ConfigLevel::kWorker) return;
  forecast_.reset();
  take_own_limits();
  lanes.reconfigure(change, queue_ms, bound);
  lanes.reconfigure_some(steps, queue_ms, bound);
}

void Queue::take_own_limits() {
  const QueueValues& values = config.values();
  limiter.max_active = values.limits.max_active;
  limiter.set_rate(values.limits.rate);
  limiter.paused = pauses_out(values.limits.paused);
  if (values.adaptive.max != 0) {
    if (adaptive_max == 0) {
      adaptive_max = values.limits.max_active != 0 ? values.limits.max_active : values.adaptive.max;
    }
    adaptive_max = std::clamp(adaptive_max, values.adaptive.min, values.adaptive.max);
    limiter.max_active = adaptive_max;
  } else {
    adaptive_max = 0;
  }
}

// --- Timers ---

bool Queue::retains_too_much(size_t kind) const {
  const Retention& bound =
      kind == 0 ? config.values().retain_completed : config.values().retain_failed;
  return ended[kind].size() > bound.count || (bound.bytes != 0 && ended_bytes[kind] > bound.bytes);
}

Queue::Dropped Queue::count_dropped(size_t kind, const Retention& bound, int64_t now_ms,
                                    size_t most) const {
  const auto& all = ended[kind];
  Dropped dropped{.count = all.size() - std::min(all.size(), bound.count)};
  if (bound.age_ms != 0) {
    const uint64_t old = all.count_by([&](uint64_t, uint64_t finished_ms, const Job*) {
      return static_cast<int64_t>(finished_ms) + bound.age_ms <= now_ms;
    });
    dropped.count = std::max(dropped.count, old);
  }
  uint64_t bytes = ended_bytes[kind];
  const bool all_fit = bound.bytes == 0 || bytes <= bound.bytes;
  if (all_fit || dropped.count == all.size()) return dropped;
  // Each job knows its own bytes only.
  uint64_t large = 0;
  for (auto at = all.begin(); bytes > bound.bytes && large < most; at.next(), ++large) {
    bytes -= at.value()->retained_bytes();
  }
  dropped.complete = bytes <= bound.bytes;
  dropped.count = std::max(dropped.count, large);
  return dropped;
}

int64_t Queue::next_due_ms() const {
  if (!releases.empty() || retains_too_much(0) || retains_too_much(1) || lanes.is_reconfiguring())
    return queue_ms;
  int64_t due = lanes.next_rate_ms();
  if (workers.oldest_ms() != INT64_MAX) {
    due = std::min(due, workers.oldest_ms() + worker_known_ms(config.values()));
  }
  if (config.has_worker_names()) due = std::min(due, rules_due_ms);
  if (!delays.empty()) due = std::min(due, static_cast<int64_t>(delays.front().major));
  if (!ttls.empty()) due = std::min(due, static_cast<int64_t>(ttls.front().major));
  if (count(JobState::kPending) != 0) {
    const int64_t refill_ms = limiter.rate_ready_ms(queue_ms);
    if (refill_ms != 0) due = std::min(due, refill_ms);
  }
  const Retention* const bounds[] = {&config.values().retain_completed,
                                     &config.values().retain_failed};
  for (size_t kind = 0; kind < 2; ++kind) {
    if (ended[kind].empty() || bounds[kind]->age_ms == 0) continue;
    const auto finished_ms = static_cast<int64_t>(ended[kind].front().minor);
    due = std::min(due, finished_ms + bounds[kind]->age_ms);
  }
  if (progress_pace != nullptr) due = std::min(due, progress_pace->next_due_ms());
  if (!events.empty() && config.values().events.age_ms != 0) {
    due = std::min(due, events.oldest_ms() + config.values().events.age_ms);
  }
  return due;
}

int64_t Queue::next_due_steady() const {
  if (adopted != nullptr) return adopted->next_due_steady();
  int64_t due = leases.empty() ? INT64_MAX : static_cast<int64_t>(leases.front().major);
  if (!lost_connections.empty()) due = std::min(due, lost_connections.front().due_steady);
  return due;
}

size_t Queue::memory_bytes() const {
  size_t bytes = sizeof(Queue) + config.memory_bytes() + jobs.memory_bytes() + job_bytes_ +
                 lanes.memory_bytes() + events.memory_bytes() + stats.memory_bytes() +
                 workers.memory_bytes() + awaiting_bytes_ + releases.memory_bytes();
  if (adopted != nullptr) bytes += adopted->memory_bytes();
  if (forecast_ != nullptr) bytes += forecast_->memory_bytes();
  if (progress_pace != nullptr) bytes += progress_pace->memory_bytes();
  for (const auto* index : {&delays, &ttls, &leases, &runs, &tied, &ended[0], &ended[1]}) {
    bytes += index->memory_bytes();
  }
  return bytes;
}

// --- Checks ---

void Queue::check() {
  lanes.run_rates(queue_ms);
  lanes.check(queue_ms);
  std::array<uint64_t, kJobStates> counted{};
  uint64_t slots = 0;
  uint64_t held = 0;
  uint64_t ties = 0;
  size_t job_bytes = 0;
  std::array<uint64_t, 2> retained{};
  std::map<const Group*, uint64_t> group_slots;
  std::map<const Key*, uint64_t> key_slots;
  jobs.for_each([&](const Job* job) {
    ++counted[static_cast<size_t>(job->state)];
    job_bytes += job->memory_bytes();
    CHECK(job->lane != nullptr && job->lane->band == job->band);
    CHECK((job->run() != nullptr) == (job->state == JobState::kActive));
    CHECK((job->end() != nullptr) == is_terminal(job->state));
    if (job->extras_if() != nullptr && job->extras_if()->successor != nullptr) {
      CHECK(job->state == JobState::kActive);
      ++held;
    }
    if (is_terminal(job->state)) retained[ended_kind(job->state)] += job->retained_bytes();
    if (job->state != JobState::kActive) return;
    slots += job->cost();
    if (job->run()->tied_client_id != 0) ++ties;
    group_slots[job->lane->group] += job->cost();
    for (const Key* limit : job->lane->keys->keys) key_slots[limit] += job->cost();
  });
  CHECK(counted == counts_ && job_bytes == job_bytes_);
  CHECK(slots == limiter.used && held == successors);
  lanes.groups().for_each(
      [&](const Group* group) { CHECK(group->limiter.used == group_slots[group]); });
  lanes.keys().for_each([&](const Key* limit) { CHECK(limit->limiter.used == key_slots[limit]); });
  uint64_t pending = 0;
  for (const uint8_t number : lanes.used_bands()) pending += lanes.band(number)->pending.size();
  CHECK(pending == count(JobState::kPending));
  CHECK(delays.size() == count(JobState::kDelayed));
  CHECK(leases.size() == count(JobState::kActive) && runs.size() == leases.size());
  CHECK(tied.size() == ties);
  CHECK(ended[0].size() == count(JobState::kCompleted) + count(JobState::kCancelled));
  CHECK(ended[1].size() == count(JobState::kFailed) + count(JobState::kExpired));
  CHECK(retained == ended_bytes);
  check_gauges();
  check_dependents();
}

// The counters of groups, bands and tags equal a recount.
void Queue::check_gauges() {
  using Counts = std::array<uint64_t, kJobStates + 1>;  // the last: successors
  std::map<const Group*, Counts> by_group;
  std::map<const Band*, Counts> by_band;
  std::map<const TagLine*, Counts> by_tag;
  jobs.for_each([&](const Job* job) {
    const auto state = static_cast<size_t>(job->state);
    Counts& group = by_group[job->lane->group];
    Counts& band = by_band[lanes.band(job->band)];
    ++group[state];
    ++band[state];
    const JobExtras* extras = job->extras_if();
    if (extras != nullptr && extras->successor != nullptr) {
      const JobSuccessor& successor = *extras->successor;
      const bool elsewhere = successor.replaces && successor.group != job->lane->group->name;
      ++(elsewhere ? by_group[lanes.find_group(successor.group)] : group)[kJobStates];
      ++band[kJobStates];
    }
    if (job->options() == nullptr) return;
    for (const auto& [name, value] : job->options()->tags) {
      if (const TagLine* line = stats.tag(name, value)) ++by_tag[line][state];
    }
  });
  const auto check_line = [](const auto& line, Counts& counts) {
    const auto count_of = [&](JobState state) { return counts[static_cast<size_t>(state)]; };
    CHECK(line.delayed == count_of(JobState::kDelayed));
    CHECK(line.blocked == count_of(JobState::kBlocked));
    CHECK(line.active == count_of(JobState::kActive));
    CHECK(line.waiting == count_of(JobState::kBlocked) + count_of(JobState::kDelayed) +
                              count_of(JobState::kPending) + counts[kJobStates]);
  };
  lanes.groups().for_each([&](const Group* group) {
    check_line(*group, by_group[group]);
    CHECK(group->pending == by_group[group][static_cast<size_t>(JobState::kPending)]);
  });
  for (const uint8_t number : lanes.used_bands()) {
    check_line(*lanes.band(number), by_band[lanes.band(number)]);
  }
  stats.for_each_tag([&](const TagLine& line) {
    CHECK(line.pending == by_tag[&line][static_cast<size_t>(JobState::kPending)]);
    CHECK(line.active == by_tag[&line][static_cast<size_t>(JobState::kActive)]);
  });
}

}  // namespace sluice
