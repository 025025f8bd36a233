// Forecast: when each pending job of a queue will start if no job is added. It gives the ETA where
// shares (`fair on`) or caps of groups and keys decide, so that a position alone says little.
//
// It takes a sample of about a thousand pending tickets, each of which stands for the jobs near it,
// and simulates their starts in dispatch order, as far as slots of the queue, of groups and of keys
// allow. Time is measured in runs (the mean of the last 100), and slots become free evenly.
// QUEUE.md, "The ETA", says what it cannot know.
//
// With few lanes each lane has its own tickets, and more of them in front, where waits are short.
// With many lanes, tickets are taken from the bands. The number of jobs of the group before a
// ticket is counted exactly in either case.
//
// REQUIRES for all functions: the lock of the queue's shard. Pointers to lanes, groups and keys may
// dangle here; they are compared, never dereferenced.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/queue/lanes.h"

namespace sluice {

class Queue;

// A number of jobs or slots in the arithmetic of forecasts.
inline double count_of(uint64_t count) { return static_cast<double>(count); }

// What a queue can start.
struct Capacity {
  uint64_t slots = 0;    // 0: unknown
  uint64_t free = 0;     // of them
  uint64_t awaited = 0;  // of these, those for which a pop waits that accepts the job
  double run_ms = 0;     // the mean of the last 100 runs
};

// The place of a job, or of one that might be added.
struct ForecastPlace {
  uint8_t band = 0;
  int64_t rank = 0;
  uint64_t seq = 0;
  const Group* group = nullptr;  // null: the group has no job yet
  const Lane* lane = nullptr;    // null: the lane has no job yet
  std::span<Key* const> keys;
  double weight = 1;  // of the group
};

// The number of pending jobs of its group that go before a place, urgent bands first; 0 where
// neither shares nor the group's cap need it. Only some lanes of a group with many lanes are
// examined.
double before_in_group(const Queue& queue, const Group& group, uint8_t band, int64_t rank,
                       uint64_t seq);

class Forecast {
 public:
  // The approximate number of tickets; a few more for each lane if there are few lanes.
  static constexpr size_t kTickets = 1024;
  static constexpr size_t kTicketsOfLane = 4;
  static constexpr size_t kFewLanes = 128;
  // With many jobs each ticket of another lane costs a dozen cache misses, so half as many are
  // taken: that takes two milliseconds at a million jobs.
  static constexpr uint64_t kManyJobs = 100'000;

  Forecast(const Queue& queue, const Capacity& capacity, int64_t now_ms);

  // Whether it is recent enough and the queue has not grown much since.
  bool holds(const Queue& queue, int64_t now_ms) const;
  // The time in milliseconds until a job at this place would start.
  double wait_ms(const Queue& queue, const ForecastPlace& place, int64_t now_ms) const;

  size_t memory_bytes() const;

 private:
  // The dispatch order among jobs that have room.
  struct Order {
    uint32_t band = 0;  // twice the band; one less for its front
    double tag_ms = 0;  // with `fair on`: the share of its group when it will be next
    int64_t rank = 0;
    uint64_t seq = 0;
    auto operator<=>(const Order&) const = default;
  };
  struct Ticket {
    Order order;
    float reached = 0;  // when dispatch reaches this place
    float starts = 0;
  };
  // A ticket of a lane, group or key.
  struct Owned {
    const void* owner = nullptr;
    uint32_t at = 0;
    auto operator<=>(const Owned&) const = default;
  };
  class Run;  // the simulation
  // The tickets of one owner before and after a place.
  struct Neighbours {
    const Ticket* before = nullptr;
    const Ticket* behind = nullptr;
  };

  static Order order_of(const Queue& queue, const ForecastPlace& place, double before);
  // How far x is between a and b, 0..1.
  static double share_of_way(const Order& a, const Order& b, const Order& x);
  Neighbours neighbours(const std::vector<Owned>& tickets, const void* owner, size_t at) const;

  // All times are in runs since the forecast was made. `before`: jobs of its group; `at`: the
  // number of tickets before the place; `passed`: the present.
  double reached(const Order& order, size_t at) const;
  double limited(const Queue& queue, const ForecastPlace& place, double before, const Order& order,
                 size_t at, double passed) const;
  double limited_by_group(const Queue& queue, const Group& group, double before, size_t at,
                          double passed) const;
  double limited_by_key(const Queue& queue, const Key& key, const Order& order, size_t at,
                        double passed) const;

  // The state of the queue when the forecast was made.
  int64_t made_ms_ = 0;
  uint64_t pending_ = 0;
  uint64_t next_seq_ = 0;
  Capacity capacity_;

  double reached_end_ = 0;       // when dispatch reaches the end of all tickets
  std::vector<Ticket> tickets_;  // in dispatch order
  std::vector<Owned> by_lane_;   // of lanes with a cap
  std::vector<Owned> by_group_;  // of groups with a cap
  std::vector<Owned> by_key_;    // of keys with a cap
};

}  // namespace sluice
