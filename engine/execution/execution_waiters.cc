// Serving waiters: the part of Execution that runs blocked commands again, inside the unit that
// made their keys ready.
#include <algorithm>
#include <bit>
#include <optional>

#include "engine/execution/execution.h"
#include "engine/work/quiet.h"
#include "engine/work/serving.h"

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
  for (const auto& [order, waiter] : *list) {
    const bool is_there = entry != nullptr && waiter->wanted == entry->type();
    if (!is_there && !waiter->served_when_gone) continue;
    if (is_there && waiter->accepts != nullptr && !waiter->accepts(*waiter, *entry)) continue;
    if (!waiter->claim()) continue;
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
  // Before the invalidations of the client's own command.
  unit_.deliveries.insert(unit_.deliveries.begin() + place, std::move(delivery));
  waiter_client_.port = nullptr;
}

// --- Waiters at queues ---

namespace {

// The cost of serving: a waiter, a job, and this many waiters that were examined for it. One batch
// takes about a millisecond, including sending the replies.
constexpr size_t kWaiterCost = 2;
constexpr size_t kJobCost = 1;
constexpr size_t kLooksForOne = 8;
// The most turns in one lock hold, while no pop gets anything.
constexpr size_t kTurnsAtOnce = 64;

}  // namespace

void Execution::serve_queue(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(ready.shard).waiters;
  QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
  if (waiters == nullptr) return;
  using What = SignalledKey::What;
  if (ready.what == What::kQueue) sort_quiet(*waiters, queue_at(ready));
  const bool for_pops = ready.what == What::kMore || ready.what == What::kQueue;
  if (for_pops && !waiters->all_pops.empty()) serve_pops(ready);
  waiters = lists.find_queue(ready.database, ready.key);
  if (waiters == nullptr || ready.what == What::kMore) return;
  const KeyRef key(ready.key);
  Database database(engine_.shard(ready.shard), ready.database, unit_);
  const Entry* entry = database.find(key);
  // These only read, so serving one does not affect the next.
  const auto concerned = entry != nullptr && entry->type() == Type::kQueue
                             ? concerned_waiters(*waiters, ready, *entry)
                             : waiters_of_lost_queue(*waiters);
  for (const std::shared_ptr<Waiter>& waiter : concerned) {
    lists.remove(ready.key, waiter.get());
    if (waiter->claim()) serve(*waiter, ready.key);
  }
}

const Queue* Execution::queue_at(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  const Entry* entry =
      Database(engine_.shard(ready.shard), ready.database, unit_).find(KeyRef(ready.key));
  const bool is_queue = entry != nullptr && entry->type() == Type::kQueue;
  return is_queue ? &entry->object<Queue>() : nullptr;
}

void Execution::serve_pops(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  const WaiterLists& lists = engine_.shard(ready.shard).waiters;
  const KeyRef key(ready.key);
  Database database(engine_.shard(ready.shard), ready.database, unit_);
  const Entry* entry = database.find(key);
  if (entry == nullptr || entry->type() != Type::kQueue) return;
  // Serving pops never removes the queue.
  QueueWork work(database, key, entry->object<Queue>(), unit_);
  for (;;) {
    const QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
    if (waiters == nullptr || waiters->all_pops.empty()) return;
    if (serving_left_ == 0) return owe(ready);
    size_t looks = 0;
    const std::shared_ptr<Waiter> waiter = next_pop(*waiters, work, UINT64_MAX, looks);
    spend_serving(kWaiterCost + looks / kLooksForOne);
    if (waiter == nullptr) return;
    serve_pop(ready, work, waiter);
  }
}

void Execution::serve_pop(const SignalledKey& ready, QueueWork& work,
                          const std::shared_ptr<Waiter>& waiter) NO_THREAD_SAFETY_ANALYSIS {
  engine_.shard(ready.shard).waiters.remove(ready.key, waiter.get());
  // If it cannot be claimed, another shard's thread serves it, or it has timed out.
  if (!waiter->claim()) return;
  const uint64_t active = work.queue().count(JobState::kActive);
  serve(*waiter, ready.key);
  spend_serving(kJobCost * (work.queue().count(JobState::kActive) - active));
}

void Execution::spend_serving(size_t cost) { serving_left_ -= std::min(cost, serving_left_); }

void Execution::owe(const SignalledKey& ready) NO_THREAD_SAFETY_ANALYSIS {
  engine_.shard(ready.shard).waiters.owe(ready.database, ready.key);
  engine_.owing_shards.fetch_or(1U << ready.shard, std::memory_order_release);
}

// Gives turns of a queue until a pop is served. Each turn serves its pop or none. A pop that had
// its turn is examined again only if jobs have arrived since, and then before all others.
void Execution::serve_turns(const SignalledKey& owed) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(owed.shard).waiters;
  const KeyRef key(owed.key);
  Database database(engine_.shard(owed.shard), owed.database, unit_);
  const Entry* entry = database.find(key);
  std::optional<QueueWork> work;
  if (entry != nullptr && entry->type() == Type::kQueue) {
    work.emplace(database, key, entry->object<Queue>(), unit_);
  }
  size_t looks = 0;
  while (looks < kTurnsAtOnce) {
    QueueWaiters* waiters = lists.find_queue(owed.database, owed.key);
    if (waiters == nullptr) break;
    std::shared_ptr<Waiter> waiter;
    if (work && waiters->may_repeat) waiter = next_pop(*waiters, *work, waiters->had_turn, looks);
    waiters->may_repeat = waiter != nullptr;
    if (waiter == nullptr) {
      const auto next = waiters->all_pops.upper_bound(waiters->had_turn);
      waiters->owes_turns = next != waiters->all_pops.end();
      if (!waiters->owes_turns) break;
      ++looks;
      waiters->had_turn = next->first;
      waiter = next->second;
      if (!work || !can_be_served(*waiter, *work)) {
        if (waiter->queue.in_passing) pass_over(owed, waiter);
        continue;
      }
    }
    spend_serving(kWaiterCost);
    serve_pop(owed, *work, waiter);
    break;
  }
  spend_serving(looks / kLooksForOne);
}

// This queue has nothing for a pop that waits only for its turn.
void Execution::pass_over(const SignalledKey& owed,
                          const std::shared_ptr<Waiter>& waiter) NO_THREAD_SAFETY_ANALYSIS {
  engine_.shard(owed.shard).waiters.remove(owed.key, waiter.get());
  if (waiter->queue.queues_before.fetch_sub(1) == 1) waiter->send_nothing(unit_);
}

void Execution::serve_owed() NO_THREAD_SAFETY_ANALYSIS {
  for (;;) {
    const ShardMask owing = engine_.owing_shards.load(std::memory_order_acquire);
    if (owing == 0 || serving_left_ == 0) return;
    const ShardMask later = owing & ~((1U << next_owing_) - 1);
    const auto index = static_cast<unsigned>(std::countr_zero(later != 0 ? later : owing));
    next_owing_ = (index + 1) % kShards;
    end_hold();
    lock(1U << index);
    begin_unit();
    spend_serving(1);
    SignalledKey owed{index, 0, {}};
    if (engine_.shard(index).waiters.next_owing(owed.database, owed.key)) {
      serve_turns(owed);
      serve_waiters();
    } else {
      engine_.owing_shards.fetch_and(~(1U << index), std::memory_order_release);
    }
    end_hold();
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
