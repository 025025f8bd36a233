// Statistics of a queue: totals, which are journaled, and distributions since the process began.
//
// Gauges (pending, active, ...) are not here: they are the sizes of the queue's own indexes, so
// they cannot drift. Totals are absolute numbers in the queue's head record. Plain data of one
// queue.
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

// Counters since the queue was created; they never decrease. Journaled in the head record in this
// order.
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

// Log-linear histogram of milliseconds: values below 128 exactly, above with two significant digits
// (1/64 of the value at most), up to 2^40. Grows with the greatest value: 2 KB for ten seconds, 6
// KB for a day, 9 KB at most. Mergeable. Counts and the sum are exact for any number of values: a
// bucket has 64 bits, whose upper half is allocated on demand.
class Histogram {
 public:
  void record(int64_t value_ms);
  void merge(const Histogram& other);
  uint64_t count() const { return count_; }
  int64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  // The least value that is not exceeded by at least this share (0..1) of all values, to the
  // bucket's precision; 0 when empty.
  int64_t quantile(double share) const;
  // The number of values up to each bound, to the bucket's precision: values up to 1/64 greater may
  // be included. REQUIRES: the bounds ascend, and none is negative.
  std::vector<uint64_t> counts_up_to(std::span<const int64_t> bounds_ms) const;
  // Calls visit(greatest value, count) for the buckets that are not empty, in ascending order.
  template <class Visit>
  void for_each_bucket(Visit visit) const {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (const uint64_t count = count_in(i); count != 0) visit(upper_bound(i), count);
    }
  }
  size_t memory_bytes() const {
    return (buckets_.capacity() + upper_halves_.capacity()) * sizeof(uint32_t);
  }

 private:
  // 2^63 milliseconds are not enough: a million waiting jobs add 2^30 of them a second.
  using Sum = unsigned __int128;

  static size_t bucket_of(int64_t value_ms);
  static int64_t upper_bound(size_t bucket);
  uint64_t count_in(size_t bucket) const {
    const uint64_t upper = bucket < upper_halves_.size() ? upper_halves_[bucket] : 0;
    return upper << 32 | buckets_[bucket];
  }
  void add_to(size_t bucket, uint64_t count);

  std::vector<uint32_t> buckets_;       // the lower halves
  std::vector<uint32_t> upper_halves_;  // up to the last one that is not zero
  uint64_t count_ = 0;
  Sum sum_ = 0;
  int64_t max_ = 0;
};

// The last 100 durations, whose mean the ETA and `adaptive` use.
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

// The events of the last minute by second, for rates. A window that begins within a second includes
// that second's share.
class RecentCount {
 public:
  static constexpr int64_t kSeconds = 60;
  void record(int64_t now_ms, uint64_t n = 1);
  // The rate per second over the last `window_ms` (whole seconds, at most a minute).
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

// The line of a tag's value. Jobs are not indexed by tags, so the line has its own counters.
struct TagLine : StatsLine {
  uint64_t pending = 0;
  uint64_t active = 0;
};
using TagValues = std::map<std::string, TagLine, std::less<>>;

// All statistics of a queue. BY GROUP and BY WORKER are computed from the groups and workers
// themselves.
class QueueStats {
 public:
  // At most kMaxTagNames tag names with kMaxTagValues values each have lines. The last line of each
  // name is `*`, for all values that did not fit.
  static constexpr size_t kMaxTagNames = 4;
  static constexpr size_t kMaxTagValues = 64;
  static constexpr Bytes kRestName = "*";

  StatsLine all;
  RecentCount added;
  RecentCount completed;
  int64_t since_ms = 0;  // start of the distributions: when this process first saw the queue

  StatsLine& band(uint8_t number) { return bands_[number]; }
  const std::map<uint8_t, StatsLine>& bands() const { return bands_; }
  // Makes the line if needed. Returns null if there is no room for another name.
  TagLine* tag(Bytes name, Bytes value);
  // Null if no job has had this tag.
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
