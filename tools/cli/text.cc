#include "tools/cli/text.h"

#include <array>
#include <clocale>
#include <cstdio>
#include <ctime>
#include <cwchar>

#include "engine/base/hex.h"

namespace sluice::cli {

namespace {

constexpr Bytes kCut = "…";

struct Character {
  size_t bytes = 1;
  int columns = -1;  // -1: not printable, or an invalid character
};

Character first_character(Bytes text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {1, first >= 0x20 && first < 0x7f ? 1 : -1};
  wchar_t wide = 0;
  std::mbstate_t state{};
  const size_t count = std::mbrtowc(&wide, text.data(), text.size(), &state);
  if (count == 0 || count > text.size()) return {1, -1};
  return {count, ::wcwidth(wide)};
}

// These change the writing direction of the text, and of the text after it.
bool turns_direction(Bytes character) {
  constexpr std::array<Bytes, 9> kTurns = {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                           "\u2066", "\u2067", "\u2068", "\u2069"};
  for (const Bytes turn : kTurns) {
    if (character == turn) return true;
  }
  return false;
}

void append_escaped(std::string& out, Bytes bytes) {
  for (const char c : bytes) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += "\\x";
      append_hex(out, Bytes(&c, 1));
    }
  }
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), format, values...);
  return std::string(text.data(), static_cast<size_t>(size));
}

std::string two_units(int64_t value, int64_t big, const char* big_name, int64_t small,
                      const char* small_name) {
  const std::string first = std::to_string(value / big) + " " + big_name;
  const int64_t rest = value % big / small;
  return rest == 0 ? first : first + " " + std::to_string(rest) + " " + small_name;
}

}  // namespace

void use_utf8() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

std::string printable(Bytes bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Character next = first_character(bytes);
    const Bytes piece = bytes.substr(0, next.bytes);
    if (next.columns >= 0 && !turns_direction(piece)) {
      out += piece;
    } else {
      append_escaped(out, piece);
    }
    bytes.remove_prefix(next.bytes);
  }
  return out;
}

std::string shown_queue(Bytes name) { return name.empty() ? "(empty name)" : printable(name); }

size_t text_width(Bytes text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.columns > 0) width += static_cast<size_t>(next.columns);
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::string fit_text(Bytes text, size_t width) {
  if (text_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    const auto columns = static_cast<size_t>(next.columns > 0 ? next.columns : 0);
    if (used + columns > width - 1) break;
    out += text.substr(0, next.bytes);
    used += columns;
    text.remove_prefix(next.bytes);
  }
  return out + std::string(kCut);
}

std::string padded(std::string text, size_t width) {
  const size_t used = text_width(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

std::string count_text(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool begins_group = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    if (begins_group) out += ',';
    out += digits[i];
  }
  return out;
}

std::string rate_text(double value) {
  if (value == 0) return "0";
  return value < 10 ? formatted("%.1f", value) : count_text(static_cast<int64_t>(value + 0.5));
}

std::string duration_text(int64_t ms) {
  if (ms < 0) return "–";
  if (ms < 1000) return std::to_string(ms) + " ms";
  const int64_t seconds = ms / 1000;
  if (seconds < 10) return formatted("%.1f s", static_cast<double>(ms) / 1000);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return two_units(seconds, 60, "m", 1, "s");
  if (seconds < 86'400) return two_units(seconds, 3600, "h", 60, "m");
  return two_units(seconds, 86'400, "d", 3600, "h");
}

std::string moment_text(int64_t unix_ms, int64_t now_ms) {
  const auto local = [](int64_t ms) {
    const auto seconds = static_cast<time_t>(ms / 1000);
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return parts;
  };
  const std::tm then = local(unix_ms);
  const std::tm now = local(now_ms);
  std::string text = formatted("%02d:%02d:%02d.%03d", then.tm_hour, then.tm_min, then.tm_sec,
                               static_cast<int>(unix_ms % 1000));
  if (then.tm_year == now.tm_year && then.tm_yday == now.tm_yday) return text;
  return formatted("%04d-%02d-%02d ", then.tm_year + 1900, then.tm_mon + 1, then.tm_mday) + text;
}

}  // namespace sluice::cli
