#include "engine/queue/dispatch_order.h"

#include <algorithm>
#include <tuple>

#include "engine/base/check.h"

namespace sluice {

namespace {

// The run time that fairness charges while the run times of the queue are unknown.
constexpr double kUnknownRunMs = 1000;

}  // namespace

bool lacks_reserved_slots(const Queue& queue, uint8_t band, uint32_t cost) {
  const Reserve& reserve = queue.config.values().reserve;
  if (reserve.band < 0 || band <= reserve.band || queue.max_active() == 0) return false;
  return queue.limiter.used + cost + reserve.slots > queue.max_active();
}

bool has_queue_slots(const Queue& queue, const Job& job) {
  return queue.limiter.has_slots(job.cost()) && !lacks_reserved_slots(queue, job.band, job.cost());
}

int effective_band(const Queue& queue, const Job& ticket, int64_t now_ms) {
  const int64_t aging_ms = queue.config.values().aging_ms;
  if (aging_ms == 0) return ticket.band;
  const int64_t waited_ms = std::max<int64_t>(0, now_ms - ticket.release_ms());
  const int64_t bands = std::min<int64_t>(waited_ms / aging_ms, kBands);
  return std::max<int>(0, static_cast<int>(ticket.band - bands));
}

double expected_run_ms(const Queue& queue) {
  const RecentMean& runs = queue.stats.all.recent_run_ms;
  return runs.count() == 0 ? kUnknownRunMs : std::max(1.0, runs.mean());
}

DispatchChoice first_in_order(const Queue& queue, std::span<const std::string> match,
                              int64_t now_ms, bool keep_reserve) {
  DispatchChoice best;
  DispatchChoice urgent;  // among the bands for which slots are reserved
  for (const uint8_t number : queue.lanes.used_bands()) {
    const Lane* lane = queue.lanes.next(number, match);
    if (lane == nullptr) continue;
    if (keep_reserve && lacks_reserved_slots(queue, number, 1)) continue;
    // The ticket decides the age: in a LIFO lane the job takes the earliest ticket.
    const int band = effective_band(queue, *lane->first_ticket(), now_ms);
    const ReadyKey place = queue.lanes.place(lane);
    if (best.job == nullptr || std::tie(band, place) < std::tie(best.band, best.place)) {
      best = {lane->first(), band, place};
      if (number <= queue.config.values().reserve.band) urgent = best;
    }
    if (queue.config.values().aging_ms == 0) break;
  }
  const bool lacks = keep_reserve && best.job != nullptr &&
                     lacks_reserved_slots(queue, best.job->band, best.job->cost());
  return lacks && urgent.job != nullptr ? urgent : best;
}

// --- Looking ahead ---

namespace {

// Takes jobs out of a queue's lanes as pops would. The destructor puts them back.
class Trial {
 public:
  explicit Trial(Queue& queue) : queue_(queue), own_(queue.limiter) {}
  ~Trial() {
    while (!taken_.empty()) {
      queue_.lanes.put_back(taken_.back(), queue_.queue_ms);
      taken_.pop_back();
    }
    queue_.limiter = own_;
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void take(const Job* job) {
    const double charged_ms =
        queue_.config.values().fair ? expected_run_ms(queue_) * job->cost() : 0;
    taken_.push_back(queue_.lanes.take_first(job->lane, charged_ms, queue_.queue_ms));
    queue_.limiter.used += job->cost();
    queue_.limiter.take_token(queue_.queue_ms);
  }

 private:
  Queue& queue_;
  const Limiter own_;
  std::vector<Lanes::Taken> taken_;
};

}  // namespace

std::vector<Job*> next_in_order(Queue& queue, size_t count, int64_t now_ms) {
  std::vector<Job*> jobs;
  queue.run_rates_early(queue.now(now_ms));
  Trial trial(queue);
  bool has_room = true;  // whether the queue itself has room for the next one
  while (jobs.size() < count) {
    const Limiter& own = queue.limiter;
    has_room = has_room && !own.paused && own.rate_ready_ms(queue.queue_ms) == 0;
    const DispatchChoice next = first_in_order(queue, {}, queue.queue_ms, has_room);
    const bool fits = next.job != nullptr && has_queue_slots(queue, *next.job);
    if (has_room && !fits) {
      has_room = false;
      continue;
    }
    if (next.job == nullptr) break;
    jobs.push_back(next.job);
    trial.take(next.job);
  }
  return jobs;
}

// --- Looking ahead in lanes ---

Lanes::Taken Lanes::take_first(Lane* lane, double charged_ms, int64_t now_ms) {
  Group* group = lane->group;
  Taken taken;
  taken.lane = lane;
  taken.job = lane->first();
  taken.ticket = lane->first_ticket();
  taken.virtual_ms = group->virtual_ms;
  taken.limiters.push_back(group->limiter);
  for (const Key* key : lane->keys->keys) taken.limiters.push_back(key->limiter);
  const Job* ticket = taken.ticket;
  // In a LIFO lane the job leaves with another ticket than its own. The names at the remaining
  // tickets do not affect their order.
  bool found = erase(lane->tickets, rank_key(ticket->rank), ticket->seq, taken.ticket);
  found =
      found && bands_[lane->band]->pending.erase(rank_key(ticket->rank), ticket->seq, taken.ticket);
  if (lane->lifo) found = found && erase(lane->stack, taken.job->arrival(), 0, taken.job);
  CHECK(found);
  if (--group->pending == 0) take_from_backlog(group);
  refresh_lane(lane, now_ms);
  if (charged_ms != 0) {
    set_virtual_ms(group, std::max(0.0, group->virtual_ms + charged_ms / group->config.weight),
                   now_ms);
  }
  take_tokens(taken.job, now_ms);
  admit(taken.job, now_ms);
  return taken;
}

void Lanes::put_back(const Taken& taken, int64_t now_ms) {
  Lane* lane = taken.lane;
  Group* group = lane->group;
  restore(group->limiter, taken.limiters[0], {group, nullptr});
  for (size_t i = 0; i < lane->keys->keys.size(); ++i) {
    Key* key = lane->keys->keys[i];
    restore(key->limiter, taken.limiters[i + 1], {nullptr, key});
  }
  if (group->virtual_ms != taken.virtual_ms) set_virtual_ms(group, taken.virtual_ms, now_ms);
  Job* ticket = taken.ticket;
  if (lane->lifo) insert(lane->stack, taken.job->arrival(), 0, taken.job);
  insert(lane->tickets, rank_key(ticket->rank), ticket->seq, ticket);
  bands_[lane->band]->pending.insert(rank_key(ticket->rank), ticket->seq, ticket);
  if (++group->pending == 1) put_in_backlog(group);
  for (Key* key : lane->keys->keys) refresh_key(key, now_ms);
  refresh_lane(lane, now_ms);
  if (group->limiter.max_active != 0 || group->limiter.rate.tokens != 0) {
    refresh_group(group, now_ms);
  }
}

void Lanes::restore(Limiter& limiter, const Limiter& before, const Refill& refill) {
  forget_refill(limiter, refill);
  limiter = before;
  if (limiter.rate_due_ms == 0) return;
  refills_.insert(static_cast<uint64_t>(limiter.rate_due_ms), reinterpret_cast<uintptr_t>(&limiter),
                  refill);
}

}  // namespace sluice
