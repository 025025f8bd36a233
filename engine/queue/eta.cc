// When a job would start: ETA and MAXWAIT.
#include <algorithm>
#include <cmath>

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

// Whether all jobs that are pending under a limit can start at once when the running ones have
// ended.
bool is_no_limit(const Limiter& limiter, uint64_t pending) {
  return limiter.max_active == 0 || pending <= limiter.max_active;
}

bool starts_in_one_run(const ForecastPlace& place) {
  if (place.group != nullptr && !is_no_limit(place.group->limiter, place.group->pending)) {
    return false;
  }
  return std::all_of(place.keys.begin(), place.keys.end(),
                     [](const Key* key) { return is_no_limit(key->limiter, key->pending); });
}

}  // namespace

bool Queue::has_eligible() const {
  const auto& bands = lanes.used_bands();
  return std::any_of(bands.begin(), bands.end(),
                     [&](uint8_t number) { return lanes.next(number, {}) != nullptr; });
}

// A slot that stays free although a job could use it has no worker.
Capacity Queue::capacity(const EtaView& view) const {
  Capacity capacity;
  capacity.run_ms = stats.all.recent_run_ms.mean();
  const uint64_t active = count(JobState::kActive);
  capacity.slots = max_active();
  if (max_active() == 0) {
    capacity.slots = active;
  } else if (active != 0 && limiter.used < max_active() && view.waiting_pops == 0 &&
             has_eligible()) {
    capacity.slots = limiter.used;
  }
  capacity.free = capacity.slots - std::min(capacity.slots, limiter.used);
  return capacity;
}

int64_t Queue::eta_at(uint64_t position, const EtaView& view) const {
  const RecentMean& recent = stats.all.recent_run_ms;
  if (limiter.paused || recent.count() < kMinRunsForEta) return -1;
  const Capacity capacity = this->capacity(view);
  if (capacity.slots == 0) return -1;
  if (view.waiting_pops != 0 && position < capacity.free) return 0;
  const double run_ms = capacity.run_ms;
  if (runs.size() < capacity.slots) {
    return rounded(static_cast<double>(position + 1) / static_cast<double>(capacity.slots) *
                   run_ms);
  }
  // Slots become free in the order in which their runs started, and then again in turns.
  const auto started_ms = static_cast<int64_t>(runs.at(position % capacity.slots).major());
  const auto turns = static_cast<double>(position / capacity.slots + 1);
  const auto age_ms = static_cast<double>(view.now_ms - started_ms);
  return rounded(turns * run_ms - std::clamp(age_ms, 0.0, run_ms));
}

int64_t Queue::eta_ms(const Job* job, uint64_t position, const EtaView& view) const {
  if (!config.values().fair && !lanes.has_limits()) return eta_at(position, view);
  const Job* ticket = owned_ticket(job);
  ForecastPlace place;
  place.band = ticket->band;
  place.rank = ticket->rank;
  place.seq = ticket->seq;
  place.lane = job->lane;
  place.group = job->lane->group;
  place.keys = job->lane->keys->keys;
  place.weight = place.group->config.weight;
  return eta_ms(place, position, view);
}

int64_t Queue::eta_ms(const ForecastPlace& place, uint64_t position, const EtaView& view) const {
  if (!config.values().fair && !lanes.has_limits()) return eta_at(position, view);
  if (limiter.paused || (place.group != nullptr && place.group->limiter.paused)) return -1;
  if (stats.all.recent_run_ms.count() < kMinRunsForEta) return -1;
  const Capacity capacity = this->capacity(view);
  if (capacity.slots == 0) return -1;
  if (count(JobState::kPending) <= capacity.slots && starts_in_one_run(place)) {
    return eta_at(position, view);
  }
  if (forecast_ == nullptr || !forecast_->holds(*this, view.now_ms)) {
    forecast_ = std::make_unique<Forecast>(*this, capacity, view.now_ms);
  }
  return rounded(forecast_->wait_ms(*this, place, view.now_ms));
}

}  // namespace sluice
