// Why a job is not running: what Q.GET and Q.LIST tell people.
#include "engine/work/why.h"

#include <algorithm>

#include "engine/queue/dispatch_order.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

std::string used_of(Bytes code, const Limiter& limiter) {
  return std::string(code) + ' ' + std::to_string(limiter.used) + '/' +
         std::to_string(limiter.max_active);
}

std::string why_blocked(const Queue& queue, const Job& job) {
  std::string needs;
  for (const std::string& need : job.extras_if()->unmet) {
    const Release* release = queue.releases.find(need, job);
    // With one that failed it ends, whatever else it needs.
    if (release != nullptr && !release->completed) return "releasing";
    if (release == nullptr) needs += ' ' + encoded_hint(need);
  }
  return needs.empty() ? "releasing" : "blocked_by" + needs;
}

bool too_large(const Queue& queue, const Job& job) {
  const auto above = [&](const Limiter& limiter) {
    return limiter.max_active != 0 && job.cost() > limiter.max_active;
  };
  const auto& keys = job.lane->keys->keys;
  return above(queue.limiter) || above(job.lane->group->limiter) ||
         std::any_of(keys.begin(), keys.end(), [&](const Key* key) { return above(key->limiter); });
}

// The time at which every rate of the job has a token; 0: now.
int64_t rate_ready_ms(const Queue& queue, const Job& job, int64_t now_ms) {
  int64_t ready_ms =
      std::max(queue.limiter.rate_ready_ms(now_ms), job.lane->group->limiter.rate_ready_ms(now_ms));
  for (const Key* key : job.lane->keys->keys) {
    ready_ms = std::max(ready_ms, key->limiter.rate_ready_ms(now_ms));
  }
  return ready_ms;
}

std::string why_pending(const Queue& queue, const Job& job, int64_t now_ms, bool has_waiters) {
  const Limiter& group = job.lane->group->limiter;
  if (queue.limiter.paused || group.paused) return "paused";
  if (too_large(queue, job)) return "too_large";
  if (!group.has_slots(job.cost())) return used_of("group_cap", group);
  for (const Key* key : job.lane->keys->keys) {
    if (key->limiter.has_slots(job.cost())) continue;
    return used_of("key_cap " + encoded_hint(key->name), key->limiter);
  }
  if (const int64_t ready_ms = rate_ready_ms(queue, job, now_ms); ready_ms != 0) {
    return "rate " + std::to_string(ready_ms - now_ms);
  }
  // Without a free slot nothing behind it can run either.
  if (!queue.limiter.has_slots(1)) return used_of("queue_cap", queue.limiter);
  if (lacks_reserved_slots(queue, job.band, job.cost())) return "reserved";
  if (first_in_order(queue, {}, now_ms).job == &job) {
    if (!queue.limiter.has_slots(job.cost())) return used_of("queue_cap", queue.limiter);
    return has_waiters ? "next" : "no_worker";
  }
  const Band* band = queue.lanes.band(job.lane->band);
  if (queue.config.values().fair && band->pending.front().value == queue.owned_ticket(&job)) {
    return "fair_share";
  }
  // If no job ranks before it and it still is not first, an aged job is ahead of it.
  return "behind " + std::to_string(std::max<uint64_t>(1, queue.position(&job)));
}

}  // namespace

std::string why_waiting(const Queue& queue, const Job& job, const Times& now, bool has_waiters) {
  switch (queue.shown_state(&job)) {
    case JobState::kBlocked:
      return why_blocked(queue, job);
    case JobState::kDelayed:
      return "not_before " + std::to_string(now.shown_ms(queue.owned_ticket(&job)->gate_ms()));
    case JobState::kPending:
      return why_pending(queue, job, std::max(queue.queue_ms, now.queue_ms), has_waiters);
    default:
      return {};
  }
}

}  // namespace sluice
