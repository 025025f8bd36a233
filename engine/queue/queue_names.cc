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
  for (const int64_t bound : bounds_ms) counts.up_to.push_back(histogram.count_up_to(bound));
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

}  // namespace

QueueBuckets queue_buckets(Engine& engine, const QueueName& queue,
                           std::span<const int64_t> bounds_ms) NO_THREAD_SAFETY_ANALYSIS {
  QueueBuckets buckets;
  const KeyRef key(queue.name);
  Shard& shard = engine.shard(key.shard);
  if (!engine.lock_patiently(shard)) return buckets;
  const auto place = shard.places[static_cast<size_t>(queue.database)];
  const Entry* entry = shard.databases[place].entries.find(key.key, key.hash);
  if (entry != nullptr && entry->type() == Type::kQueue) {
    buckets.bands = bands_of(entry->object<Queue>(), bounds_ms);
  }
  buckets.gate = shard.last_lsn;
  shard.mutex.unlock();
  return buckets;
}

}  // namespace sluice
