#include "engine/base/numbers.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/base/characters.h"

namespace sluice {

namespace {

template <class Integer>
std::optional<Integer> parse_strict(Bytes text) {
  if (text.empty() || text.size() >= kMaxIntegerText) return std::nullopt;
  const size_t first = text[0] == '-' ? 1 : 0;
  // "0" is the only text that may begin with a zero; Redis never prints "-0".
  if (first < text.size() && text[first] == '0' && text.size() != 1) return std::nullopt;
  Integer value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool begins_like_space(Bytes text) {
  return std::isspace(static_cast<unsigned char>(text[0])) != 0;
}

}  // namespace

std::optional<int64_t> parse_i64(Bytes text) { return parse_strict<int64_t>(text); }
std::optional<uint64_t> parse_u64(Bytes text) { return parse_strict<uint64_t>(text); }

namespace {

// strtod or strtold over the whole text, as Redis reads numbers. Overflow, underflow and NaN are
// errors.
template <class Real, Real (*kConvert)(const char*, char**)>
std::optional<Real> parse_real(Bytes text) {
  constexpr size_t kMaxText = 5 * 1024;  // the longest number that INCRBYFLOAT writes fits
  if (text.empty() || text.size() >= kMaxText || begins_like_space(text)) return std::nullopt;
  char copy[kMaxText];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  char* stop = nullptr;
  errno = 0;
  const Real value = kConvert(copy, &stop);
  if (stop != copy + text.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_double(Bytes text) {
  if (text.empty()) return std::nullopt;
  // Most scores are plain decimals, which from_chars reads several times faster than strtod.
  const char first = text[0] == '-' && text.size() > 1 ? text[1] : text[0];
  if (is_digit(first)) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end) return value;
  }
  return parse_real<double, std::strtod>(text);
}

std::optional<long double> parse_long_double(Bytes text) {
  return parse_real<long double, std::strtold>(text);
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Integers are printed without an exponent only within the range where doubles are exact
  // integers.
  constexpr double kExact = 4503599627370496.0;  // 2^52
  char text[64];
  if (value > -kExact && value < kExact && value == std::trunc(value)) {
    if (value == 0) return std::signbit(value) ? "-0" : "0";
    return {text, format_i64(text, static_cast<int64_t>(value))};
  }
  const int length = std::snprintf(text, sizeof(text), "%.17g", value);
  return {text, static_cast<size_t>(length)};
}

std::string format_long_double(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text(5 * 1024, '\0');  // The largest long double has 4,933 digits before its point.
  const int length = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  CHECK(length > 0 && static_cast<size_t>(length) < text.size());
  text.resize(static_cast<size_t>(length));
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  if (text == "-0") return "0";
  return text;
}

}  // namespace sluice
