#include <algorithm>
#include <string>

#include "engine/commands/server.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

// A queue, drawn from the side: bars of random heights.
std::string drawing(uint64_t seed) {
  constexpr int kColumns = 40;
  constexpr int kRows = 8;
  std::string text;
  for (int row = kRows; row > 0; --row) {
    uint64_t random = seed;
    for (int column = 0; column < kColumns; ++column) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      text += static_cast<int>(random >> 61) + 1 >= row ? '#' : ' ';
    }
    text += '\n';
  }
  return text + "\nA queue, drawn at random. ";
}

}  // namespace

void lolwut_command(Call& call) {
  int64_t version = 0;
  if (call.args.size() >= 3 && call.option(1, "VERSION")) {
    if (!call.integer(2, version)) return;
    // The size of the picture in Redis; the one here is fixed.
    const size_t sizes = version == 5 ? 3 : version == 6 ? 2 : 0;
    int64_t size = 0;
    for (size_t at = 3; at < std::min(call.args.size(), 3 + sizes); ++at) {
      if (!call.integer(at, size)) return;
    }
  }
  const bool draws = version == 5 || version == 6;
  call.reply.verbatim("txt", (draws ? drawing(static_cast<uint64_t>(call.now_ms())) : "") +
                                 std::string("Redis ver. 7.0.15\n"));
}

}  // namespace sluice
