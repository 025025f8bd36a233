// ROLE, WAIT and LOLWUT: what clients ask to learn whom they talk to. There is no replication.
#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/commands/call.h"
#include "engine/commands/server.h"

namespace sluice {

void role_command(Call& call) {
  call.reply.array(3);
  call.reply.bulk("master");
  call.reply.integer(0);
  call.reply.array(0);
}

void wait_command(Call& call) {
  int64_t replicas = 0;
  int64_t timeout_ms = 0;
  if (!call.integer(1, replicas)) return;
  if (!call.integer(2, timeout_ms, "ERR timeout is not an integer or out of range")) return;
  if (timeout_ms < 0) return call.reply.error("ERR timeout is negative");
  if (replicas <= 0 || call.nested) return call.reply.integer(0);
  // No key will ever wake it.
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->timed_out = [](const Waiter&, Reply& reply) { reply.integer(0); };
  call.block({}, std::move(waiter));
}

namespace {

// A queue, seen from the side: bars of random heights.
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
  return text + "\nA queue, drawn by chance. ";
}

}  // namespace

void lolwut_command(Call& call) {
  int64_t version = 0;
  if (call.args.size() >= 3 && call.option(1, "VERSION")) {
    if (!call.integer(2, version)) return;
    // The size of the picture in Redis; ours has one.
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
