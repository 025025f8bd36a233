#include "engine/queue/queue_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/check.h"

namespace sluice {

namespace {

// Values below 2^kExactBits have a bucket each; every further power of two has 2^(kExactBits - 1).
constexpr int kExactBits = 7;
constexpr size_t kExactBuckets = size_t{1} << kExactBits;
constexpr size_t kBucketsPerPower = kExactBuckets / 2;
constexpr int64_t kMaxValue = (int64_t{1} << 40) - 1;

constexpr std::array<Bytes, kRejections> kRejectionNames = {
    "queue_full", "group_full", "paused", "duplicate", "too_big", "too_late", "need_failed"};

}  // namespace

Bytes rejection_name(Rejection reason) { return kRejectionNames[static_cast<size_t>(reason)]; }

// --- Histogram ---

size_t Histogram::bucket_of(int64_t value_ms) {
  const auto value = static_cast<uint64_t>(std::clamp<int64_t>(value_ms, 0, kMaxValue));
  if (value < kExactBuckets) return value;
  const int power = static_cast<int>(std::bit_width(value)) - 1;  // kExactBits or more
  const size_t inside = (value >> (power - kExactBits + 1)) & (kBucketsPerPower - 1);
  return kExactBuckets + static_cast<size_t>(power - kExactBits) * kBucketsPerPower + inside;
}

int64_t Histogram::upper_bound(size_t bucket) {
  if (bucket < kExactBuckets) return static_cast<int64_t>(bucket);
  const size_t above = bucket - kExactBuckets;
  const auto shift = static_cast<int>(above / kBucketsPerPower) + 1;
  const auto leading = static_cast<int64_t>(kBucketsPerPower + above % kBucketsPerPower);
  return ((leading + 1) << shift) - 1;
}

void Histogram::add_to(size_t bucket, uint64_t count) {
  const uint64_t sum = buckets_[bucket] + count;
  buckets_[bucket] = static_cast<uint32_t>(sum);
  if (sum >> 32 == 0) return;
  if (bucket >= upper_halves_.size()) upper_halves_.resize(bucket + 1);
  upper_halves_[bucket] += static_cast<uint32_t>(sum >> 32);
}

void Histogram::record(int64_t value_ms) {
  const int64_t value = std::clamp<int64_t>(value_ms, 0, kMaxValue);
  const size_t bucket = bucket_of(value);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  add_to(bucket, 1);
  ++count_;
  sum_ += static_cast<uint64_t>(value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (size_t i = 0; i < other.buckets_.size(); ++i) add_to(i, other.count_in(i));
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

int64_t Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const double exact = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(exact), 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += count_in(i);
    if (seen >= wanted) return std::min(upper_bound(i), max_);
  }
  CHECK(false);
}

std::vector<uint64_t> Histogram::counts_up_to(std::span<const int64_t> bounds_ms) const {
  std::vector<uint64_t> counts;
  uint64_t count = 0;
  size_t next = 0;
  for (const int64_t bound_ms : bounds_ms) {
    const size_t end = std::min(bucket_of(bound_ms) + 1, buckets_.size());
    for (; next < end; ++next) count += count_in(next);
    counts.push_back(count);
  }
  return counts;
}

// --- Recent values ---

void RecentMean::record(int64_t duration_ms) {
  if (count_ == kSize) {
    sum_ -= values_[next_];
  } else {
    ++count_;
  }
  values_[next_] = duration_ms;
  sum_ += duration_ms;
  next_ = (next_ + 1) % kSize;
}

void RecentCount::record(int64_t now_ms, uint64_t n) {
  const int64_t second = now_ms / 1000;
  const auto slot = static_cast<size_t>(second % kSlots);
  if (seconds_[slot] != second) {
    seconds_[slot] = second;
    counts_[slot] = 0;
  }
  counts_[slot] += static_cast<uint32_t>(n);
}

double RecentCount::per_second(int64_t now_ms, int64_t window_ms) const {
  const int64_t window = std::clamp<int64_t>((window_ms + 999) / 1000, 1, kSeconds);
  const int64_t now = now_ms / 1000;
  // The present second is not complete; the rest of the window is the end of its first second.
  const double first_share = 1.0 - static_cast<double>(now_ms % 1000) / 1000.0;
  double sum = 0;
  for (size_t slot = 0; slot < counts_.size(); ++slot) {
    const int64_t age = now - seconds_[slot];
    if (age < 0 || age > window) continue;
    sum += age == window ? first_share * counts_[slot] : counts_[slot];
  }
  return sum / static_cast<double>(window);
}

// --- QueueStats ---

TagLine* QueueStats::tag(Bytes name, Bytes value) {
  auto found = tags_.find(name);
  if (found == tags_.end()) {
    if (tags_.size() == kMaxTagNames) return nullptr;
    found = tags_.emplace(std::string(name), TagValues()).first;
  }
  TagValues& values = found->second;
  const auto line = values.find(value);
  if (line != values.end()) return &line->second;
  // One place is reserved for the rest.
  const Bytes own = values.size() + 1 < kMaxTagValues ? value : kRestName;
  return &values.try_emplace(std::string(own)).first->second;
}

const TagValues* QueueStats::tag_values(Bytes name) const {
  const auto found = tags_.find(name);
  return found == tags_.end() ? nullptr : &found->second;
}

namespace {

size_t line_bytes(const StatsLine& line) {
  return sizeof(line) + line.wait_ms.memory_bytes() + line.run_ms.memory_bytes();
}

}  // namespace

size_t QueueStats::memory_bytes() const {
  // A node of a map has four words besides its value.
  constexpr size_t kNodeBytes = 4 * sizeof(void*);
  size_t bytes = all.wait_ms.memory_bytes() + all.run_ms.memory_bytes();
  for (const auto& [number, line] : bands_) bytes += kNodeBytes + line_bytes(line);
  for (const auto& [name, values] : tags_) {
    bytes += kNodeBytes + sizeof(values) + name.capacity();
    for (const auto& [value, line] : values) {
      bytes += kNodeBytes + sizeof(std::string) + value.capacity() + line_bytes(line);
    }
  }
  return bytes;
}

}  // namespace sluice
