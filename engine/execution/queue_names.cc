#include "engine/execution/queue_names.h"

#include <algorithm>

#include "engine/execution/engine.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

using NamesAt = OrderedIndex<Queue*, QueueTimers::ByKey>::Iterator;

// The first queue of a database (Database::index()) after a name; null: the first one of all.
NamesAt behind(const Shard& shard, int index, const std::string* name) NO_THREAD_SAFETY_ANALYSIS {
  const auto& by_name = shard.queue_timers[static_cast<size_t>(index)].by_name;
  if (name == nullptr) return by_name.begin();
  return by_name.lower_bound_by(
      [&](uint64_t, uint64_t, const Queue* queue) { return queue->key <= *name; });
}

}  // namespace

// The analysis cannot follow lock_patiently in a loop.
std::vector<std::string> queue_names(Engine& engine, int database, const std::string* after,
                                     size_t limit) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::string> names;
  for (Shard& shard : engine.shards()) {
    if (!engine.lock_patiently(shard)) continue;
    const int index = shard.places[static_cast<size_t>(database)];
    auto at = behind(shard, index, after);
    for (size_t i = 0; i < limit && at.valid(); ++i, at.next()) {
      names.push_back(at.value()->key);
    }
    shard.mutex.unlock();
  }
  const size_t kept = std::min(limit, names.size());
  std::partial_sort(names.begin(), names.begin() + static_cast<ptrdiff_t>(kept), names.end());
  names.resize(kept);
  return names;
}

template <class Line, class Make>
std::vector<Line> QueueWalk::next_lines(Engine& engine, size_t limit,
                                        Make make) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Line> lines;
  for (; lines.empty() && shard_ < kShards; ++shard_, last_.reset()) {
    Shard& shard = engine.shard(shard_);
    if (!engine.lock_patiently(shard)) {
      skipped_ = true;
      continue;
    }
    for (int index = last_ ? last_->first : 0; index < kDatabases; ++index) {
      const bool goes_on = last_ && last_->first == index;
      const auto place = std::find(shard.places.begin(), shard.places.end(), index);
      auto at = behind(shard, index, goes_on ? &last_->second : nullptr);
      for (; lines.size() < limit && at.valid(); at.next()) {
        const Queue* queue = at.value();
        lines.push_back(
            make(*queue, QueueName{static_cast<int>(place - shard.places.begin()), queue->key}));
        last_ = {index, queue->key};
      }
    }
    shard.mutex.unlock();
    if (!lines.empty()) break;
  }
  return lines;
}

std::vector<QueueName> QueueWalk::next(Engine& engine, size_t limit) {
  return next_lines<QueueName>(engine, limit, [](const Queue&, QueueName name) { return name; });
}

std::vector<QueueSample> QueueWalk::next_samples(Engine& engine, size_t limit) {
  return next_lines<QueueSample>(engine, limit, [](const Queue& queue, QueueName name) {
    const Totals& totals = queue.stats.all.totals;
    return QueueSample{
        {.added = totals.added,
         .started = totals.started,
         .ended = totals.completed + totals.failed + totals.expired + totals.cancelled,
         .failed = totals.failed,
         .waiting = queue.waiting(),
         .active = queue.count(JobState::kActive)},
        std::move(name),
        queue.stats.since_ms,
        queue.adopted != nullptr};
  });
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
  std::vector<BandBuckets> bands;
  for (const auto& [number, line] : queue.stats.bands()) {
    if (line.wait_ms.count() == 0 && line.run_ms.count() == 0) continue;
    bands.push_back({queue.config.band_name(number), buckets_of(line.wait_ms, bounds_ms),
                     buckets_of(line.run_ms, bounds_ms)});
  }
  return bands;
}

// Calls `read` with the queue, if it exists, under its shard's lock. Returns the gate for the
// result.
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

std::vector<BandSample> band_samples(Engine& engine, const QueueName& queue) {
  std::vector<BandSample> samples;
  read_queue(engine, queue, [&](const Queue& found) {
    const auto& lines = found.stats.bands();
    auto line = lines.begin();
    for (unsigned number = 0; number < 256; ++number) {
      while (line != lines.end() && line->first < number) ++line;
      const Band* band = found.lanes.band(static_cast<uint8_t>(number));
      const uint64_t waiting = band == nullptr ? 0 : band->waiting;
      const bool started =
          line != lines.end() && line->first == number && line->second.wait_ms.count() != 0;
      if (waiting == 0 && !started) continue;
      BandSample& sample = samples.emplace_back();
      sample.number = static_cast<uint8_t>(number);
      sample.band = found.config.band_name(sample.number);
      sample.waiting = waiting;
      if (!started) continue;
      line->second.wait_ms.for_each_bucket(
          [&](int64_t upper_ms, uint64_t count) { sample.waits_ms.emplace_back(upper_ms, count); });
    }
  });
  return samples;
}

