// Packed integers against LEB128 written byte by byte.
#include "engine/base/varint.h"

#include <memory>
#include <random>
#include <string>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::testing::seeds;
using sluice::testing::use_seed;

std::string plain_varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

void check_number(uint64_t value) {
  INFO(value);
  std::string text = "before";
  sluice::put_varint(text, value);
  REQUIRE(text == "before" + plain_varint(value));
  // Allocates only as much as requested: ASan detects writes beyond it.
  const auto place = std::make_unique<char[]>(sluice::kMaxVarintBytes);
  const char* const end = sluice::put_varint(place.get(), value);
  REQUIRE(Bytes(place.get(), static_cast<size_t>(end - place.get())) == plain_varint(value));
  sluice::ByteBuffer buffer;
  buffer.append("before");
  sluice::put_varint(buffer, value);
  REQUIRE(buffer.view() == text);
  Bytes rest = Bytes(text).substr(6);
  uint64_t back = ~value;
  REQUIRE(sluice::take_varint(rest, back));
  REQUIRE(back == value);
  REQUIRE(rest.empty());
}

void check_signed(int64_t value) {
  INFO(value);
  std::string text;
  sluice::put_signed(text, value);
  Bytes rest = text;
  int64_t back = ~value;
  REQUIRE(sluice::take_signed(rest, back));
  REQUIRE(back == value);
  REQUIRE(rest.empty());
  // A truncated number is rejected.
  Bytes cut = Bytes(text).substr(0, text.size() - 1);
  REQUIRE_FALSE(sluice::take_signed(cut, back));
}

}  // namespace

TEST_CASE("numbers around every power of two are LEB128 and come back") {
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t value : {power - 1, power, power + 1}) {
      check_number(value);
      check_signed(static_cast<int64_t>(value));
      check_signed(-static_cast<int64_t>(value >> 1));
    }
  }
  check_number(UINT64_MAX);
  check_signed(INT64_MIN);
  check_signed(INT64_MAX);
}

TEST_CASE("numbers of any length are LEB128 and come back") {
  for (const uint64_t seed : seeds(4, 0x51ed27)) {
    use_seed(seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t value = random() >> (random() % 64);
      check_number(value);
      check_signed(static_cast<int64_t>(value));
    }
  }
}
