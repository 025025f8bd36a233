#include "net/admin/history_values.h"

#include <algorithm>
#include <cmath>

namespace sluice {

namespace {

constexpr int kStepBits = 4;
constexpr uint32_t kSteps = 1U << kStepBits;
constexpr uint32_t kExact = 2 * kSteps;

}  // namespace

uint32_t WaitCounts::bucket_of(int64_t wait_ms) {
  const auto value = static_cast<uint64_t>(std::clamp<int64_t>(wait_ms, 0, int64_t{1} << 41));
  if (value < kExact) return static_cast<uint32_t>(value);
  const int shift = static_cast<int>(std::bit_width(value)) - kStepBits - 1;
  return static_cast<uint32_t>(shift) * kSteps + static_cast<uint32_t>(value >> shift);
}

int64_t WaitCounts::upper_bound(uint32_t number) {
  if (number < kExact) return number;
  const uint32_t shift = number / kSteps - 1;
  return ((int64_t{number % kSteps + kSteps} + 1) << shift) - 1;
}

WaitCounts::WaitCounts(std::span<const std::pair<int64_t, uint64_t>> waits_ms) {
  for (const auto& [wait_ms, count] : waits_ms) {
    const uint32_t number = bucket_of(wait_ms);
    if (buckets_.empty() || buckets_.back().number != number) buckets_.push_back({number, 0});
    buckets_.back().count += static_cast<uint32_t>(count);
  }
}

WaitCounts WaitCounts::since(const WaitCounts& before) const {
  WaitCounts difference;
  auto old = before.buckets_.begin();
  for (const Bucket& bucket : buckets_) {
    while (old != before.buckets_.end() && old->number < bucket.number) ++old;
    const bool known = old != before.buckets_.end() && old->number == bucket.number;
    const uint32_t count = bucket.count - (known ? old->count : 0);
    if (count != 0) difference.buckets_.push_back({bucket.number, count});
  }
  return difference;
}

void WaitCounts::add(const WaitCounts& other) {
  std::vector<Bucket> sum;
  sum.reserve(buckets_.size() + other.buckets_.size());
  auto mine = buckets_.begin();
  for (const Bucket& bucket : other.buckets_) {
    while (mine != buckets_.end() && mine->number < bucket.number) sum.push_back(*mine++);
    sum.push_back(bucket);
    if (mine != buckets_.end() && mine->number == bucket.number) sum.back().count += mine++->count;
  }
  sum.insert(sum.end(), mine, buckets_.end());
  buckets_ = std::move(sum);
}

uint64_t WaitCounts::total() const {
  uint64_t total = 0;
  for (const Bucket& bucket : buckets_) total += bucket.count;
  return total;
}

HistoryValue WaitCounts::quantile(double share) const {
  const uint64_t count = total();
  if (count == 0) return kNoValue;
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count)));
  uint64_t seen = 0;
  for (const Bucket& bucket : buckets_) {
    seen += bucket.count;
    if (seen >= wanted) return pack_value(static_cast<uint64_t>(upper_bound(bucket.number)));
  }
  return pack_value(static_cast<uint64_t>(upper_bound(buckets_.back().number)));
}

}  // namespace sluice
