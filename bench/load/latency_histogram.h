// A log-linear histogram of latencies in nanoseconds: 128 linear steps in each power of two, so
// that the error of a quantile is below one per cent. Fixed size, no allocation after construction.
// Used by one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::bench {

class LatencyHistogram {
 public:
  void record(uint64_t latency_ns) {
    ++counts_[bucket_of(latency_ns)];
    ++total_;
    if (latency_ns > max_ns_) max_ns_ = latency_ns;
  }

  void reset() {
    counts_.fill(0);
    total_ = 0;
    max_ns_ = 0;
  }

  uint64_t total() const { return total_; }
  uint64_t max_ns() const { return max_ns_; }

  // The upper edge of the bucket that contains the quantile, so that a figure is never too low.
  uint64_t quantile_ns(double quantile) const {
    if (total_ == 0) return 0;
    const auto wanted = static_cast<uint64_t>(quantile * static_cast<double>(total_ - 1)) + 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) {
        const uint64_t edge = upper_edge(i);
        return edge < max_ns_ ? edge : max_ns_;
      }
    }
    return max_ns_;
  }

 private:
  static constexpr unsigned kStepBits = 7;
  static constexpr uint64_t kSteps = uint64_t{1} << kStepBits;

  static size_t bucket_of(uint64_t value) {
    if (value < kSteps) return static_cast<size_t>(value);
    const auto power = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
    return static_cast<size_t>((uint64_t{power} + 1) * kSteps + ((value >> power) - kSteps));
  }

  static uint64_t upper_edge(size_t bucket) {
    if (bucket < kSteps) return bucket;
    const uint64_t power = bucket / kSteps - 1;
    return ((bucket % kSteps + kSteps + 1) << power) - 1;
  }

  std::array<uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
  uint64_t total_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace sluice::bench
