#include "engine/queue/queue_names.h"

#include <algorithm>
#include <set>

#include "engine/engine.h"
#include "engine/queue/queue.h"

namespace sluice {

// The analysis does not see what lock_patiently takes in a loop.
std::vector<QueueName> queue_names(Engine& engine) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<QueueName> names;
  for (Shard& shard : engine.shards()) {
    if (!engine.lock_patiently(shard)) continue;
    for (auto at = shard.queue_timers.by_time.at(0); at.valid(); at.next()) {
      const Queue* queue = at.value();
      const auto place = std::find(shard.places.begin(), shard.places.end(), queue->database);
      names.push_back({static_cast<int>(place - shard.places.begin()), queue->key});
    }
    shard.mutex.unlock();
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

BucketCounts buckets_of(const Histogram& histogram, std::span<const int64_t> bounds_ms) {
  BucketCounts counts;
  counts.up_to = histogram.counts_up_to(bounds_ms);
  counts.count = histogram.count();
  counts.sum_ms = histogram.mean() * static_cast<double>(histogram.count());
  return counts;
}

std::vector<BandBuckets> bands_of(const Queue& queue, std::span<const int64_t> bounds_ms) {
  std::set<uint8_t> numbers;
  for (const auto& [name, number] : queue.config.values().bands) numbers.insert(number);
  for (const auto& [number, line] : queue.stats.bands()) numbers.insert(number);
  static const StatsLine none;
  std::vector<BandBuckets> bands;
  for (const uint8_t number : numbers) {
    const auto found = queue.stats.bands().find(number);
    const StatsLine& line = found == queue.stats.bands().end() ? none : found->second;
    bands.push_back({queue.config.band_name(number), buckets_of(line.wait_ms, bounds_ms),
                     buckets_of(line.run_ms, bounds_ms)});
  }
  return bands;
}

// Only the few best are kept in order while all pass by: sorting them all would take longer than
// the look.
std::vector<GroupCount> largest_of(const Queue& queue, size_t limit) {
  const auto jobs_of = [](const Group* group) { return group->waiting + group->active; };
  const auto larger = [&](const Group* a, const Group* b) {
    return jobs_of(a) != jobs_of(b) ? jobs_of(a) > jobs_of(b) : a->name < b->name;
  };
  std::vector<const Group*> best;
  queue.lanes.groups().for_each([&](const Group* group) {
    if (group->idle() || (best.size() == limit && !larger(group, best.back()))) return;
    if (best.size() == limit) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), group, larger), group);
  });
  std::vector<GroupCount> counts;
  for (const Group* group : best) counts.push_back({group->name, group->pending, group->active});
  return counts;
}

// Calls `read` with the queue, where there is one, under its shard's lock; what it tells is then
// told by the gate that is returned.
template <class Read>
Lsn read_queue(Engine& engine, const QueueName& queue, Read read) NO_THREAD_SAFETY_ANALYSIS {
  const KeyRef key(queue.name);
  Shard& shard = engine.shard(key.shard);
  if (!engine.lock_patiently(shard)) return 0;
  const auto place = shard.places[static_cast<size_t>(queue.database)];
  const Entry* entry = shard.databases[place].entries.find(key.key, key.hash);
  if (entry != nullptr && entry->type() == Type::kQueue) read(entry->object<Queue>());
  const Lsn gate = shard.last_lsn;
  shard.mutex.unlock();
  return gate;
}

}  // namespace

QueueBuckets queue_buckets(Engine& engine, const QueueName& queue,
                           std::span<const int64_t> bounds_ms) {
  QueueBuckets buckets;
  buckets.gate = read_queue(engine, queue, [&](const Queue& found) {
    buckets.bands = bands_of(found, bounds_ms);
    buckets.pops_paused = pauses_out(found.config.values().limits.paused);
  });
  return buckets;
}

LargestGroups largest_groups(Engine& engine, const QueueName& queue, size_t limit) {
  LargestGroups largest;
  largest.gate = read_queue(engine, queue,
                            [&](const Queue& found) { largest.groups = largest_of(found, limit); });
  return largest;
}

}  // namespace sluice
