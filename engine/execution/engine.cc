#include "engine/execution/engine.h"

#include <algorithm>
#include <limits>

#include "engine/access/acl.h"
#include "engine/access/acl_log.h"
#include "engine/base/ticks.h"
#include "engine/clients/latency_monitor.h"
#include "engine/clients/pubsub.h"
#include "engine/clients/slow_log.h"
#include "engine/clients/tracking.h"
#include "engine/execution/execution.h"
#include "engine/execution/transaction.h"
#include "engine/keyspace/events.h"
#include "engine/reply/statistics.h"

namespace sluice {

Engine::Engine(ServerPort& server, uint64_t hash_seed, MakeScripts make_scripts)
    : server_(server),
      acl_(std::make_unique<Acl>()),
      acl_log_(std::make_unique<AclLog>()),
      adopted_(shards_, *acl_),
      pubsub_(std::make_unique<PubSub>()),
      scripts_(make_scripts(*this)),
      slow_log_(std::make_unique<SlowLog>()),
      monitors_(std::make_unique<Monitors>()),
      latency_monitor_(std::make_unique<LatencyMonitor>()),
      tracking_(std::make_unique<Tracking>()) {
  set_hash_seed(hash_seed);
  for (unsigned i = 0; i < kShards; ++i) {
    shards_[i].index = i;
    shards_[i].token_floor = &token_floor;
    shards_[i].generated_ids = &generated_ids;
  }
  set_slow_log_threshold_us(10000);
  set_latency_tracking(true);
}

Engine::~Engine() = default;

void Engine::spill_events_to(std::shared_ptr<EventSpill> spill) {
  event_spill_ = std::move(spill);
  for (Shard& shard : shards_) shard.event_spill = event_spill_.get();
}

namespace {

uint64_t ticks_of_us(int64_t us) {
  return static_cast<uint64_t>(static_cast<double>(us) * ticks_per_microsecond());
}

}  // namespace

void Engine::set_slow_log_threshold_us(int64_t threshold_us) {
  slow_log_ticks = threshold_us < 0 ? UINT64_MAX : ticks_of_us(threshold_us);
  slow_ticks = std::min(slow_log_ticks.load(), latency_event_ticks.load());
}

void Engine::set_latency_threshold_ms(int64_t threshold_ms) {
  constexpr int64_t kMostMs = int64_t{1} << 40;
  latency_event_ticks =
      threshold_ms == 0 ? UINT64_MAX : ticks_of_us(std::min(threshold_ms, kMostMs) * 1000);
  slow_ticks = std::min(slow_log_ticks.load(), latency_event_ticks.load());
}

void Engine::set_latency_tracking(bool on) {
  const double ns_per_tick = 1000 / ticks_per_microsecond();
  const auto scale = static_cast<uint64_t>(ns_per_tick * (1U << CommandStat::kScaleBits));
  latency_scale = on ? std::max<uint64_t>(scale, 1) : 0;
}

void Engine::set_notified_events(uint32_t events) {
  const bool published = (events & (kEventKeyspace | kEventKeyevent)) != 0;
  const uint32_t wanted = published ? events : 0;
  uint32_t present = observing.load(std::memory_order_relaxed);
  while (!observing.compare_exchange_weak(present, wanted | (present & kObserveTracking),
                                          std::memory_order_relaxed)) {
  }
}

void Engine::observe_tracking() {
  // If two clients change at once, the flag may be wrong for a moment, but not permanently: each
  // checks after it has entered or left the table.
  if (tracking_->clients() != 0) {
    observing.fetch_or(kObserveTracking, std::memory_order_relaxed);
  } else {
    observing.fetch_and(~kObserveTracking, std::memory_order_relaxed);
    if (tracking_->clients() != 0) observing.fetch_or(kObserveTracking, std::memory_order_relaxed);
  }
}

void Engine::stop_lease_clock(int64_t steady_ms) {
  int64_t begin_ms = leases_begin_ms.load();
  if (begin_ms < 0 || begin_ms == std::numeric_limits<int64_t>::max()) return;
  // A takeover at this moment sets it.
  leases_begin_ms.compare_exchange_strong(begin_ms, -1 - lease_clock_ms(steady_ms));
}

bool Engine::resume_lease_clock(int64_t steady_ms) {
  int64_t begin_ms = leases_begin_ms.load();
  const int64_t stood_at_ms = -1 - begin_ms;
  return begin_ms < 0 && leases_begin_ms.compare_exchange_strong(
                             begin_ms, std::max<int64_t>(0, steady_ms - stood_at_ms));
}

DueTimes Engine::next_due() const {
  DueTimes next;
  const bool acts = !following.load(std::memory_order_relaxed);
  for (const Shard& shard : shards_) {
    if (!acts) break;
    next.wall_ms = std::min(next.wall_ms, shard.next_due_ms.load(std::memory_order_acquire));
    next.queue_ms =
        std::min(next.queue_ms, shard.next_due_queue_ms.load(std::memory_order_acquire));
    next.steady_ms =
        std::min(next.steady_ms, shard.next_due_steady_ms.load(std::memory_order_acquire));
  }
  const int64_t begin_ms = leases_begin_ms.load();
  if (begin_ms < 0) {
    next.steady_ms = next.steady_ms <= -1 - begin_ms ? 0 : kNeverMs;
  } else if (next.steady_ms != kNeverMs) {
    next.steady_ms += begin_ms;
  }
  if (tracking_->must_sweep() || owing_shards.load(std::memory_order_acquire) != 0 ||
      departures_.has_late()) {
    next.steady_ms = 0;
  }
  // Nothing runs before the end of a pause, so its end is the next due time.
  if (const int64_t pause_end_ms = pause.end_ms(); pause_end_ms != 0 && !next.nothing()) {
    return {kNeverMs, kNeverMs, pause_end_ms};
  }
  return next;
}

uint64_t Engine::key_count(int database) const {
  uint64_t count = 0;
  for (const Shard& shard : shards_) {
    count += shard.key_counts[static_cast<size_t>(database)].load(std::memory_order_relaxed);
  }
  return count;
}

// --- Waiters and connections ---

bool Engine::lock_patiently(Shard& shard) {
  if (shard.mutex.try_lock()) return true;
  while (!shard.mutex.try_lock_for_ms(kLockPatienceMs)) {
    if (script_busy.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

void Engine::end_waiter(Client& client) {
  std::shared_ptr<Waiter> waiter = std::move(client.waiter);
  client.waiter = nullptr;
  std::vector<std::string> left;
  for (const std::string& key : waiter->keys) {
    Shard& shard = shards_[KeyRef(key).shard];
    if (!lock_patiently(shard)) {
      left.push_back(key);
      continue;
    }
    shard.waiters.remove(key, waiter.get());
    shard.mutex.unlock();
  }
  if (!left.empty()) departures_.leave(std::move(waiter), std::move(left));
}

bool Engine::cancel_waiter(Client& client) {
  // The claim alone decides: serving the waiter needs the same exchange.
  if (!client.waiter->give_up()) return false;
  end_waiter(client);
  return true;
}

void Engine::disconnect(Client& client) {
  if (client.waiter != nullptr && !cancel_waiter(client)) end_waiter(client);
  unwatch_all(*this, client);
  pubsub_->forget(client);
  if (client.tracking != nullptr) {
    tracking_->disable(client);
    observe_tracking();
  }
  if (client.monitoring) monitors_->remove(client.id);
  client.monitoring = false;
}

// --- Executions ---

void Engine::add_execution(Execution* execution) {
  MutexLock lock(executions_mutex_);
  executions_.push_back(execution);
}

void Engine::remove_execution(Execution* execution) {
  MutexLock lock(executions_mutex_);
  std::erase(executions_, execution);
}

void Engine::for_each_execution(const std::function<void(Execution&)>& visit) {
  MutexLock lock(executions_mutex_);
  for (Execution* execution : executions_) visit(*execution);
}

uint64_t Engine::keyspace_hits() {
  uint64_t hits = 0;
  for_each_execution([&](Execution& execution) { hits += execution.statistics.keyspace_hits; });
  return hits;
}

uint64_t Engine::keyspace_misses() {
  uint64_t misses = 0;
  for_each_execution([&](Execution& execution) { misses += execution.statistics.keyspace_misses; });
  return misses;
}

void Engine::reset_stats() {
  expired_keys = 0;
  for_each_execution([](Execution& execution) { execution.statistics.reset(); });
}

}  // namespace sluice
