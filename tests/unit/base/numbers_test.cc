// Numbers as texts: how long they may be.
#include "engine/base/numbers.h"

#include <limits>
#include <string>

#include "tests/support/test.h"

namespace sluice::test {

TEST_CASE("a long number is read, and a longer one is refused and not copied") {
  for (const size_t size : {100, 5000, 6000, 10'000'000}) {
    CAPTURE(size);
    const std::string text = "." + std::string(size - 1, '1');
    CHECK(parse_double(text).has_value() == (size <= 5000));
    CHECK(parse_long_double(text).has_value() == (size <= 5000));
  }
}

TEST_CASE("the longest number that INCRBYFLOAT writes can be read again") {
  constexpr long double kLargest = std::numeric_limits<long double>::max();
  const std::string text = format_long_double(kLargest);
  CHECK(text.size() > 4900);
  const auto read = parse_long_double(text);
  REQUIRE(read.has_value());
  CHECK((*read == kLargest));
}

}  // namespace sluice::test
