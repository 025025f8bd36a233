#include "engine/queue/job_texts.h"

#include <algorithm>

#include "engine/base/characters.h"
#include "engine/base/hex.h"
#include "engine/base/quoting.h"
#include "engine/queue/job.h"

namespace sluice {

namespace {

bool is_hex(char c) { return hex_value(c) >= 0; }

bool has_digit(Bytes word) { return std::any_of(word.begin(), word.end(), is_digit); }

// With or without 0x before it.
bool is_hex_word(Bytes word) {
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
    word.remove_prefix(2);
  }
  return !word.empty() && std::all_of(word.begin(), word.end(), is_hex);
}

Bytes word_at(Bytes line, size_t at) {
  size_t end = at;
  while (end < line.size() && is_letter_or_digit(line[end])) ++end;
  return line.substr(at, end - at);
}

// The end of the run of hexadecimal words that begins here; its first and its last word have a
// digit. `at`: none does.
size_t run_end(Bytes line, size_t at) {
  size_t end = at;
  for (size_t next = at;; ++next) {
    const Bytes word = word_at(line, next);
    if (!is_hex_word(word) || (end == at && !has_digit(word))) return end;
    next += word.size();
    if (has_digit(word)) end = next;
    if (next == line.size() || line[next] != '-') return end;
  }
}

constexpr Bytes kBlanks = " \t\r\n";

Bytes first_line(Bytes text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  // A search for one byte is many times faster than one for any of two.
  text = text.substr(0, std::min(text.find('\r'), text.find('\n')));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

}  // namespace

Bytes telling_line(Bytes error) {
  const Bytes first = first_line(error);
  if (!first.starts_with("Traceback (")) return first;
  error = error.substr(0, error.find_last_not_of(kBlanks) + 1);
  return first_line(error.substr(error.find_last_of("\r\n") + 1));
}

Bytes error_of(const Job& job) {
  const JobExtras* extras = job.extras_if();
  return extras == nullptr ? Bytes() : Bytes(extras->error);
}

std::string error_pattern(Bytes error) {
  const Bytes line = telling_line(error);
  std::string pattern;
  for (size_t at = 0; at < line.size() && pattern.size() <= kMaxPatternBytes;) {
    const size_t end = run_end(line, at);
    if (end != at) {
      pattern += '#';
      at = end;
      continue;
    }
    // A word in which only the digits vary, or a byte between words.
    const size_t size = std::max<size_t>(1, word_at(line, at).size());
    for (const char c : line.substr(at, size)) {
      if (!is_digit(c)) {
        pattern += c;
      } else if (pattern.empty() || pattern.back() != '#') {
        pattern += '#';
      }
    }
    at += size;
  }
  pattern.resize(cut_text(pattern, kMaxPatternBytes).size());
  return pattern;
}

bool contains_ignore_case(Bytes text, Bytes part) {
  const std::string in = to_lower(text);
  const std::string wanted = to_lower(part);
  // Its time is linear, whatever a caller has chosen as a part.
  return ::memmem(in.data(), in.size(), wanted.data(), wanted.size()) != nullptr;
}

}  // namespace sluice
