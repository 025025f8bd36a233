// When Q.ADD refuses a job.
#include "engine/work/refusals.h"

#include <algorithm>
#include <set>

#include "engine/keyspace/shard.h"
#include "engine/queue/forecast.h"
#include "engine/work/steer.h"

namespace sluice {

namespace {

// `retry_after_ms` while the duration of runs is unknown.
constexpr int64_t kDefaultRetryAfterMs = 1000;

Status refuse_full(QueueWork& work, uint64_t max) {
  const Queue& queue = work.queue();
  const RecentMean& runs = queue.stats.all.recent_run_ms;
  int64_t retry_ms = kDefaultRetryAfterMs;
  if (runs.count() != 0) {
    const uint64_t slots = std::max<uint64_t>(
        1, queue.max_active() != 0 ? queue.max_active() : queue.count(JobState::kActive));
    retry_ms = std::max<int64_t>(1, static_cast<int64_t>(runs.mean() / static_cast<double>(slots)));
  }
  return refused(work, Rejection::kQueueFull,
                 QueueError("QFULL")
                     .with("pending", queue.waiting())
                     .with("max", max)
                     .with("retry_after_ms", retry_ms));
}

// The last job of the least urgent band below the newcomer's, which makes room for it; null: none.
Job* find_displaced(const Queue& queue, uint8_t band) {
  const std::vector<uint8_t>& bands = queue.lanes.used_bands();
  for (size_t i = bands.size(); i != 0 && bands[i - 1] > band; --i) {
    const auto& pending = queue.lanes.band(bands[i - 1])->pending;
    if (!pending.empty()) return queue.ticket_owner(pending.back().value);
  }
  return nullptr;
}

Status check_group_room(QueueWork& work, const Queue::NamedGroup& group) {
  const Limits& limits = group.config.limits;
  const auto full = [&](Bytes limit, uint64_t value) {
    return refused(work, Rejection::kGroupFull,
                   QueueError("GROUPFULL")
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

// The lane that the job would join; null if it does not exist yet.
const Lane* find_lane(const Queue& queue, const JobSpec& spec, uint8_t band) {
  const Group* group = queue.lanes.find_group(spec.group.value_or(Bytes()));
  if (group == nullptr) return nullptr;
  const bool lifo = group->config.order.is_lifo(band);
  const auto is_it = [&](const Lane* lane) {
    return lane->lifo == lifo && lane->band == band && are_keys(spec.keys, *lane->keys);
  };
  const auto found = std::find_if(group->lanes.begin(), group->lanes.end(), is_it);
  return found == group->lanes.end() ? nullptr : *found;
}

const WaitingPops* waiting_pops(QueueWork& work) NO_THREAD_SAFETY_ANALYSIS {
  return work.database().shard().waiters.counted_pops(work.database().number(), work.key());
}

}  // namespace

bool are_keys(std::span<const Bytes> named, const KeySet& set) {
  if (named.empty() || set.keys.empty()) return named.empty() == set.keys.empty();
  const std::set<Bytes> keys(named.begin(), named.end());
  return std::equal(keys.begin(), keys.end(), set.keys.begin(), set.keys.end(),
                    [](Bytes name, const Key* key) { return name == key->name; });
}

Status refused(QueueWork& work, Rejection reason, const QueueError& error) {
  ++work.queue().stats.all.totals.rejected[static_cast<size_t>(reason)];
  return error.status();
}

Status check_cost(const Queue& queue, const JobSpec& spec) {
  const uint32_t cost = spec.cost.value_or(1);
  if (cost <= 1) return {};
  const QueueValues& values = queue.config.values();
  // What `adaptive` may lower the cap to: above it the job might never run.
  const uint64_t slots = values.adaptive.max != 0 ? values.adaptive.min : queue.max_active();
  const Reserve& reserve = values.reserve;
  const bool leaves_some =
      reserve.band >= 0 && spec.band.value_or(values.default_band) > reserve.band;
  bool fits = slots == 0 || cost + (leaves_some ? reserve.slots : 0) <= slots;
  const GroupConfig group =
      spec.group && !spec.group->empty() ? queue.group_config(*spec.group) : GroupConfig{};
  fits = fits && (group.limits.max_active == 0 || cost <= group.limits.max_active);
  for (const Bytes key : spec.keys) {
    const uint64_t max = queue.config.key(key).max_active;
    fits = fits && (max == 0 || cost <= max);
  }
  return fits ? Status() : bad_field("cost");
}

Result<std::vector<std::string>> check_needs(QueueWork& work, const JobSpec& spec) {
  std::vector<std::string> unmet;
  for (const Bytes need : spec.needs) {
    const Job* job = work.queue().find(need);
    if (job == nullptr) return QueueError("NOJOB").with("id", need).status();
    if (job->state == JobState::kCompleted) continue;
    if (is_terminal(job->state)) {
      return refused(
          work, Rejection::kNeedFailed,
          QueueError("NEEDFAILED").with("id", need).with("state", job_state_name(job->state)));
    }
    if (std::find(unmet.begin(), unmet.end(), need) == unmet.end()) unmet.emplace_back(need);
  }
  for (const Bytes after : spec.afters) {
    const Job* job = work.queue().find(after);
    if (job == nullptr) return QueueError("NOJOB").with("id", after).status();
    if (!is_terminal(job->state)) unmet.emplace_back(after);
  }
  return unmet;
}

Status check_pause(QueueWork& work, Paused paused) {
  if (!pauses_in(paused)) return {};
  return refused(work, Rejection::kPaused, QueueError("PAUSED").with("direction", Bytes("in")));
}

Status check_other_group(QueueWork& work, const Queue::NamedGroup& group, const Job& job) {
  const JobExtras* extras = job.extras_if();
  const JobSuccessor* successor = extras == nullptr ? nullptr : extras->successor.get();
  const bool is_there =
      successor != nullptr && successor->replaces && successor->group == group.name;
  if (group.name.empty() || group.name == job.lane->group->name || is_there) return {};
  Status status = check_pause(work, group.config.limits.paused);
  return status.ok() ? check_group_room(work, group) : status;
}

Status check_room(QueueWork& work, const Queue::NamedGroup& group, uint8_t band,
                  Newcomer newcomer) {
  const Queue& queue = work.queue();
  const Limits& limits = queue.config.values().limits;
  const uint64_t waiting = queue.waiting();
  const bool full = limits.max_waiting != 0 && waiting >= limits.max_waiting;
  const bool total_full =
      limits.max_total != 0 && waiting + queue.count(JobState::kActive) >= limits.max_total;
  const bool any_full = full || total_full;
  const bool displaces =
      any_full && queue.config.values().displace && newcomer != Newcomer::kBlocked;
  Job* displaced = displaces ? find_displaced(queue, band) : nullptr;
  if (any_full && displaced == nullptr) {
    return refuse_full(work, full ? limits.max_waiting : limits.max_total);
  }
  // A group's limit always refuses; no job is displaced for one that is refused.
  if (!group.name.empty()) {
    Status status = check_group_room(work, group);
    if (!status.ok()) return status;
  }
  if (displaced != nullptr && newcomer != Newcomer::kTooLate) {
    cancel_job(work, displaced, "displaced", std::nullopt);
  }
  return {};
}

Status check_wait(QueueWork& work, const JobSpec& spec, uint8_t band,
                  const Queue::NamedGroup& group) {
  if (!spec.max_wait_ms) return {};
  Queue& queue = work.queue();
  ForecastPlace place;
  place.band = band;
  const int64_t release_ms = std::max(queue.queue_ms, work.gate_of(spec.delay_ms, spec.at_ms));
  place.rank = release_ms - spec.boost_ms.value_or(0);
  place.seq = UINT64_MAX;
  place.group = queue.lanes.find_group(group.name);
  place.lane = find_lane(queue, spec, band);
  place.weight = group.config.weight;
  std::vector<Key*> keys;
  for (const Bytes name : spec.keys) {
    if (Key* key = queue.lanes.find_key(name)) keys.push_back(key);
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
  for (const uint8_t number : queue.lanes.used_bands()) {
    if (number > band) break;
    const auto& pending = queue.lanes.band(number)->pending;
    before += number < band ? pending.size() : pending.count_below(rank_key(place.rank), place.seq);
  }
  // The wait begins when the delay is over.
  const int64_t eta_ms =
      queue.eta_ms(place, spec.keys, before, {queue.queue_ms, waiting_pops(work)}) -
      (release_ms - queue.queue_ms);
  if (eta_ms <= *spec.max_wait_ms) return {};
  return refused(
      work, Rejection::kTooLate,
      QueueError("TOOLATE").with("eta_ms", eta_ms).with("maxwait_ms", *spec.max_wait_ms));
}

}  // namespace sluice
