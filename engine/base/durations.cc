#include "engine/base/durations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/characters.h"
#include "engine/base/limits.h"
#include "engine/base/numbers.h"

namespace sluice {

namespace {

size_t leading(Bytes text, bool digits) {
  size_t size = 0;
  while (size < text.size() && is_digit(text[size]) == digits) ++size;
  return size;
}

int64_t unit_ms(Bytes unit) {
  constexpr std::array<std::pair<Bytes, int64_t>, 5> kUnits = {
      {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
  for (const auto& [name, ms] : kUnits) {
    if (unit == name) return ms;
  }
  return 0;
}

std::optional<int64_t> parse_positive(Bytes text) {
  if (const auto plain = parse_i64(text)) {
    return *plain >= 0 && *plain <= kMaxDurationMs ? plain : std::nullopt;
  }
  if (text.empty()) return std::nullopt;
  int64_t sum_ms = 0;
  while (!text.empty()) {
    const size_t digits = leading(text, true);
    const size_t letters = leading(text.substr(digits), false);
    const auto number = parse_i64(text.substr(0, digits));
    const int64_t ms = unit_ms(text.substr(digits, letters));
    if (!number || ms == 0 || *number > (kMaxDurationMs - sum_ms) / ms) return std::nullopt;
    sum_ms += *number * ms;
    text.remove_prefix(digits + letters);
  }
  return sum_ms;
}

}  // namespace

std::optional<int64_t> parse_duration_ms(Bytes text) {
  if (!text.starts_with('-')) return parse_positive(text);
  const auto ms = parse_positive(text.substr(1));
  return ms ? std::optional(-*ms) : std::nullopt;
}

std::string with_plain_durations(Bytes text, unsigned parts) {
  std::string plain;
  for (;; parts >>= 1U) {
    const size_t end = std::min(text.find_first_of(":/"), text.size());
    const Bytes part = text.substr(0, end);
    const auto ms = (parts & 1U) != 0 ? parse_duration_ms(part) : std::nullopt;
    plain += ms ? std::to_string(*ms) : std::string(part);
    if (end == text.size()) return plain;
    plain += text[end];
    text.remove_prefix(end + 1);
  }
}

}  // namespace sluice
