// Decimal and hexadecimal digits.
//
// Pure functions.
#pragma once

#include <string>

#include "engine/base/bytes.h"
#include "engine/base/characters.h"

namespace sluice {

inline constexpr char kHexDigits[] = "0123456789abcdef";
// The digits of percent-encoding.
inline constexpr char kUpperHexDigits[] = "0123456789ABCDEF";

// The value of a hexadecimal digit in either case, or -1 if `c` is not a digit.
constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = ascii_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Two digits for each byte.
inline void append_hex(std::string& text, Bytes bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kHexDigits[byte >> 4], kHexDigits[byte & 15]};
  }
}

}  // namespace sluice
