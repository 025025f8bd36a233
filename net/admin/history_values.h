// The values of a history in 16 bits, and waits by bucket.
//
// Plain data, used by one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice {

// A number as a 16-bit float without sign: 11 bits of mantissa below 5 of exponent. Exact up to
// 4095; above that within 1/4096 of the value, up to 2^42. The greatest code is no number.
using HistoryValue = uint16_t;
inline constexpr HistoryValue kNoValue = 0xffff;

inline HistoryValue pack_value(uint64_t value) {
  constexpr int kMantissaBits = 11;
  constexpr uint64_t kMost = kNoValue - 1;
  if (value >> (kMantissaBits + 1) == 0) return static_cast<HistoryValue>(value);
  if (value >> 42 != 0) return kMost;
  const int shift = static_cast<int>(std::bit_width(value)) - kMantissaBits - 1;
  // Rounded to the nearest. A mantissa that overflows becomes the next exponent.
  const uint64_t leading = (value + (uint64_t{1} << (shift - 1))) >> shift;
  const uint64_t code = (static_cast<uint64_t>(shift) << kMantissaBits) + leading;
  return static_cast<HistoryValue>(code < kMost ? code : kMost);
}

// REQUIRES: it is not kNoValue.
inline uint64_t unpack_value(HistoryValue code) {
  constexpr int kMantissaBits = 11;
  if (code >> (kMantissaBits + 1) == 0) return code;
  const int shift = (code >> kMantissaBits) - 1;
  const uint64_t leading = (code & 0x7ff) | 0x800;
  return leading << shift;
}

// Counts of waits by bucket, without empty buckets. A bucket is a millisecond up to 31, above that
// a sixteenth of a power of two.
class WaitCounts {
 public:
  WaitCounts() = default;
  // From pairs of a wait and the number of jobs that waited so long, in ascending order.
  explicit WaitCounts(std::span<const std::pair<int64_t, uint64_t>> waits_ms);

  // What has been added since `before`, from which this has grown.
  WaitCounts since(const WaitCounts& before) const;
  void add(const WaitCounts& other);
  uint64_t total() const;
  // The least value that is not exceeded by at least this share of all, to the bucket's precision;
  // no value if it is empty.
  HistoryValue quantile(double share) const;
  size_t memory_bytes() const { return buckets_.capacity() * sizeof(Bucket); }

 private:
  struct Bucket {
    uint32_t number = 0;
    uint32_t count = 0;  // its lower half, which is enough for differences
  };
  static uint32_t bucket_of(int64_t wait_ms);
  static int64_t upper_bound(uint32_t number);

  std::vector<Bucket> buckets_;  // in ascending order
};

}  // namespace sluice
