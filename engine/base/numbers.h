// Numbers to text and back, exactly as Redis 7.0 does it.
//
// Replies are compared byte for byte with redis-server, and a score's text must round-trip, so
// these rules live in one place. All functions are pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

inline constexpr size_t kMaxIntegerText = 21;

// Strict: the whole text, without spaces, plus sign or leading zeros.
std::optional<int64_t> parse_i64(Bytes text);
std::optional<uint64_t> parse_u64(Bytes text);

// Like strtod in Redis: the whole text, no leading space, "inf" and "-inf" allowed, NaN refused.
std::optional<double> parse_double(Bytes text);
std::optional<long double> parse_long_double(Bytes text);

// Writes the decimal digits of `value` and returns their number. `to` has room for kMaxIntegerText
// bytes.
inline size_t format_i64(char* to, int64_t value) {
  // Lengths and counts mostly have one or two digits.
  if (value >= 0 && value < 100) {
    const auto small = static_cast<unsigned>(value);
    if (small < 10) {
      to[0] = static_cast<char>('0' + small);
      return 1;
    }
    to[0] = static_cast<char>('0' + small / 10);
    to[1] = static_cast<char>('0' + small % 10);
    return 2;
  }
  return static_cast<size_t>(std::to_chars(to, to + kMaxIntegerText, value).ptr - to);
}

// A double as Redis replies it: an exact integer without a point, else %.17g, "inf", "-inf", "nan".
std::string format_double(double value);

// The text of INCRBYFLOAT and HINCRBYFLOAT: %.17Lf without trailing zeros.
std::string format_long_double(long double value);

}  // namespace sluice
