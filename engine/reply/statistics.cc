#include "engine/reply/statistics.h"

#include <algorithm>

namespace sluice {

// --- Durations ---

void LatencyHistogram::reset() {
  for (std::atomic<uint64_t>& count : counts_) count.store(0, std::memory_order_relaxed);
}

void LatencySum::add(const LatencyHistogram& histogram) {
  for (size_t bucket = 0; bucket < LatencyHistogram::kBuckets; ++bucket) {
    const uint64_t count = histogram.counts_[bucket].load(std::memory_order_relaxed);
    counts_[bucket] += count;
    count_ += count;
  }
}

uint64_t LatencySum::percentile_ns(double percent) const {
  const double part = std::min(percent, 100.0) / 100;
  const auto wanted =
      std::max<uint64_t>(static_cast<uint64_t>(part * static_cast<double>(count_) + 0.5), 1);
  uint64_t seen = 0;
  size_t bucket = 0;
  for (; bucket + 1 < LatencyHistogram::kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= wanted) break;
  }
  return percent == 0 ? LatencyHistogram::lowest_ns(bucket) : LatencyHistogram::highest_ns(bucket);
}

uint64_t LatencySum::count_up_to(uint64_t ns) const {
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket <= LatencyHistogram::bucket_of(ns); ++bucket) {
    seen += counts_[bucket];
  }
  return seen;
}

void CommandStat::reset() {
  calls = 0;
  ticks = 0;
  rejected = 0;
  failed = 0;
  if (LatencyHistogram* histogram = latencies.load(std::memory_order_acquire)) histogram->reset();
}

// --- Errors ---

void ErrorCounts::add(Bytes message) {
  constexpr size_t kLongestCode = 30;
  const size_t space = message.find(' ');
  Bytes kind = space <= kLongestCode ? message.substr(0, space) : Bytes("ERR");
  total_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) {
    ++found->second;
  } else if (kinds_.size() < kMostKinds) {
    kinds_.emplace(kind, 1);
  }
}

void ErrorCounts::add_to(std::map<std::string, uint64_t>& kinds) const {
  MutexLock lock(mutex_);
  for (const auto& [kind, count] : kinds_) kinds[kind] += count;
}

void ErrorCounts::reset() {
  MutexLock lock(mutex_);
  kinds_.clear();
  total_.store(0, std::memory_order_relaxed);
}

void Statistics::reset() {
  commands_processed = 0;
  keyspace_hits = 0;
  keyspace_misses = 0;
  for (CommandStat& counters : commands()) counters.reset();
  errors.reset();
}

}  // namespace sluice
