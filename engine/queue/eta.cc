// When a job would start: ETA and MAXWAIT.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/limits.h"
#include "engine/queue/dispatch_order.h"
#include "engine/queue/forecast.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

constexpr size_t kMinRunsForEta = 10;

// Exact in JavaScript as well.
constexpr double kMaxEtaMs = 9007199254740991;

int64_t rounded(double ms) {
  return static_cast<int64_t>(std::llround(std::clamp(ms, 0.0, kMaxEtaMs)));
}

// Whether all jobs that are pending under a limit will have started when the running ones have
// ended, the first one at once.
bool is_no_limit(const Limiter& limiter, uint64_t pending) {
  return limiter.has_slots(1) && (limiter.max_active == 0 || pending <= limiter.max_active);
}

bool starts_in_one_run(const ForecastPlace& place) {
  if (place.group != nullptr && !is_no_limit(place.group->limiter, place.group->pending)) {
    return false;
  }
  return std::all_of(place.keys.begin(), place.keys.end(),
                     [](const Key* key) { return is_no_limit(key->limiter, key->pending); });
}

// Whether group and keys have slots for so many jobs.
bool has_room(const ForecastPlace& place, uint64_t jobs) {
  if (place.group != nullptr && !place.group->limiter.has_slots(jobs)) return false;
  return std::all_of(place.keys.begin(), place.keys.end(),
                     [&](const Key* key) { return key->limiter.has_slots(jobs); });
}

// Whether others wait for the rate of its group or of one of its keys. `own`: it is pending itself.
bool queues_for_rate(const ForecastPlace& place, uint64_t own) {
  const auto queues = [&](const auto* scope) {
    return scope->limiter.rate.tokens != 0 && scope->pending > own;
  };
  return (place.group != nullptr && queues(place.group)) ||
         std::any_of(place.keys.begin(), place.keys.end(), queues);
}

}  // namespace

bool Queue::has_eligible() const {
  const auto& bands = lanes.used_bands();
  return std::any_of(bands.begin(), bands.end(),
                     [&](uint8_t number) { return lanes.next(number, {}) != nullptr; });
}

bool Queue::holds_all() const {
  if (limiter.rate_ready_ms(queue_ms) != 0) return true;
  if (lacks_reserved_slots(*this, kBands - 1, 1)) return true;
  const Job* first = first_in_order(*this, {}, queue_ms).job;
  return first != nullptr && !has_queue_slots(*this, *first);
}

void Queue::pops_found_nothing() {
  const bool proves_nothing = count(JobState::kPending) != 0 && holds_all();
  offered_seq_ = proves_nothing ? 0 : next_seq;
}

// A slot that stays free although a job could use it has no worker. Workers are known by their jobs
// or as pops that wait. If none is known, the next one may be between two pops.
Capacity Queue::capacity(size_t pops, bool has_newcomer) const {
  Capacity capacity;
  capacity.run_ms = stats.all.recent_run_ms.mean();
  if (max_active() == 0) {
    capacity.slots = count(JobState::kActive) + pops;
    capacity.free = pops;
  } else {
    capacity.slots = max_active();
    const uint64_t known = limiter.used + pops;
    if (known != 0 && known < max_active() && (has_newcomer || has_eligible())) {
      capacity.slots = known;
    }
    capacity.free = capacity.slots - std::min(capacity.slots, limiter.used);
  }
  capacity.awaited = std::min<uint64_t>(capacity.free, pops);
  return capacity;
}

int64_t Queue::eta_by_position(uint64_t position, const Capacity& capacity, int64_t now_ms) const {
  const double run_ms = capacity.run_ms;
  if (runs.size() + capacity.awaited < capacity.slots) {
    return rounded(static_cast<double>(position + 1) / static_cast<double>(capacity.slots) *
                   run_ms);
  }
  // Slots become free in the order in which their runs started, and then again in turns. The last
  // ones are those that jobs in front of it take at once.
  const uint64_t later = position - std::min(position, capacity.awaited);
  const uint64_t slot = later % capacity.slots;
  const auto turns = static_cast<double>(later / capacity.slots + 1);
  double age_ms = 0;
  if (slot < runs.size()) {
    age_ms = static_cast<double>(now_ms - static_cast<int64_t>(runs.at(slot).major()));
  }
  return rounded(turns * run_ms - std::clamp(age_ms, 0.0, run_ms));
}

