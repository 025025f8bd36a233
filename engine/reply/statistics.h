// Counters of one Execution for INFO commandstats, errorstats and latencystats and for LATENCY
// HISTOGRAM.
//
// Threads: an Execution's own thread writes, any thread reads, and CONFIG RESETSTAT resets (a
// command that ends at the same moment may write its old number back). Counters of commands are
// plain stores without locked instructions. Errors are rarer and are counted under a mutex.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"

namespace sluice {

inline void add_one(std::atomic<uint64_t>& counter) {
  // There is one writer, so no locked instruction is needed.
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Durations in nanoseconds, by value to two significant digits: 128 buckets for each power of two.
// The bounds of the buckets are those of Redis's histograms, so that derived numbers are equal.
class LatencyHistogram {
 public:
  static constexpr uint64_t kMostNs = 1'000'000'000;

  // Longer durations count as kMostNs.
  void add(uint64_t ns) { add_one(counts_[bucket_of(ns < kMostNs ? ns : kMostNs)]); }
  void reset();

  static constexpr size_t bucket_of(uint64_t ns) {
    const int shift = ns < 256 ? 0 : static_cast<int>(std::bit_width(ns)) - 8;
    return static_cast<size_t>(shift) * 128 + static_cast<size_t>(ns >> shift);
  }
  // The smallest and the greatest duration of a bucket.
  static constexpr uint64_t lowest_ns(size_t bucket) {
    if (bucket < 256) return bucket;
    const uint64_t shift = bucket / 128 - 1;
    return (bucket - shift * 128) << shift;
  }
  static constexpr uint64_t highest_ns(size_t bucket) { return lowest_ns(bucket + 1) - 1; }
  static constexpr size_t kBuckets = 3072;

 private:
  friend class LatencySum;
  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
};
static_assert(LatencyHistogram::bucket_of(LatencyHistogram::kMostNs) < LatencyHistogram::kBuckets);

// The sum of the histograms of several threads. Used by one thread.
class LatencySum {
 public:
  void add(const LatencyHistogram& histogram);
  uint64_t count() const { return count_; }
  // The bound of the bucket below which `percent` percent of the durations lie. REQUIRES: count()
  // != 0.
  uint64_t percentile_ns(double percent) const;
  // The number of durations up to the upper bound of the bucket of `ns`.
  uint64_t count_up_to(uint64_t ns) const;

 private:
  std::array<uint64_t, LatencyHistogram::kBuckets> counts_{};
  uint64_t count_ = 0;
};

// The counters of one command.
struct CommandStat {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> ticks{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> failed{0};
  // Null until the command has run while latency-tracking was on; kept from then on.
  std::atomic<LatencyHistogram*> latencies{nullptr};

  CommandStat() = default;
  ~CommandStat() { delete latencies.load(std::memory_order_relaxed); }
  CommandStat(const CommandStat&) = delete;
  CommandStat& operator=(const CommandStat&) = delete;

  // `scale` is Engine::latency_scale, 0 while durations are not tracked.
  void add_latency(uint64_t ticks_taken, uint64_t scale) {
    if (scale == 0) return;
    LatencyHistogram* histogram = latencies.load(std::memory_order_relaxed);
    if (histogram == nullptr) [[unlikely]] {
      histogram = new LatencyHistogram;
      latencies.store(histogram, std::memory_order_release);
    }
    // Durations of five minutes and more would overflow the multiplication. They count as the
    // longest anyway.
    constexpr uint64_t kMostTicks = uint64_t{1} << 40;
    histogram->add((ticks_taken < kMostTicks ? ticks_taken : kMostTicks) * scale >> kScaleBits);
  }
  static constexpr unsigned kScaleBits = 20;
  void reset();
};

// The number of error replies by their code. Thread-safe.
class ErrorCounts {
 public:
  // Scripts may invent codes. Beyond this number only the total is counted.
  static constexpr size_t kMostKinds = 1024;

  void add(Bytes message);
  // Adds its counts to `kinds`.
  void add_to(std::map<std::string, uint64_t>& kinds) const;
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }
  void reset();

 private:
  mutable Mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> kinds_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> total_{0};
};

// All counters of one Execution.
class Statistics {
 public:
  // `ids`: those of commands are less.
  explicit Statistics(size_t ids) : commands_(std::make_unique<CommandStat[]>(ids)), ids_(ids) {}

  std::atomic<uint64_t> commands_processed{0};
  // Look-ups of commands that only read, for INFO.
  std::atomic<uint64_t> keyspace_hits{0};
  std::atomic<uint64_t> keyspace_misses{0};
  // The errors of replies that the thread writes.
  ErrorCounts errors;

  // By Command::id.
  CommandStat& of(size_t id) { return commands_[id]; }
  std::span<CommandStat> commands() { return {commands_.get(), ids_}; }
  void count_lookup(bool hit) { add_one(hit ? keyspace_hits : keyspace_misses); }
  void reset();

 private:
  std::unique_ptr<CommandStat[]> commands_;
  const size_t ids_;
};

}  // namespace sluice
