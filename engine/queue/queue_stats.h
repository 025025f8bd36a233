// Statistics of a queue: totals that are journaled, and distributions since the process began.
//
// Gauges (pending, active, ...) are not here: they are sizes of the queue's own indexes, so they
// cannot drift. Totals are absolute numbers in the queue's head record. Plain data of one queue.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

enum class Rejection : uint8_t {
  kQueueFull,
  kGroupFull,
  kPaused,
  kDuplicate,
  kTooBig,
  kTooLate,
  kNeedFailed
};
inline constexpr size_t kRejections = 7;
Bytes rejection_name(Rejection reason);

// What happened since the queue began; never goes down. Journaled in the head record in this order.
struct Totals {
  uint64_t added = 0;
  uint64_t started = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t expired = 0;
  uint64_t cancelled = 0;
  uint64_t reclaimed = 0;
  std::array<uint64_t, kRejections> rejected{};  // not journaled: a refusal changes nothing
};

// Log-linear histogram of milliseconds: values below 128 exactly, above with two significant
// digits (1/64 of the value at most), up to 2^40. Grows with the greatest value it has seen: 2 KB
// for ten seconds, 6 KB for a day, 9 KB at most. Mergeable. Counts and the sum are exact however
// many values there are: a bucket has 64 bits, whose upper half takes memory once one needs it.
class Histogram {
 public:
  void record(int64_t value_ms);
  void merge(const Histogram& other);
  uint64_t count() const { return count_; }
  int64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  // The least value that at least this share (0..1) of all values do not exceed, to the bucket's
  // precision; 0 when empty.
  int64_t quantile(double share) const;
  // How many values are at most each of these, to the bucket's precision: 1/64 more may be counted
  // in. REQUIRES: the bounds ascend, and none is negative.
  std::vector<uint64_t> counts_up_to(std::span<const int64_t> bounds_ms) const;
  size_t memory_bytes() const {
    return (buckets_.capacity() + upper_halves_.capacity()) * sizeof(uint32_t);
  }

 private:
  // 2^63 milliseconds are not enough: a million waiting jobs are 2^30 of them a second.
  using Sum = unsigned __int128;

  static size_t bucket_of(int64_t value_ms);
  static int64_t upper_bound(size_t bucket);
  uint64_t count_in(size_t bucket) const {
    const uint64_t upper = bucket < upper_halves_.size() ? upper_halves_[bucket] : 0;
    return upper << 32 | buckets_[bucket];
  }
  void add_to(size_t bucket, uint64_t count);

  std::vector<uint32_t> buckets_;       // the lower halves
  std::vector<uint32_t> upper_halves_;  // as far as one is not zero
  uint64_t count_ = 0;
  Sum sum_ = 0;
  int64_t max_ = 0;
};

// The last 100 durations, for the mean that the ETA and `adaptive` go by.
class RecentMean {
 public:
  static constexpr size_t kSize = 100;
  void record(int64_t duration_ms);
  size_t count() const { return count_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }

 private:
  std::array<int64_t, kSize> values_{};
  size_t next_ = 0;
  size_t count_ = 0;
  int64_t sum_ = 0;
};

// The events of the last minute by second, for rates. A window that begins within a second counts
// that second's share of it.
class RecentCount {
 public:
  static constexpr int64_t kSeconds = 60;
  void record(int64_t now_ms, uint64_t n = 1);
  // In the last `window_ms` (whole seconds, at most a minute), a second.
  double per_second(int64_t now_ms, int64_t window_ms) const;

 private:
  static constexpr int64_t kSlots = kSeconds + 1;
  std::array<uint32_t, kSlots> counts_{};
  std::array<int64_t, kSlots> seconds_{};
};

// One line of Q.STATS: the whole queue, a band, a tag's value.
struct StatsLine {
  Totals totals;
  Histogram wait_ms;  // from release to start
  Histogram run_ms;   // from start to the end of the run
  RecentMean recent_wait_ms;
  RecentMean recent_run_ms;
};

// The line of a tag's value. Jobs are not indexed by tags, so it counts them itself.
struct TagLine : StatsLine {
  uint64_t pending = 0;
  uint64_t active = 0;
};
using TagValues = std::map<std::string, TagLine, std::less<>>;

// All of them. What BY GROUP and BY WORKER show is counted from the groups and workers themselves.
class QueueStats {
 public:
  // At most this many values of at most this many tag names have lines; the last one of each name
  // is `*`, for all values that came when there was no more room.
  static constexpr size_t kMaxTagNames = 4;
  static constexpr size_t kMaxTagValues = 64;
  static constexpr Bytes kRestName = "*";

  StatsLine all;
  RecentCount added;
  RecentCount completed;
  int64_t since_ms = 0;  // of the distributions: when this process first saw the queue

  StatsLine& band(uint8_t number) { return bands_[number]; }
  const std::map<uint8_t, StatsLine>& bands() const { return bands_; }
  // Made where there is none. Null where there is no room for another name.
  TagLine* tag(Bytes name, Bytes value);
  // Null: no job has had this tag.
  const TagValues* tag_values(Bytes name) const;
  template <class Visit>
  void for_each_tag(Visit visit) const {
    for (const auto& [name, values] : tags_) {
      for (const auto& [value, line] : values) visit(line);
    }
  }
  size_t memory_bytes() const;

 private:
  std::map<uint8_t, StatsLine> bands_;
  std::map<std::string, TagValues, std::less<>> tags_;
};

}  // namespace sluice
