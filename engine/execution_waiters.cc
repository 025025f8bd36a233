// Serving those who wait: the part of Execution that runs blocked commands again, inside the unit
// that made their keys ready.
#include "engine/execution.h"
#include "engine/queue/queue_serving.h"
#include "engine/queue/queue_work.h"

namespace sluice {

void Execution::serve_waiters() {
  // Serving may make further keys ready (BLMOVE), which are appended here.
  for (size_t i = 0; i < unit_.ready.size(); ++i) {
    const SignalledKey ready = unit_.ready[i];
    if (ready.what == SignalledKey::What::kAdopted) {
      settle_adopted();
      continue;
    }
    serve_ready(ready);
    serve_queue(ready);
  }
  unit_.ready.clear();
}

std::shared_ptr<Waiter> Execution::claim_waiter(const SignalledKey& ready,
                                                const Entry* entry) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& waiters = engine_.shard(ready.shard).waiters;
  WaiterLists::List* list = waiters.find(ready.database, ready.key);
  if (list == nullptr) return nullptr;
  for (const std::shared_ptr<Waiter>& waiter : *list) {
    const bool is_there = entry != nullptr && waiter->wanted == entry->type();
    if (!is_there && !waiter->served_when_gone) continue;
    if (is_there && waiter->accepts != nullptr && !waiter->accepts(*waiter, *entry)) continue;
    WaiterState expected = WaiterState::kWaiting;
    if (!waiter->state.compare_exchange_strong(expected, WaiterState::kClaimed)) continue;
    std::shared_ptr<Waiter> claimed = waiter;
    waiters.remove(ready.key, claimed.get());
    return claimed;
  }
  return nullptr;
}

void Execution::serve_ready(const SignalledKey& ready) {
  if (ready.what != SignalledKey::What::kMore) return;
  const KeyRef key(ready.key);
  Database database(engine_.shard(ready.shard), ready.database, unit_);
  for (;;) {
    const std::shared_ptr<Waiter> waiter = claim_waiter(ready, database.find(key));
    if (waiter == nullptr) return;
    serve(*waiter, ready.key);
  }
}

void Execution::serve(const Waiter& waiter, Bytes key) {
  waiter_client_.id = waiter.client_id;
  waiter_client_.database = waiter.database;
  waiter_client_.protocol = waiter.protocol;
  waiter_client_.port = waiter.port;
  std::vector<Bytes> args(waiter.arguments.begin(), waiter.arguments.end());
  Delivery delivery{waiter.port, {}, true};
  RespReply reply(delivery.bytes, waiter.protocol);
  reply.count_errors_in(error_counts_);
  const auto place = static_cast<std::ptrdiff_t>(unit_.deliveries.size());
  Call call{engine_, *this, waiter_client_, unit_, *waiter.command, args, reply, true, {}};
  call.waiter = &waiter;
  unit_.served = {waiter.client_id, &delivery.bytes};
  waiter.serve(call, key);
  if (reply.unattributed_errors() != 0) note_failed(*waiter.command);
  unit_.served = {};
  CHECK(!delivery.bytes.empty());
  // Before what the client is to hear of its own command.
  unit_.deliveries.insert(unit_.deliveries.begin() + place, std::move(delivery));
  waiter_client_.port = nullptr;
}

// --- Waiters at queues ---

namespace {

bool claim(Waiter& waiter) {
  WaiterState expected = WaiterState::kWaiting;
  return waiter.state.compare_exchange_strong(expected, WaiterState::kClaimed);
}

}  // namespace

void Execution::serve_queue(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(ready.shard).waiters;
  if (lists.find_queue(ready.database, ready.key) == nullptr) return;
  using What = SignalledKey::What;
  if (ready.what == What::kMore || ready.what == What::kQueue) serve_pops(ready);
  const QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
  if (waiters == nullptr || ready.what == What::kMore) return;
  const KeyRef key(ready.key);
  Database database(engine_.shard(ready.shard), ready.database, unit_);
  const Entry* entry = database.find(key);
  // These read only, so serving one changes nothing for the next.
  const auto concerned = entry != nullptr && entry->type() == Type::kQueue
                             ? concerned_waiters(*waiters, ready, *entry)
                             : waiters_of_lost_queue(*waiters);
  for (const std::shared_ptr<Waiter>& waiter : concerned) {
    lists.remove(ready.key, waiter.get());
    if (claim(*waiter)) serve(*waiter, ready.key);
  }
}

void Execution::serve_pops(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(ready.shard).waiters;
  const KeyRef key(ready.key);
  Database database(engine_.shard(ready.shard), ready.database, unit_);
  const Entry* entry = database.find(key);
  if (entry == nullptr || entry->type() != Type::kQueue) return;
  // Nothing that is served here ends the queue.
  QueueWork work(database, key, entry->object<Queue>(), unit_);
  for (;;) {
    const QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
    if (waiters == nullptr) return;
    const std::shared_ptr<Waiter> waiter = next_pop(*waiters, work);
    if (waiter == nullptr) return;
    lists.remove(ready.key, waiter.get());
    // Not claimed: another shard's thread serves it, or it has given up.
    if (claim(*waiter)) serve(*waiter, ready.key);
  }
}

void Execution::reset_stats() {
  commands_processed = 0;
  keyspace_hits = 0;
  keyspace_misses = 0;
  for (CommandStat& counters : stats()) counters.reset();
  error_counts_.reset();
}

}  // namespace sluice
