// What those need who show all queues (net/admin/), and no command tells: their names, their
// distributions with all buckets, and their few largest groups.
//
// Any thread that holds no shard: each is locked for the copy.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/journal.h"

namespace sluice {

class Engine;
struct Group;

struct QueueName {
  int database = 0;  // as clients number them
  std::string name;
  auto operator<=>(const QueueName&) const = default;
};

// The first `limit` names of a database, as clients number it, behind `after` in the order of their
// bytes; null: from the first. Those of a shard that a busy script holds are left out.
std::vector<std::string> queue_names(Engine& engine, int database, const std::string* after,
                                     size_t limit);

// Tells all queues of the server part by part. What is there all the time is told once; what is
// renamed or comes meanwhile, or lies in a shard that a busy script holds, perhaps not.
class QueueWalk {
 public:
  // About `limit` more, in no certain order; none: that was the end.
  std::vector<QueueName> next(Engine& engine, size_t limit);

 private:
  unsigned shard_ = 0;
  // The last one told of this shard: Queue::database and the name.
  std::optional<std::pair<int, std::string>> last_;
};

// A distribution of milliseconds: how many values are at most each of the bounds asked for.
struct BucketCounts {
  std::vector<uint64_t> up_to;
  uint64_t count = 0;
  double sum_ms = 0;
};
struct BandBuckets {
  std::string band;
  BucketCounts wait_ms;
  BucketCounts run_ms;
};
struct QueueBuckets {
  // Those in which jobs have been started or have ended; the most urgent first.
  std::vector<BandBuckets> bands;
  bool pops_paused = false;  // its configuration says so
  // It tells of nothing later than this.
  Lsn gate = 0;
};
QueueBuckets queue_buckets(Engine& engine, const QueueName& queue,
                           std::span<const int64_t> bounds_ms);

struct GroupCount {
  std::string name;
  uint64_t pending = 0;
  uint64_t active = 0;
  uint64_t delayed = 0;
  uint64_t blocked = 0;
  uint64_t waiting = 0;  // in whatever state
  uint64_t slots = 0;    // in use
  uint64_t max_active = 0;

  uint64_t jobs() const { return waiting + active; }
  // Sums but of the cap.
  void add(const GroupCount& other);
};

// Finds the groups of a queue with the most jobs. It looks at every group, a part of them at a
// time: a million of them would hold up the shard for a tenth of a second.
class LargestGroups {
 public:
  LargestGroups(QueueName queue, size_t limit) : queue_(std::move(queue)), limit_(limit) {}

  // Looks at about a thousand more; false: that was the end.
  bool go_on(Engine& engine);
  // The at most `limit` largest so far, the largest first, each as it was when it was looked at.
  const std::vector<GroupCount>& groups() const { return best_; }
  // The others together. Nothing: there are none.
  const std::optional<GroupCount>& rest() const { return rest_; }
  // They tell of nothing later than this.
  Lsn gate() const { return gate_; }

 private:
  void keep(const Group& group);
  void leave_out(const GroupCount& count);

  const QueueName queue_;
  const size_t limit_;
  uint64_t cursor_ = 0;
  std::vector<GroupCount> best_;
  std::optional<GroupCount> rest_;
  Lsn gate_ = 0;
};

}  // namespace sluice
