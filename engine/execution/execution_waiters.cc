// Serving waiters: the part of Execution that runs blocked commands again, inside the unit that
// made their keys ready.
#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>

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
  Delivery delivery{waiter.port, {}, Delivery::Kind::kBlockedReply};
  RespReply reply(delivery.bytes, waiter.protocol);
  reply.count_errors_in(statistics.errors);
  const auto place = static_cast<std::ptrdiff_t>(unit_.deliveries.size());
  Call call{engine_, *this, waiter_client_, unit_, *waiter.command, args, reply, true, {}};
  call.waiter = &waiter;
  unit_.served = {waiter.client_id, &delivery.bytes, waiter.protocol};
  if (!waiter.refuse_without_right(reply)) waiter.serve(call, key);
  if (reply.unattributed_errors() != 0) add_one(statistics.of(waiter.command->id).failed);
  unit_.served = {};
  CHECK(!delivery.bytes.empty());
  // Before the invalidations of the client's own command.
  unit_.deliveries.insert(unit_.deliveries.begin() + place, std::move(delivery));
  waiter_client_.port = nullptr;
}

// --- Waiters at queues ---

namespace {

// The cost of serving: a waiter, a job, a slice of a reading, and this many waiters that were
// examined. One batch takes about a millisecond, including sending the replies.
constexpr size_t kWaiterCost = 2;
constexpr size_t kJobCost = 1;
constexpr size_t kReadingCost = 32;
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
  answer(ready, concerned);
}

void Execution::answer(const SignalledKey& ready,
                       std::span<const std::shared_ptr<Waiter>> concerned)
    NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(ready.shard).waiters;
  while (!concerned.empty() && serving_left_ != 0) {
    spend_serving(kWaiterCost);
    const std::shared_ptr<Waiter>& waiter = concerned.front();
    lists.remove(ready.key, waiter.get());
    if (waiter->claim()) serve(*waiter, ready.key);
    concerned = concerned.subspan(1);
  }
  QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
  if (concerned.empty() || waiters == nullptr) return;
  for (const std::shared_ptr<Waiter>& waiter : concerned) {
    // One that waits for several jobs may have been answered above.
    if (waiter->is_waiting()) waiters->due.emplace(waiter->order, waiter);
  }
  lists.list_owing(ready.database, ready.key, *waiters);
  engine_.owing_shards.fetch_or(1U << ready.shard, std::memory_order_release);
}

// Those that have not fitted into their batch. One for which the answer no longer holds waits on.
void Execution::answer_due(const SignalledKey& owed) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(owed.shard).waiters;
  Database database(engine_.shard(owed.shard), owed.database, unit_);
  while (serving_left_ != 0) {
    QueueWaiters* waiters = lists.find_queue(owed.database, owed.key);
    if (waiters == nullptr || waiters->due.empty()) return;
    const std::shared_ptr<Waiter> waiter = waiters->due.extract(waiters->due.begin()).mapped();
    spend_serving(kWaiterCost);
    const Entry* entry = database.find(KeyRef(owed.key));
    const bool is_there = entry != nullptr && entry->type() == Type::kQueue;
    const bool holds = !is_there || waiter->accepts == nullptr || waiter->accepts(*waiter, *entry);
    if (!holds) continue;
    lists.remove(owed.key, waiter.get());
    if (waiter->claim()) serve(*waiter, owed.key);
  }
}

// A slice of the first reading.
void Execution::read_on(const SignalledKey& owed) NO_THREAD_SAFETY_ANALYSIS {
  WaiterLists& lists = engine_.shard(owed.shard).waiters;
  const QueueWaiters* waiters = lists.find_queue(owed.database, owed.key);
  if (waiters == nullptr || waiters->reading.empty()) return;
  const std::shared_ptr<Waiter> waiter = waiters->reading.begin()->second;
  spend_serving(kReadingCost);
  const Queue* queue = queue_at(owed);
  if (queue != nullptr && waiter->request->read_on(*queue)) return;
  lists.remove(owed.key, waiter.get());
  if (waiter->claim()) serve(*waiter, owed.key);
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
  if (ready.what == SignalledKey::What::kQueue) hear_waiting(work);
  for (;;) {
    const QueueWaiters* waiters = lists.find_queue(ready.database, ready.key);
    if (waiters == nullptr || waiters->all_pops.empty()) return;
    if (serving_left_ == 0) return owe(ready);
    NextPop next = next_pop(*waiters, work, UINT64_MAX);
    spend_serving(kWaiterCost + next.looks / kLooksForOne);
    if (next.too_many) owe(ready);
    if (next.waiter == nullptr) return work.queue().pops_found_nothing();
    serve_pop(ready, work, next.waiter);
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
    if (work && waiters->may_repeat) {
      NextPop repeated = next_pop(*waiters, *work, waiters->had_turn);
      looks += repeated.looks;
      waiters->turns_again = waiters->turns_again || repeated.too_many;
      waiter = std::move(repeated.waiter);
    }
    waiters->may_repeat = waiter != nullptr;
    if (waiter == nullptr) {
      auto next = waiters->all_pops.upper_bound(waiters->had_turn);
      if (next == waiters->all_pops.end() && std::exchange(waiters->turns_again, false)) {
        next = waiters->all_pops.begin();
      }
      waiters->owes_turns = next != waiters->all_pops.end();
      if (!waiters->owes_turns) {
        if (work) work->queue().pops_found_nothing();
        break;
      }
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
    WaiterLists& lists = engine_.shard(index).waiters;
    if (lists.next_owing(owed.database, owed.key)) {
      answer_due(owed);
      read_on(owed);
      const QueueWaiters* waiters = lists.find_queue(owed.database, owed.key);
      if (waiters != nullptr && waiters->owes_turns) serve_turns(owed);
      serve_waiters();
    } else {
      engine_.owing_shards.fetch_and(~(1U << index), std::memory_order_release);
    }
    end_hold();
  }
}

}  // namespace sluice