LastEvent last_event(Engine& engine, const QueueName& queue) {
  LastEvent last;
  last.gate = read_queue(engine, queue, [&](const Queue& found) {
    last.seq = found.events.last_seq();
    last.exists = true;
  });
  return last;
}

FoundInQueue find_in_queue(Engine& engine, const QueueName& queue, const std::string& text) {
  FoundInQueue found;
  found.gate = read_queue(engine, queue, [&](const Queue& in) {
    // Members of adopted keys are in other shards.
    found.has_job = in.adopted != nullptr || in.find(text) != nullptr;
    const Group* group = in.lanes.find_group(text);
    found.has_group = group != nullptr && !group->idle();
    found.has_groups = in.lanes.groups().size() != 0;
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return;
    const TagValues* values = in.stats.tag_values(Bytes(text).substr(0, equals));
    if (values == nullptr) return;
    const auto line = values->find(text.substr(equals + 1));
    if (line == values->end()) return;
    found.tag = {line->second.pending + line->second.active, line->second.totals.added};
  });
  return found;
}

FoundGroups find_groups_of(Engine& engine, const QueueName& queue, const std::string& begin,
                           uint64_t cursor, size_t limit) {
  FoundGroups found;
  found.gate = read_queue(engine, queue, [&](const Queue& in) {
    found.cursor = in.lanes.groups().scan(cursor, limit, [&](const Group* group) {
      ++found.looked_at;
      if (group->name.starts_with(begin) && !group->idle()) found.names.push_back(group->name);
    });
  });
  return found;
}

void ScopeCount::add(const ScopeCount& other) {
  pending += other.pending;
  active += other.active;
  delayed += other.delayed;
  blocked += other.blocked;
  waiting += other.waiting;
  slots += other.slots;
}

void LargestScopes::leave_out(const ScopeCount& count) {
  if (!rest_) rest_.emplace();
  rest_->add(count);
}

namespace {

bool is_larger(const ScopeCount& a, const ScopeCount& b) {
  return a.size != b.size ? a.size > b.size : a.name < b.name;
}

ScopeCount count_of(const Group& group) {
  return {.pending = group.pending,
          .active = group.active,
          .delayed = group.delayed,
          .blocked = group.blocked,
          .waiting = group.waiting,
          .slots = group.limiter.used,
          .max_active = group.limiter.max_active,
          .paused = group.config.limits.paused,
          .size = group.waiting + group.active};
}

ScopeCount count_of(const Key& key) {
  const Limiter& limiter = key.limiter;
  return {.slots = limiter.used, .max_active = limiter.max_active, .size = limiter.used};
}

}  // namespace

void LargestScopes::keep(ScopeCount count, const std::string& name) {
  if (best_.size() == limit_ && count.size < best_.front().size) return leave_out(count);
  count.name = name;
  best_.push_back(std::move(count));
  std::push_heap(best_.begin(), best_.end(), is_larger);
  if (best_.size() <= limit_) return;
  std::pop_heap(best_.begin(), best_.end(), is_larger);
  leave_out(best_.back());
  best_.pop_back();
}

bool LargestScopes::go_on(const Queue& queue) {
  constexpr size_t kStep = 1000;
  const auto scan = [&](const auto& map) {
    return map.scan(cursor_, kStep, [&](const auto* scope) {
      if (!scope->idle()) keep(count_of(*scope), scope->name);
    });
  };
  cursor_ = level_ == ConfigLevel::kGroup ? scan(queue.lanes.groups()) : scan(queue.lanes.keys());
  return cursor_ != 0;
}

bool LargestScopes::go_on(Engine& engine, const QueueName& name) {
  bool more = false;
  const Lsn gate = read_queue(engine, name, [&](const Queue& queue) { more = go_on(queue); });
  gate_ = std::max(gate_, gate);
  return more;
}

const std::vector<ScopeCount>& LargestScopes::in_order() {
  std::sort(best_.begin(), best_.end(), is_larger);
  return best_;
}

}  // namespace sluice
