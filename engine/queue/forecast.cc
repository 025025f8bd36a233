#include "engine/queue/forecast.h"

#include <algorithm>
#include <tuple>

#include "engine/queue/dispatch_order.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

constexpr int64_t kMaxAgeMs = 100;
// A queue has grown noticeably if it has this share more pending jobs, and more than all slots, or
// kGrownSlots, take at once.
constexpr uint64_t kGrownShare = 8;
constexpr uint64_t kGrownSlots = 32;
// The number of lanes of one group that are examined; the others are assumed to be like them.
constexpr size_t kLanesOfGroup = 16;

// Negative if a cap was lowered below the slots in use.
double free_slots(const Limiter& limiter) {
  return count_of(limiter.max_active) - count_of(limiter.used);
}

uint64_t before_in_lane(const Lane& lane, int64_t rank, uint64_t seq) {
  if (!lane.has_pending()) return 0;
  // New jobs mostly come last.
  const Job* last = lane.tickets.back().value;
  if (std::tie(last->rank, last->seq) < std::tie(rank, seq)) return lane.tickets.size();
  return lane.tickets.count_below(rank_key(rank), seq);
}

}  // namespace

double before_in_group(const Queue& queue, const Group& group, uint8_t band, int64_t rank,
                       uint64_t seq) {
  if (!queue.config.values().fair && group.limiter.max_active == 0) return 0;
  const size_t count = std::min(group.lanes.size(), kLanesOfGroup);
  uint64_t before = 0;
  uint64_t all = 0;
  for (size_t i = 0; i < count; ++i) {
    const Lane& lane = *group.lanes[i];
    all += lane.tickets.size();
    if (lane.band < band) before += lane.tickets.size();
    if (lane.band == band) before += before_in_lane(lane, rank, seq);
  }
  if (count == group.lanes.size() || all == 0) return count_of(before);
  return count_of(before) * count_of(group.pending) / count_of(all);
}

bool Forecast::holds(const Queue& queue, int64_t now_ms) const {
  const uint64_t slots = std::min(capacity_.slots, kGrownSlots);
  const uint64_t grown = std::max(slots, pending_ / kGrownShare);
  return now_ms - made_ms_ < kMaxAgeMs && queue.count(JobState::kPending) <= pending_ + grown;
}

double Forecast::wait_ms(const Queue& queue, const ForecastPlace& place, int64_t now_ms) const {
  const double run_ms = capacity_.run_ms;
  if (run_ms <= 0) return 0;
  const double passed = static_cast<double>(std::max<int64_t>(0, now_ms - made_ms_)) / run_ms;
  const double before = place.group == nullptr ? 0
                                               : before_in_group(queue, *place.group, place.band,
                                                                 place.rank, place.seq);
  const Order order = order_of(queue, place, before);
  const auto found =
      std::lower_bound(tickets_.begin(), tickets_.end(), order,
                       [](const Ticket& ticket, const Order& x) { return ticket.order < x; });
  const auto at = static_cast<size_t>(found - tickets_.begin());
  double runs = reached(order, at);
  if (place.seq > next_seq_) {
    // Jobs that were added since are assumed to be distributed like the others.
    const double share = tickets_.empty() ? 1 : count_of(at) / count_of(tickets_.size());
    const uint64_t added = std::min(place.seq, queue.next_seq) - next_seq_;
    runs += share * count_of(added) / count_of(capacity_.slots);
  }
  runs = std::max(runs, limited(queue, place, before, order, at, passed));
  return std::max(0.0, runs - passed) * run_ms;
}

Forecast::Order Forecast::order_of(const Queue& queue, const ForecastPlace& place, double before) {
  Order order;
  const bool is_front = place.rank < kFrontRanks;
  order.band = 2U * place.band + (is_front ? 0 : 1);
  order.rank = place.rank;
  order.seq = place.seq;
  if (!queue.config.values().fair || is_front) return order;
  const Group* group = place.group;
  const double own_ms = group == nullptr ? 0 : group->virtual_ms;
  const bool asks = group != nullptr && group->pending != 0;
  order.tag_ms = std::max(0.0, asks ? own_ms : std::max(own_ms, queue.lanes.virtual_ms()));
  order.tag_ms += before * expected_run_ms(queue) / place.weight;
  return order;
}

