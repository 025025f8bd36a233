// What those need who show all queues (net/admin/), and no command tells: their names, their
// distributions with all buckets, and their few largest groups.
//
// Any thread that holds no shard: each is locked for the copy.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/journal.h"

namespace sluice {

class Engine;

struct QueueName {
  int database = 0;  // as clients number them
  std::string name;
  auto operator<=>(const QueueName&) const = default;
};

// In order. Those of a shard that a busy script holds are left out.
std::vector<QueueName> queue_names(Engine& engine);

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
  // Bands that have a name, or have had jobs; the most urgent first. Empty: there is no such queue.
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
};
struct LargestGroups {
  std::vector<GroupCount> groups;  // the largest first
  Lsn gate = 0;
};
// The at most `limit` groups with the most jobs. Looks at every group of the queue.
LargestGroups largest_groups(Engine& engine, const QueueName& queue, size_t limit);

}  // namespace sluice
