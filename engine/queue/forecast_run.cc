// How a forecast is made: tickets are sampled and started one after the other.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engine/base/prefetch_line.h"
#include "engine/queue/forecast.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMaxScopes = 5;  // a group and four keys
// The number of active runs from which the progress of all runs is estimated.
constexpr size_t kRunsLookedAt = 64;
// A ticket in front stands for this share of the mean number of jobs.
constexpr double kInFront = 0.3;

uint64_t spread(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

class Forecast::Run {
 public:
  Run(const Queue& queue, const Capacity& capacity, int64_t now_ms);
  void take_tickets();
  void start_all();
  void give(Forecast& forecast) const;

 private:
  // A ticket, and the number of jobs for which it stands.
  struct Picked {
    const Job* ticket = nullptr;
    uint64_t jobs = 0;
  };
  struct Taken {
    Order order;
    const Lane* lane = nullptr;
    double jobs = 0;
    double before = 0;  // in its group
    double reached = 0;
    double starts = kNever;
    std::array<uint32_t, kMaxScopes> scopes{};
    uint32_t scope_count = 0;
    uint32_t next = UINT32_MAX;  // ticket of its lane
  };
  // A group or key with a cap. Times are in runs.
  struct Scope {
    double cap = 0;
    double ready = 0;    // when the next slot became or becomes free
    double last = -0.5;  // the place in the group of the job that took the last slot
    double taken = 0;    // jobs for which tickets stand
    uint64_t pending = 0;
    bool counts_places = false;
  };

  template <class Visit>
  void for_each_stratum(uint64_t count, size_t parts, Visit visit) const;
  void take_of_lanes();
  void take_of_bands();
  void prefetch() const;
  void take(const Picked& picked);
  void add_scopes(Taken& taken);
  void add_scope(Taken& taken, const void* owner, const Limiter& limiter, uint64_t pending);
  double jobs_in(const Taken& taken, const Scope& scope) const;
  double may_start(const Taken& taken) const;
  size_t next_to_start(double now, double& soonest) const;
  void link_lanes();
  void start(size_t at, double when);
  void reach(size_t end, double when);

  const Queue& queue_;
  const Capacity capacity_;
  double phase_ = 0;  // how much later than evenly the slots in use become free
  double ready_ = 0;  // when the next slot of the queue became or becomes free
  std::vector<Picked> picked_;
  std::vector<Taken> taken_;
  std::vector<Scope> scopes_;
  std::unordered_map<const void*, uint32_t> scope_of_;
  bool has_keys_ = false;
  std::vector<uint64_t> heads_;  // a bit for each ticket that is the next one of its lane
  size_t reached_ = 0;           // the number of tickets that dispatch has reached
  double reached_end_ = -1;      // when dispatch reaches their end; -1: not yet
};

Forecast::Run::Run(const Queue& queue, const Capacity& capacity, int64_t now_ms)
    : queue_(queue), capacity_(capacity) {
  const double slots = count_of(capacity.slots);
  const double free = count_of(capacity.free);
  const size_t active = queue.runs.size();
  const size_t looked_at = std::min(active, kRunsLookedAt);
  if (looked_at != 0 && capacity.run_ms > 0) {
    double ages = 0;
    for (size_t i = 0; i < looked_at; ++i) {
      const auto started_ms = static_cast<int64_t>(queue.runs.at(i * active / looked_at).major());
      const double age = static_cast<double>(now_ms - started_ms) / capacity.run_ms;
      ages += std::clamp(age, 0.0, 1.0);
    }
    phase_ = 0.5 - ages / count_of(looked_at);
  }
  ready_ = ((slots - free) * phase_ - free) / slots;
}

// --- The sample ---

// Divides a sequence of jobs into parts that grow from front to back, and visits a random job of
// each.
template <class Visit>
void Forecast::Run::for_each_stratum(uint64_t count, size_t parts, Visit visit) const {
  const uint64_t salt = queue_.next_seq;
  uint64_t begin = 0;
  for (size_t i = 1; i <= parts && begin < count; ++i) {
    const double share = count_of(i) / count_of(parts);
    auto end = static_cast<uint64_t>(count_of(count) * share * (kInFront + (1 - kInFront) * share));
    if (count <= parts) end = i;
    if (i == parts || end > count) end = count;
    if (end <= begin) continue;
    visit(begin + spread(salt + i) % (end - begin), end - begin);
    begin = end;
  }
}

void Forecast::Run::take_tickets() {
  if (queue_.lanes.lane_count() <= kFewLanes) {
    take_of_lanes();
  } else {
    take_of_bands();
  }
  prefetch();
  taken_.reserve(picked_.size());
  for (const Picked& picked : picked_) take(picked);
  std::sort(taken_.begin(), taken_.end(),
            [](const Taken& a, const Taken& b) { return a.order < b.order; });
  if (queue_.lanes.has_limits()) {
    for (Taken& taken : taken_) add_scopes(taken);
  }
  for (const Taken& taken : taken_) {
    for (uint32_t i = 0; i < taken.scope_count; ++i) scopes_[taken.scopes[i]].taken += taken.jobs;
  }
}

void Forecast::Run::take_of_lanes() {
  const double pending = count_of(queue_.count(JobState::kPending));
  queue_.lanes.for_each_lane([&](const Lane* lane) {
    const uint64_t count = lane->tickets.size();
    const double part = count_of(kTickets) * count_of(count) / std::max(1.0, pending);
    for_each_stratum(count, kTicketsOfLane + static_cast<size_t>(part),
                     [&](uint64_t at, uint64_t jobs) {
                       picked_.push_back({lane->tickets.at(at).value(), jobs});
                     });
  });
}

void Forecast::Run::take_of_bands() {
  const std::vector<uint8_t>& bands = queue_.lanes.used_bands();
  size_t band = 0;
  uint64_t before = 0;
  const uint64_t pending = queue_.count(JobState::kPending);
  const size_t parts = pending < kManyJobs ? kTickets : kTickets / 2;
  for_each_stratum(pending, parts, [&](uint64_t at, uint64_t jobs) {
    while (at - before >= queue_.lanes.band(bands[band])->pending.size()) {
      before += queue_.lanes.band(bands[band++])->pending.size();
    }
    picked_.push_back({queue_.lanes.band(bands[band])->pending.at(at - before).value(), jobs});
  });
}

// Jobs lie anywhere in memory, so each step is done for all of them before the next.
void Forecast::Run::prefetch() const {
  for (const Picked& picked : picked_) prefetch_bytes(picked.ticket, sizeof(Job));
  for (const Picked& picked : picked_) prefetch_bytes(picked.ticket->lane, sizeof(Lane));
  for (const Picked& picked : picked_) {
    const Lane* lane = picked.ticket->lane;
    prefetch_bytes(lane->group, sizeof(Group));
    prefetch_bytes(lane->tickets.front().value, sizeof(Job));
    prefetch_bytes(lane->tickets.back().value, sizeof(Job));
  }
  for (const Picked& picked : picked_) prefetch_line(picked.ticket->lane->group->lanes.data());
}

void Forecast::Run::take(const Picked& picked) {
  const Job* ticket = picked.ticket;
  const Lane* lane = ticket->lane;
  const Group* group = lane->group;
  ForecastPlace place;
  place.band = lane->band;
  place.rank = ticket->rank;
  place.seq = ticket->seq;
  place.weight = group->config.weight;
  place.group = group;
  Taken taken;
  taken.lane = lane;
  taken.jobs = count_of(picked.jobs);
  taken.before = before_in_group(queue_, *group, lane->band, ticket->rank, ticket->seq);
  taken.order = order_of(queue_, place, taken.before);
  taken_.push_back(taken);
}

// --- Limits ---

void Forecast::Run::add_scopes(Taken& taken) {
  const Group* group = taken.lane->group;
  if (group->limiter.max_active != 0 || group->limiter.paused) {
    add_scope(taken, group, group->limiter, group->pending);
    scopes_[taken.scopes[0]].counts_places = true;
  }
  for (const Key* key : taken.lane->keys->keys) {
    if (key->limiter.max_active == 0) continue;
    has_keys_ = true;
    add_scope(taken, key, key->limiter, key->pending);
  }
}

void Forecast::Run::add_scope(Taken& taken, const void* owner, const Limiter& limiter,
                              uint64_t pending) {
  const auto [found, is_new] = scope_of_.emplace(owner, static_cast<uint32_t>(scopes_.size()));
  if (is_new) {
    Scope scope;
    scope.cap = std::max(1.0, count_of(limiter.max_active));
    scope.pending = pending;
    const double used = count_of(limiter.used);
    scope.ready = limiter.paused ? kNever : (used * phase_ + used - scope.cap) / scope.cap;
    scopes_.push_back(scope);
  }
  taken.scopes[taken.scope_count++] = found->second;
}

// The tickets under a limit share all jobs that are pending under it.
double Forecast::Run::jobs_in(const Taken& taken, const Scope& scope) const {
  return taken.jobs * count_of(scope.pending) / scope.taken;
}

double Forecast::Run::may_start(const Taken& taken) const {
  double when = 0;
  for (uint32_t i = 0; i < taken.scope_count; ++i) {
    const Scope& scope = scopes_[taken.scopes[i]];
    // Jobs of one group start in order, unless keys hold some of them back.
    const double jobs =
        scope.counts_places && !has_keys_ ? taken.before - scope.last : jobs_in(taken, scope) / 2;
    when = std::max(when, scope.ready + jobs / scope.cap);
  }
  return when;
}

// --- Dispatch ---

void Forecast::Run::link_lanes() {
  heads_.assign(taken_.size() / 64 + 1, 0);
  std::unordered_map<const Lane*, uint32_t> next;
  for (size_t i = taken_.size(); i-- != 0;) {
    const auto [found, is_new] = next.emplace(taken_[i].lane, static_cast<uint32_t>(i));
    if (!is_new) taken_[i].next = std::exchange(found->second, static_cast<uint32_t>(i));
  }
  for (const auto& [lane, at] : next) heads_[at / 64] |= uint64_t{1} << at % 64;
}

// The first ticket in dispatch order that may start now. Otherwise returns the number of
// tickets and sets `soonest` to the time when the first one may start.
size_t Forecast::Run::next_to_start(double now, double& soonest) const {
  for (size_t word = 0; word < heads_.size(); ++word) {
    for (uint64_t bits = heads_[word]; bits != 0; bits &= bits - 1) {
      const size_t at = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      const double when = may_start(taken_[at]);
      if (when <= now) return at;
      soonest = std::min(soonest, when);
    }
  }
  return taken_.size();
}

// Dispatch has passed every ticket before `end` by this time: those that had room have started.
void Forecast::Run::reach(size_t end, double when) {
  for (; reached_ < end; ++reached_) taken_[reached_].reached = when;
}

void Forecast::Run::start(size_t at, double when) {
  Taken& taken = taken_[at];
  taken.starts = when;
  ready_ += taken.jobs / count_of(capacity_.slots);
  for (uint32_t i = 0; i < taken.scope_count; ++i) {
    Scope& scope = scopes_[taken.scopes[i]];
    const bool places = scope.counts_places && !has_keys_;
    const double jobs = places ? taken.before - scope.last : jobs_in(taken, scope);
    // A slot that has been free for longer than a run still counts as one free slot.
    scope.ready = std::max(scope.ready + jobs / scope.cap, when - 1);
    scope.last = taken.before;
  }
  heads_[at / 64] &= ~(uint64_t{1} << at % 64);
  if (taken.next != UINT32_MAX) heads_[taken.next / 64] |= uint64_t{1} << taken.next % 64;
}

void Forecast::Run::start_all() {
  link_lanes();
  const double slots = count_of(capacity_.slots);
  const double mean_jobs =
      count_of(queue_.count(JobState::kPending)) / std::max(1.0, count_of(taken_.size()));
  // Tickets stand for several jobs, so a slot counts as idle only once as many could have started.
  const double idle = (0.5 + 1.5 * std::max(0.0, mean_jobs - 1)) / slots;
  const double kept = std::max(1.0, 2 * mean_jobs / slots);
  reached_end_ = taken_.empty() ? ready_ + 0.5 / slots : -1;
  double now = 0;
  for (size_t started = 0; started < taken_.size();) {
    now = std::max(now, ready_);
    double soonest = kNever;
    const size_t at = next_to_start(now, soonest);
    if (at == taken_.size()) {
      if (soonest - ready_ >= idle && reached_ < at) {
        reached_end_ = std::max(now, ready_ + idle);
        reach(at, reached_end_);
      }
      if (soonest == kNever) return;
      now = soonest;
      ready_ = std::max(ready_, now - kept);
      continue;
    }
    reach(at, std::max(now, ready_ + 0.5 / slots));
    const double when = std::max(now, ready_ + taken_[at].jobs / 2 / slots);
    reach(at + 1, when);
    start(at, when);
    ++started;
    if (reached_ == taken_.size() && reached_end_ < 0) {
      reached_end_ = std::max(now, ready_ + 0.5 / slots);
    }
  }
}

void Forecast::Run::give(Forecast& forecast) const {
  forecast.reached_end_ = std::max(0.0, reached_end_);
  forecast.tickets_.reserve(taken_.size());
  for (const Taken& taken : taken_) {
    Ticket ticket;
    ticket.order = taken.order;
    ticket.reached = static_cast<float>(std::max(0.0, taken.reached));
    ticket.starts = static_cast<float>(std::max(0.0, taken.starts));
    const auto at = static_cast<uint32_t>(forecast.tickets_.size());
    forecast.tickets_.push_back(ticket);
    // A paused ticket never starts and says nothing about others.
    if (taken.scope_count == 0 || taken.starts == kNever) continue;
    forecast.by_lane_.push_back({taken.lane, at});
    forecast.by_group_.push_back({taken.lane->group, at});
    for (const Key* key : taken.lane->keys->keys) {
      if (key->limiter.max_active != 0) forecast.by_key_.push_back({key, at});
    }
  }
  for (auto* owned : {&forecast.by_lane_, &forecast.by_group_, &forecast.by_key_}) {
    std::sort(owned->begin(), owned->end());
  }
}

Forecast::Forecast(const Queue& queue, const Capacity& capacity, int64_t now_ms)
    : made_ms_(now_ms),
      pending_(queue.count(JobState::kPending)),
      next_seq_(queue.next_seq),
      capacity_(capacity) {
  Run run(queue, capacity, now_ms);
  run.take_tickets();
  run.start_all();
  run.give(*this);
}

}  // namespace sluice