double Forecast::share_of_way(const Order& a, const Order& b, const Order& x) {
  double way = 0;
  double gone = 0;
  if (a.band != b.band) return 0.5;
  if (a.tag_ms != b.tag_ms) {
    way = b.tag_ms - a.tag_ms;
    gone = x.tag_ms - a.tag_ms;
  } else if (a.rank != b.rank) {
    way = static_cast<double>(b.rank - a.rank);
    gone = static_cast<double>(x.rank - a.rank);
  } else {
    way = static_cast<double>(b.seq) - static_cast<double>(a.seq);
    gone = static_cast<double>(x.seq) - static_cast<double>(a.seq);
  }
  return way <= 0 ? 1 : std::clamp(gone / way, 0.0, 1.0);
}

double Forecast::reached(const Order& order, size_t at) const {
  if (at == tickets_.size()) return reached_end_;
  const Ticket& behind = tickets_[at];
  if (behind.order == order) return behind.reached;
  if (at == 0) return behind.reached / 2;
  const Ticket& before = tickets_[at - 1];
  const double share = share_of_way(before.order, behind.order, order);
  return before.reached + share * (behind.reached - before.reached);
}

Forecast::Neighbours Forecast::neighbours(const std::vector<Owned>& tickets, const void* owner,
                                          size_t at) const {
  const auto found =
      std::lower_bound(tickets.begin(), tickets.end(), Owned{owner, static_cast<uint32_t>(at)});
  const auto of = [&](const Owned& owned) {
    return owned.owner == owner ? &tickets_[owned.at] : nullptr;
  };
  return {found == tickets.begin() ? nullptr : of(*(found - 1)),
          found == tickets.end() ? nullptr : of(*found)};
}

double Forecast::limited(const Queue& queue, const ForecastPlace& place, double before,
                         const Order& order, size_t at, double passed) const {
  const bool group_has_cap = place.group != nullptr && place.group->limiter.max_active != 0;
  const auto has_cap = [](const Key* key) { return key->limiter.max_active != 0; };
  if (!group_has_cap && std::none_of(place.keys.begin(), place.keys.end(), has_cap)) return 0;
  // Jobs of one lane have the same limits.
  if (place.lane != nullptr) {
    const Neighbours lane = neighbours(by_lane_, place.lane, at);
    if (lane.behind != nullptr && lane.behind->order == order) return lane.behind->starts;
    if (lane.before != nullptr && lane.behind != nullptr) {
      const double share = share_of_way(lane.before->order, lane.behind->order, order);
      return lane.before->starts + share * (lane.behind->starts - lane.before->starts);
    }
  }
  double runs = group_has_cap ? limited_by_group(queue, *place.group, before, at, passed) : 0;
  for (const Key* key : place.keys) {
    if (has_cap(key)) runs = std::max(runs, limited_by_key(queue, *key, order, at, passed));
  }
  return runs;
}

double Forecast::limited_by_group(const Queue& queue, const Group& group, double before, size_t at,
                                  double passed) const {
  const double cap = count_of(group.limiter.max_active);
  const Ticket* ticket = neighbours(by_group_, &group, at).before;
  if (ticket == nullptr || ticket->starts <= passed) {
    return passed + (before + 0.5 - free_slots(group.limiter)) / cap;
  }
  const Order& other = ticket->order;
  const auto band = static_cast<uint8_t>(other.band / 2);
  const double between = before - before_in_group(queue, group, band, other.rank, other.seq);
  return ticket->starts + std::max(0.0, between) / cap;
}

double Forecast::limited_by_key(const Queue& queue, const Key& key, const Order& order, size_t at,
                                double passed) const {
  const Neighbours of_key = neighbours(by_key_, &key, at);
  const double first = of_key.before == nullptr ? 0 : of_key.before->starts;
  if (of_key.behind == nullptr) {
    // All tickets go before it, including those added since, except for those added after it.
    const double pending = count_of(queue.count(JobState::kPending));
    const double behind =
        order.seq >= queue.next_seq ? 0 : count_of(queue.next_seq - 1 - order.seq);
    const double share = count_of(key.pending) / std::max(1.0, pending);
    // Those before it and a half of itself; a new job is not among them yet.
    const double own = order.seq >= queue.next_seq ? 0.5 : -0.5;
    const double before = count_of(key.pending) - behind * share + own;
    return std::max(first,
                    passed + (before - free_slots(key.limiter)) / count_of(key.limiter.max_active));
  }
  const double last = of_key.behind->starts;
  if (of_key.before == nullptr) return last / 2;
  return first + share_of_way(of_key.before->order, of_key.behind->order, order) * (last - first);
}

size_t Forecast::memory_bytes() const {
  return sizeof(Forecast) + tickets_.capacity() * sizeof(Ticket) +
         (by_lane_.capacity() + by_group_.capacity() + by_key_.capacity()) * sizeof(Owned);
}

}  // namespace sluice
