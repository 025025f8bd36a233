#include "engine/base/bytes.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <string>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

TEST_CASE("words are equal without regard to the case of ASCII letters, and of nothing else") {
  // Letters, their neighbours, and bytes that differ from letters by the eighth bit.
  const std::string alphabet = "AaZz@[`{Mm\xc1\xe1\xda\xfa" + std::string(1, '\0');
  for (const uint64_t seed : testing::seeds(1, 1)) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 200'000; ++i) {
      std::string a(random() % 12, ' ');
      for (char& c : a) c = alphabet[random() % alphabet.size()];
      std::string b = a;
      for (char& c : b) {
        if (c >= 'a' && c <= 'z' && random() % 2 == 0) c = static_cast<char>(c - 32);
        if (random() % 16 == 0) c = alphabet[random() % alphabet.size()];
      }
      const bool same = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                   [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
      REQUIRE(equals_ignore_case(a, b) == same);
    }
  }
}

// `text` so many times.
static std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST_CASE("a glob with any number of stars needs no more than the thread's stack") {
  CHECK(glob_match(repeated("*a", 900), std::string(900, 'a')));
  // Beyond a thousand of them nothing matches, as in Redis.
  CHECK_FALSE(glob_match(repeated("*a", 1'000'000), std::string(1'000'000, 'a')));
}

TEST_CASE("a glob with several stars that matches nothing takes no time") {
  const std::clock_t begin = std::clock();
  CHECK_FALSE(glob_match(repeated("*a", 5) + "*b", std::string(100, 'a')));
  // Processor time; each way to place the stars would take ten seconds.
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 1);
}

}  // namespace sluice::test
