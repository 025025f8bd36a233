// Work without a command: keys expire, timers of queues run, connections end.
#include <algorithm>

#include "engine/base/kill_point.h"
#include "engine/base/ticks.h"
#include "engine/clients/tracking.h"
#include "engine/execution/departures.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/work/lease_expiry.h"
#include "engine/work/timers.h"

namespace sluice {

namespace {

// Expired keys deleted in one lock hold.
constexpr size_t kMaxExpiredPerHold = 64;
// Due jobs of one queue, and jobs of deleted queues, in one lock hold.
constexpr size_t kMaxQueueTimersPerHold = 64;
// Items of the table of CLIENT TRACKING examined in one call.
constexpr size_t kMaxSweptItems = 512;
// Waiters whose time is over that are served in one call.
constexpr size_t kMaxLate = 64;
// Queues in which the leases of lost connections end at once.
constexpr size_t kMaxUntied = 512;

}  // namespace

void Execution::expire_keys(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  size_t left = kMaxExpiredPerHold;
  int64_t next_due_ms = kNeverMs;
  for (int i = 0; i < kDatabases; ++i) {
    Database database(shard, i, unit_);
    left -= database.expire_due(left);
    const auto& expiries = database.keyspace().expiries;
    if (expiries.empty()) continue;
    next_due_ms = std::min(next_due_ms, static_cast<int64_t>(expiries.front().major));
  }
  shard.next_due_ms.store(next_due_ms, std::memory_order_release);
}

void Execution::run_due_queue(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  if (Queue* queue = due_queue(shard, unit_.times)) {
    const KeyRef key(queue->key);
    Database database = Database::at_index(shard, queue->database, unit_);
    const bool releasing = !queue->releases.empty();
    {
      QueueWork work(database, key, *queue, unit_);
      run_queue_timers(work, kMaxQueueTimersPerHold);
    }
    if (releasing) kill_point("inside_release");
    if (queue->adopted != nullptr) run_adopted_timers(*queue);
    list_queue_timers(shard, *queue);
  }
  set_queue_due_times(shard);
}

bool Execution::run_timers(const Times& now) NO_THREAD_SAFETY_ANALYSIS {
  set_times(now);
  if (engine_.pause.end_ms() != 0) [[unlikely]] {
    if (engine_.pause.mode(steady_ms_) != PauseMode::kNone) return false;
    engine_.pause.end_if_over(steady_ms_);
  }
  Tracking& tracking = engine_.tracking();
  if (tracking.must_sweep()) tracking.sweep(kMaxSweptItems);
  bool more = tracking.must_sweep();
  serve_owed();
  if (engine_.departures().has_late()) serve_late();
  size_t names = kMaxUntied;
  const unsigned shards = engine_.following.load(std::memory_order_relaxed) ? 0 : kShards;
  for (unsigned index = 0; index < shards; ++index) {
    Shard& shard = engine_.shard(index);
    const auto is_due = [&] {
      return shard.next_due_ms.load(std::memory_order_acquire) <= times_.wall_ms ||
             shard.next_due_queue_ms.load(std::memory_order_acquire) <= times_.queue_ms ||
             shard.next_due_steady_ms.load(std::memory_order_acquire) <= times_.steady_ms;
    };
    if (!is_due()) continue;
    end_hold();
    lock_with_adopted(index);  // changes here may concern queues in other shards
    begin_unit();
    look_at_adopted(shard);
    const uint64_t begin_ticks = read_ticks();
    expire_keys(shard);
    note_latency_event("expire-cycle", read_ticks() - begin_ticks);
    const std::vector<uint64_t> lost = engine_.departures().take_ties(index);
    run_due_queue(shard);
    for (const uint64_t client_id : lost) end_ties(shard, client_id, names);
    // Waiters at queues with due timers, and at expired queues.
    serve_waiters();
    if (unit_.record_count != 0) kill_point("inside_expiry");
    more = more || is_due();
  }
  return more || engine_.owing_shards.load(std::memory_order_relaxed) != 0 ||
         engine_.departures().has_late();
}

void Execution::serve_late() NO_THREAD_SAFETY_ANALYSIS {
  for (const std::shared_ptr<Waiter>& waiter : engine_.departures().take_late(kMaxLate)) {
    // Its key may have expired, which may concern queues in other shards.
    const std::string& name = waiter->keys.front();
    const unsigned index = KeyRef(name).shard;
    end_hold();
    lock_with_adopted(index);
    begin_unit();
    engine_.shard(index).waiters.remove(name, waiter.get());
    if (waiter->claim()) serve(*waiter, name);
    serve_waiters();
  }
}

void Execution::lock_with_adopted(unsigned index) NO_THREAD_SAFETY_ANALYSIS {
  const Shard& shard = engine_.shard(index);
  lock(1U << index);
  while (shard.adopted != nullptr && (shard.adopted->shards() & ~locked_) != 0) {
    lock((1U << index) | shard.adopted->shards());
  }
}

// --- Ends of connections ---

bool Execution::try_to_lock(unsigned index) NO_THREAD_SAFETY_ANALYSIS {
  if (!engine_.lock_patiently(engine_.shard(index))) return false;
  locked_ |= 1U << index;
  return true;
}

void Execution::end_ties(Shard& shard, uint64_t client_id, size_t& names) {
  const auto some = untie_client(shard, client_id, names);
  names -= some.size();
  if (names == 0) leave_ties(shard, client_id);
  for (const auto& [index, name] : some) {
    const KeyRef key(name);
    Database database = Database::at_index(shard, index, unit_);
    const Entry* entry = database.find(key);
    if (entry == nullptr || entry->type() != Type::kQueue) continue;
    QueueWork work(database, key, entry->object<Queue>(), unit_);
    lose_connection(work, client_id);
  }
}

// The shard's timers continue with them: at once, or as soon as the shard is unlocked.
void Execution::leave_ties(Shard& shard, uint64_t client_id) {
  engine_.departures().leave_ties(shard.index, client_id);
  shard.next_due_steady_ms.store(0, std::memory_order_release);
}

void Execution::disconnect(Client& client) {
  end_hold();
  size_t names = kMaxUntied;
  // The shards where another thread may be serving a pop of this client at this moment.
  ShardMask waits_at = 0;
  if (client.waiter != nullptr) {
    for (const std::string& key : client.waiter->keys) waits_at |= 1U << KeyRef(key).shard;
  }
  engine_.disconnect(client);
  for (unsigned index = 0; index < kShards; ++index) {
    Shard& shard = engine_.shard(index);
    const bool may_be_served = (waits_at >> index & 1) != 0;
    if (!may_be_served && shard.tied_connections.load(std::memory_order_acquire) == 0) continue;
    if (!try_to_lock(index)) {
      leave_ties(shard, client.id);
      continue;
    }
    begin_unit();
    end_ties(shard, client.id, names);
    serve_waiters();
    end_hold();
  }
}

}  // namespace sluice
