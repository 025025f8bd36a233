// libFuzzer target: arbitrary bytes give the same transcript in every split, without a memory
// error.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "tests/support/resp_transcript.h"

namespace {

// The input's first bytes choose limits and split, so that the fuzzer can steer both.
sluice::RespLimits choose_limits(uint8_t choice) {
  sluice::RespLimits limits;
  limits.authenticated = (choice & 1) == 0;
  if ((choice & 2) != 0) limits.max_inline_bytes = 24;
  if ((choice & 4) != 0) limits.max_bulk_bytes = 40;
  if ((choice & 8) != 0) limits.max_args = 5;
  return limits;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4 || size > 4096) return 0;
  const sluice::RespLimits limits = choose_limits(data[0]);
  const std::vector<size_t> cycle = {size_t{1} + data[1] % 16, size_t{1} + data[2] % 64,
                                     size_t{1} + data[3] % 8};
  const std::string_view input(reinterpret_cast<const char*>(data) + 4, size - 4);
  std::vector<size_t> pieces;
  for (size_t i = 0; i < input.size(); ++i) pieces.push_back(cycle[i % cycle.size()]);
  const std::vector<size_t> single_bytes(input.size(), 1);
  const std::string whole = sluice::test::parse_whole(input, limits);
  CHECK(sluice::test::parse_in_pieces(input, pieces, limits) == whole);
  CHECK(sluice::test::parse_in_pieces(input, single_bytes, limits) == whole);
  return 0;
}
