// ROLE, WAIT, WAITAOF and LOLWUT: the role of the server, and whether changes are durable. There is
// no replication.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "engine/base/numbers.h"
#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/ports/persistence_port.h"

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
  // No key wakes it.
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->timed_out = [](const Waiter&, Reply& reply) { reply.integer(0); };
  call.block({}, std::move(waiter));
}

namespace {

constexpr Bytes kNoJournal =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

void reply_acknowledged(Reply& reply, bool here) {
  reply.array(2);
  reply.integer(here ? 1 : 0);
  reply.integer(0);  // replicas
}

struct WaitaofRequest final : WaiterRequest {
  std::atomic<bool> synced{false};
};

bool is_synced(const Waiter& waiter) {
  return static_cast<const WaitaofRequest&>(*waiter.request).synced.load();
}

bool parse_waitaof(Call& call, int64_t& here, int64_t& replicas, int64_t& timeout_ms) {
  if (!call.integer(1, here)) return false;
  if (here < 0 || here > 1) {
    call.reply.error("ERR value is out of range, value must between 0 and 1");
    return false;
  }
  if (!call.integer(2, replicas, errors::kNotPositive)) return false;
  if (replicas < 0) {
    call.reply.error(errors::kNotPositive);
    return false;
  }
  if (!call.integer(3, timeout_ms, "ERR timeout is not an integer or out of range")) return false;
  if (timeout_ms < 0) call.reply.error("ERR timeout is negative");
  return timeout_ms >= 0;
}

}  // namespace

// Waits for all earlier writes of any connection, not only of its own.
void waitaof_command(Call& call) {
  int64_t here = 0;
  int64_t replicas = 0;
  int64_t timeout_ms = 0;
  if (!parse_waitaof(call, here, replicas, timeout_ms)) return;
  auto* const port = call.engine.server().persistence();
  const bool journaling = port != nullptr && port->is_journaling();
  if (here != 0 && !journaling) return call.reply.error(kNoJournal);
  // Earlier commands of the batch must be in the journal; in a transaction that happens later.
  if (!call.nested) call.execution.release();
  const bool synced = journaling && call.unit.record_count == 0 && port->is_synced();
  if (call.nested || (replicas == 0 && (here == 0 || synced))) {
    return reply_acknowledged(call.reply, synced);
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->request = std::make_unique<WaitaofRequest>();
  waiter->timed_out = [](const Waiter& w, Reply& reply) {
    reply_acknowledged(reply, is_synced(w));
  };
  call.block({}, waiter);
  if (!journaling) return;
  port->when_synced([waiter, here, replicas](bool is_on_disk) {
    static_cast<WaitaofRequest&>(*waiter->request).synced.store(is_on_disk);
    // Replicas never arrive: waiting for them lasts until the time-out.
    if (is_on_disk ? replicas != 0 : here == 0) return;
    if (!waiter->claim()) return;
    ByteBuffer bytes;
    RespReply reply(bytes, waiter->protocol);
    is_on_disk ? reply_acknowledged(reply, true) : reply.error(kNoJournal);
    waiter->port->deliver_blocked_reply(std::move(bytes), 0);
  });
}

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
