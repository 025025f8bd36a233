// Forecast: when each pending job of a queue will start, if nothing is added: the ETA where shares
// (`fair on`) or caps of groups and keys decide, so that a position says little.
//
// It takes about a thousand pending tickets, each for all that stand near it, and lets them start
// in the dispatch order as far as slots allow, of the queue, of groups and of keys. Time is counted
// in runs (the mean of the last 100), and slots become free evenly. What it cannot know is in
// QUEUE.md, "The ETA".
//
// Where groups and keys are few each lane has its own tickets, and more of them in front, where a
// wait is short. Where they are many, tickets are taken from the bands. How many of a group are
// before a ticket is counted exactly in either case.
//
// REQUIRES for everything here: the lock of the queue's shard. Lanes, groups and keys that are gone
// may still be named here; they are compared, never looked at.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/queue/lanes.h"

namespace sluice {

class Queue;

// What a queue can start.
struct Capacity {
  uint64_t slots = 0;  // 0: unknown
  uint64_t free = 0;   // of them
  double run_ms = 0;   // the mean of the last 100 runs
};

// Where a job stands, or one that would come.
struct ForecastPlace {
  uint8_t band = 0;
  int64_t rank = 0;
  uint64_t seq = 0;
  const Group* group = nullptr;  // null: it has no job yet
  const Lane* lane = nullptr;    // likewise
  std::span<Key* const> keys;
  double weight = 1;  // of the group
};

// Pending jobs of its group that go before a place, urgent bands first; 0 where neither shares nor
// the group's cap ask for it. Of a group with many lanes only some are looked at.
double before_in_group(const Queue& queue, const Group& group, uint8_t band, int64_t rank,
                       uint64_t seq);

class Forecast {
 public:
  // About so many tickets; as many more for each lane where lanes are few.
  static constexpr size_t kTickets = 1024;
  static constexpr size_t kTicketsOfLane = 4;
  static constexpr size_t kFewLanes = 128;
  // Where jobs are many each ticket of another lane is a dozen misses of the cache, so half of them
  // do: for two milliseconds at a million jobs.
  static constexpr uint64_t kManyJobs = 100'000;

  Forecast(const Queue& queue, const Capacity& capacity, int64_t now_ms);

  // It is young enough, and the queue has not grown much since.
  bool holds(const Queue& queue, int64_t now_ms) const;
  // In so many milliseconds a job at this place would start.
  double wait_ms(const Queue& queue, const ForecastPlace& place, int64_t now_ms) const;

  size_t memory_bytes() const;

 private:
  // The dispatch order among jobs that have room.
  struct Order {
    uint32_t band = 0;  // twice the band; one less for its front
    double tag_ms = 0;  // where `fair on`: the share of its group when it is its turn
    int64_t rank = 0;
    uint64_t seq = 0;
    auto operator<=>(const Order&) const = default;
  };
  struct Ticket {
    Order order;
    float reached = 0;  // when dispatch comes to this place
    float starts = 0;
  };
  // A ticket of a lane, group or key.
  struct Owned {
    const void* owner = nullptr;
    uint32_t at = 0;
    auto operator<=>(const Owned&) const = default;
  };
  class Run;  // lets them start
  // Of the tickets of one owner: the last one before a place, and the next one.
  struct Neighbours {
    const Ticket* before = nullptr;
    const Ticket* behind = nullptr;
  };

  static Order order_of(const Queue& queue, const ForecastPlace& place, double before);
  // How far x is on the way from a to b, 0..1.
  static double share_of_way(const Order& a, const Order& b, const Order& x);
  Neighbours neighbours(const std::vector<Owned>& tickets, const void* owner, size_t at) const;

  // All of these in runs since it was made. `before`: of its group; `at`: how many tickets go
  // before the place; `passed`: the present.
  double reached(const Order& order, size_t at) const;
  double limited(const Queue& queue, const ForecastPlace& place, double before, const Order& order,
                 size_t at, double passed) const;
  double limited_by_group(const Queue& queue, const Group& group, double before, size_t at,
                          double passed) const;
  double limited_by_key(const Queue& queue, const Key& key, const Order& order, size_t at,
                        double passed) const;

  // As they were when it was made.
  int64_t made_ms_ = 0;
  uint64_t pending_ = 0;
  uint64_t next_seq_ = 0;
  Capacity capacity_;

  double reached_end_ = 0;       // when dispatch comes to the end of all
  std::vector<Ticket> tickets_;  // in dispatch order
  std::vector<Owned> by_lane_;   // of those with a cap
  std::vector<Owned> by_group_;  // likewise
  std::vector<Owned> by_key_;    // of keys with a cap
};

}  // namespace sluice
