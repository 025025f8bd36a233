// Kinds of ASCII characters, whatever the locale.
//
// Pure functions.
#pragma once

namespace sluice {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_letter_or_digit(char c) { return is_letter(c) || is_digit(c); }

}  // namespace sluice