int64_t Queue::eta_at(uint64_t position, int64_t now_ms) const {
  if (limiter.paused || stats.all.recent_run_ms.count() < kMinRunsForEta) return -1;
  const Capacity capacity = this->capacity(0, false);
  return capacity.slots == 0 ? -1 : eta_by_position(position, capacity, now_ms);
}

uint64_t Queue::arrived_since(uint64_t arrival) const {
  // Nothing is known of what the pops have passed over, or they have passed it over: it competes
  // with all others.
  return offered_seq_ == 0 || arrival < offered_seq_ ? UINT64_MAX : arrival - offered_seq_;
}

int64_t Queue::eta_ms(const Job* job, uint64_t position, const EtaView& view) const {
  std::array<Bytes, kMaxKeysOfJob> keys;
  size_t n = 0;
  for (const Key* named : job->lane->keys->keys) keys[n++] = named->name;
  const Job* ticket = owned_ticket(job);
  ForecastPlace place;
  place.band = ticket->band;
  place.rank = ticket->rank;
  place.seq = ticket->seq;
  place.lane = job->lane;
  place.group = job->lane->group;
  place.keys = job->lane->keys->keys;
  place.weight = place.group->config.weight;
  EtaNow now = eta_now({keys.data(), n}, view);
  now.arrived = arrived_since(job->arrival());
  return eta_of(place, position, now);
}

int64_t Queue::eta_ms(const ForecastPlace& place, std::span<const Bytes> keys, uint64_t position,
                      const EtaView& view) const {
  EtaNow now = eta_now(keys, view);
  now.arrived = arrived_since(next_seq);
  now.is_new = true;
  return eta_of(place, position, now);
}

Queue::EtaNow Queue::eta_now(std::span<const Bytes> keys, const EtaView& view) const {
  EtaNow now;
  now.now_ms = view.now_ms;
  if (view.pops == nullptr) return now;
  now.pops = view.pops->accepting(keys, limiter.used);
  now.pops_of_all = keys.empty() ? now.pops : view.pops->accepting({}, limiter.used);
  return now;
}

int64_t Queue::eta_of(const ForecastPlace& place, uint64_t position, const EtaNow& now) const {
  const bool by_position = !config.values().fair && !lanes.has_limits();
  if (limiter.paused) return -1;
  if (!by_position && place.group != nullptr && place.group->limiter.paused) return -1;
  if (stats.all.recent_run_ms.count() < kMinRunsForEta) return -1;
  const bool has_newcomer = now.is_new && has_room(place, 1);
  const Capacity capacity = this->capacity(now.pops, has_newcomer);
  if (capacity.slots == 0) return -1;
  // What a refilled rate allows has been offered to no pop before the timers have run.
  const bool refilled = refilled_early_ || lanes.next_rate_ms() <= now.now_ms;
  const bool passes =
      now.arrived < position && !refilled && !queues_for_rate(place, now.is_new ? 0 : 1);
  const uint64_t before = passes ? now.arrived : position;
  if (before < capacity.awaited && has_room(place, before + 1)) return 0;
  if (by_position || (count(JobState::kPending) <= capacity.slots && starts_in_one_run(place))) {
    return eta_by_position(position, capacity, now.now_ms);
  }
  // A forecast is of all jobs, so it knows only the pops that accept them all.
  const Capacity common = this->capacity(now.pops_of_all, has_newcomer);
  if (common.slots == 0) return eta_by_position(position, capacity, now.now_ms);
  if (forecast_ == nullptr || !forecast_->holds(*this, now.now_ms)) {
    forecast_ = std::make_unique<Forecast>(*this, common, now.now_ms);
  }
  return rounded(forecast_->wait_ms(*this, place, now.now_ms));
}

}  // namespace sluice
