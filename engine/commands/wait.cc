// WAIT and WAITAOF: wait until earlier writes are in the journal, and applied by standbys of the
// group. A server without a group has no standbys.
#include <atomic>
#include <memory>
#include <utility>

#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/ports/group_port.h"
#include "engine/ports/persistence_port.h"

namespace sluice {

namespace {

constexpr Bytes kBadTimeout = "ERR timeout is not an integer or out of range";
constexpr Bytes kNegativeTimeout = "ERR timeout is negative";
constexpr Bytes kWaitAtStandby =
    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
    "replica is configured to be writable (which is not the default) writes to replicas are just "
    "local and are not propagated.";
constexpr Bytes kWaitaofAtStandby =
    "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas "
    "are just local and are not propagated.";
constexpr Bytes kNoJournal =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

void reply_wait(Reply& reply, bool, int64_t standbys) { reply.integer(standbys); }

void reply_waitaof(Reply& reply, bool here, int64_t standbys) {
  reply.array(2);
  reply.integer(here ? 1 : 0);
  reply.integer(standbys);
}

// --- In a group ---

// What is waited for: that the journal and `standbys` have everything up to `lsn`.
struct GroupWait final : WaiterRequest {
  Engine* engine = nullptr;
  Lsn lsn = 0;
  bool here = false;
  int64_t standbys = 0;
  void (*write)(Reply& reply, bool here, int64_t standbys) = nullptr;

  bool is_here() const {
    const Journal* const journal = engine->journal();
    return journal != nullptr && journal->durable_lsn() >= lsn;
  }
  void reply_now(Reply& reply, const GroupView& view) const {
    write(reply, is_here(), view.applied_by(lsn));
  }
};

const GroupWait& wait_of(const Waiter& waiter) {
  return static_cast<const GroupWait&>(*waiter.request);
}

// Answers a waiter whose standbys have followed. False: the next views do not concern it.
bool serve_wait(Waiter& waiter, const GroupView& view) {
  const GroupWait& wait = wait_of(waiter);
  if (view.applied_by(wait.lsn) < wait.standbys) return waiter.is_waiting();
  if (!waiter.claim()) return false;
  ByteBuffer bytes;
  RespReply reply(bytes, waiter.protocol);
  wait.write(reply, true, view.applied_by(wait.lsn));
  // It is sent when the journal has it.
  waiter.port->deliver_blocked_reply(std::move(bytes), wait.here ? wait.lsn : 0);
  return false;
}

// All earlier writes of any connection are waited for, not only its own.
void wait_in_group(Call& call, std::unique_ptr<GroupWait> wait, int64_t timeout_ms) {
  wait->engine = &call.engine;
  // Earlier commands of the batch must be in the journal; in a transaction that happens later.
  if (!call.nested) call.execution.release();
  const Journal* const journal = call.engine.journal();
  wait->lsn = journal == nullptr ? 0 : journal->last_lsn();
  GroupPort& group = *call.engine.server().group();
  const auto view = group.view();
  const bool done =
      (!wait->here || wait->is_here()) && view->applied_by(wait->lsn) >= wait->standbys;
  if (call.nested || done) return wait->reply_now(call.reply, *view);
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->request = std::move(wait);
  waiter->timed_out = [](const Waiter& late, Reply& reply) {
    const GroupWait& request = wait_of(late);
    request.reply_now(reply, *request.engine->server().group()->view());
  };
  call.block({}, waiter);
  group.follow([waiter](const GroupView& now) { return serve_wait(*waiter, now); });
}

bool is_standby(const Call& call) {
  GroupPort* const group = call.engine.server().group();
  return group != nullptr && !group->view()->leads();
}

}  // namespace

void wait_command(Call& call) {
  if (is_standby(call)) return call.reply.error(kWaitAtStandby);
  int64_t standbys = 0;
  int64_t timeout_ms = 0;
  if (!call.integer(1, standbys)) return;
  if (!call.integer(2, timeout_ms, kBadTimeout)) return;
  if (timeout_ms < 0) return call.reply.error(kNegativeTimeout);
  if (call.engine.server().group() != nullptr) {
    auto wait = std::make_unique<GroupWait>();
    wait->standbys = standbys;
    wait->write = reply_wait;
    return wait_in_group(call, std::move(wait), timeout_ms);
  }
  if (standbys <= 0 || call.nested) return call.reply.integer(0);
  // Nothing wakes it.
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->timed_out = [](const Waiter&, Reply& reply) { reply.integer(0); };
  call.block({}, std::move(waiter));
}

namespace {

struct WaitaofRequest final : WaiterRequest {
  std::atomic<bool> synced{false};
};

bool is_synced(const Waiter& waiter) {
  return static_cast<const WaitaofRequest&>(*waiter.request).synced.load();
}

bool parse_waitaof(Call& call, int64_t& here, int64_t& standbys, int64_t& timeout_ms) {
  if (!call.integer(1, here)) return false;
  if (here < 0 || here > 1) {
    return fail(call, "ERR value is out of range, value must between 0 and 1");
  }
  if (!call.integer(2, standbys, errors::kNotPositive)) return false;
  if (standbys < 0) return fail(call, errors::kNotPositive);
  if (!call.integer(3, timeout_ms, kBadTimeout)) return false;
  if (timeout_ms < 0) call.reply.error(kNegativeTimeout);
  return timeout_ms >= 0;
}

// Without a group: waits for the disk; no standby ever follows.
void wait_for_disk(Call& call, bool here, int64_t standbys, int64_t timeout_ms) {
  auto* const port = call.engine.server().persistence();
  const bool journaling = port != nullptr && port->is_journaling();
  if (here && !journaling) return call.reply.error(kNoJournal);
  // Earlier commands of the batch must be in the journal; in a transaction that happens later.
  if (!call.nested) call.execution.release();
  const bool synced = journaling && call.unit.record_count == 0 && port->is_synced();
  if (call.nested || (standbys == 0 && (!here || synced))) {
    return reply_waitaof(call.reply, synced, 0);
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->timeout_ms = timeout_ms;
  waiter->request = std::make_unique<WaitaofRequest>();
  waiter->timed_out = [](const Waiter& w, Reply& reply) { reply_waitaof(reply, is_synced(w), 0); };
  call.block({}, waiter);
  if (!journaling) return;
  port->when_synced([waiter, here, standbys](bool is_on_disk) {
    static_cast<WaitaofRequest&>(*waiter->request).synced.store(is_on_disk);
    if (is_on_disk ? standbys != 0 : !here) return;
    if (!waiter->claim()) return;
    ByteBuffer bytes;
    RespReply reply(bytes, waiter->protocol);
    is_on_disk ? reply_waitaof(reply, true, 0) : reply.error(kNoJournal);
    waiter->port->deliver_blocked_reply(std::move(bytes), 0);
  });
}

}  // namespace

// Waits for all earlier writes of any connection, not only of its own.
void waitaof_command(Call& call) {
  if (is_standby(call)) return call.reply.error(kWaitaofAtStandby);
  int64_t here = 0;
  int64_t standbys = 0;
  int64_t timeout_ms = 0;
  if (!parse_waitaof(call, here, standbys, timeout_ms)) return;
  if (call.engine.server().group() == nullptr) {
    return wait_for_disk(call, here != 0, standbys, timeout_ms);
  }
  auto wait = std::make_unique<GroupWait>();
  wait->here = here != 0;
  wait->standbys = standbys;
  wait->write = reply_waitaof;
  wait_in_group(call, std::move(wait), timeout_ms);
}

}  // namespace sluice
