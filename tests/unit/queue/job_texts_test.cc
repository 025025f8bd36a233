// The patterns by which errors are grouped, and parts of texts.
#include "engine/queue/job_texts.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/quoting.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::contains_ignore_case;
using sluice::cut_text;
using sluice::error_pattern;
using sluice::kMaxPatternBytes;
using sluice::to_lower;

TEST_CASE("digits and hexadecimal runs are one sign each") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"no digits at all", "no digits at all"},
      {"Timeout after 30 ms", "Timeout after # ms"},
      {"Timeout after 1200ms", "Timeout after #ms"},
      {"10.0.0.7:5432 refused", "#.#.#.#:# refused"},
      {"exit code -9", "exit code -#"},
      {"at 0x7fff12ab", "at #"},
      {"at 0X7FFF12AB", "at #"},
      {"commit deadbee7 failed", "commit # failed"},
      // Words that only look hexadecimal.
      {"a dead face was added", "a dead face was added"},
      {"bad-faced", "bad-faced"},
      {"worker7 of node12", "worker# of node#"},
      {"0xyz", "#xyz"},
      {"user_17", "user_#"},
      // Parts of a UUID without a digit.
      {"no 550e8400-abcd-41d4-a716-446655440000 here", "no # here"},
      {"job-550e8400-e29b-beef-face-446655440000", "job-#"},
      {"on 2026-11-26 at 20:51:07", "on # at #:#:#"},
      {"2-bad-apples", "#-bad-apples"},
      {"dead-letter-5", "dead-letter-#"},
      {"5-", "#-"},
      {"5--6", "#--#"},
      {"-", "-"},
      // The first line, without blanks around it.
      {"one 1\ntwo 2", "one #"},
      {"\r\n  first 5 \t\r\nsecond", "first #"},
      {" \n ", ""},
      // A traceback is told by the line that names the exception.
      {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\nKeyError: 5\n",
       "KeyError: #"},
      {"Traceback (most recent call last):", "Traceback (most recent call last):"},
      {"\xc3\xa9t\xc3\xa9 5", "\xc3\xa9t\xc3\xa9 #"},
      {std::string("a\0b 7", 5), std::string("a\0b #", 5)}};
  for (const auto& [error, pattern] : cases) {
    INFO(error);
    CHECK(error_pattern(error) == pattern);
    CHECK(error_pattern(pattern) == pattern);
  }
}

TEST_CASE("parts in any case") {
  CHECK(contains_ignore_case("Timeout", "OUT"));
  CHECK(contains_ignore_case("OUT of", "out"));
  CHECK_FALSE(contains_ignore_case("out", "outs"));
  CHECK(contains_ignore_case("", ""));
  CHECK_FALSE(contains_ignore_case("\xc3\x84", "\xc3\xa4"));
}

// Texts are made lower case in blocks, and byte by byte behind the last one.
TEST_CASE("each byte of a text of any length is made lower case") {
  std::string text;
  std::string lower;
  for (int i = 0; i < 300; ++i) {
    text += static_cast<char>(i);
    lower += i % 256 >= 'A' && i % 256 <= 'Z' ? static_cast<char>(i + 32) : static_cast<char>(i);
    CHECK(to_lower(text) == lower);
    CHECK(to_lower(Bytes(text).substr(text.size() / 2)) == lower.substr(lower.size() / 2));
  }
}

TEST_CASE("patterns are cut between characters") {
  CHECK(error_pattern(std::string(4096, 'x')) == std::string(kMaxPatternBytes, 'x'));
  CHECK(error_pattern(std::string(4096, '7')) == "#");
  std::string umlauts = "x";
  while (umlauts.size() < 4096) umlauts += "\xc3\xbc";
  CHECK(error_pattern(umlauts) == umlauts.substr(0, kMaxPatternBytes - 1));
  CHECK(cut_text("abc", 3) == "abc");
  CHECK(cut_text("abc", 2) == "ab");
  CHECK(cut_text("a\xf0\x9f\x98\x80", 4) == "a");
  CHECK(cut_text("a\xf0\x9f\x98\x80", 5) == "a\xf0\x9f\x98\x80");
  // Bytes that are no text are cut where they are.
  CHECK(cut_text(std::string(9, '\x80'), 5) == std::string(5, '\x80'));
}

}  // namespace
