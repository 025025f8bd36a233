#include "engine/execution/engine.h"

#include <algorithm>

#include "engine/access/acl.h"
#include "engine/access/acl_log.h"
#include "engine/adopted/adopted_work.h"
#include "engine/base/ticks.h"
#include "engine/clients/latency_monitor.h"
#include "engine/clients/pubsub.h"
#include "engine/clients/slow_log.h"
#include "engine/clients/tracking.h"
#include "engine/execution/execution.h"
#include "engine/execution/scripts.h"
#include "engine/execution/transaction.h"
#include "engine/keyspace/events.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/replay_expiries.h"
#include "engine/queue/queue.h"
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

DueTimes Engine::next_due() const {
  DueTimes next;
  for (const Shard& shard : shards_) {
    next.wall_ms = std::min(next.wall_ms, shard.next_due_ms.load(std::memory_order_acquire));
    next.queue_ms =
        std::min(next.queue_ms, shard.next_due_queue_ms.load(std::memory_order_acquire));
    next.steady_ms =
        std::min(next.steady_ms, shard.next_due_steady_ms.load(std::memory_order_acquire));
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
  for_each_execution([&](Execution& execution) { hits += execution.keyspace_hits; });
  return hits;
}

uint64_t Engine::keyspace_misses() {
  uint64_t misses = 0;
  for_each_execution([&](Execution& execution) { misses += execution.keyspace_misses; });
  return misses;
}

void Engine::reset_stats() {
  expired_keys = 0;
  for_each_execution([](Execution& execution) { execution.reset_stats(); });
}

// --- Recovery ---

namespace {

class EngineReplay final : public Replay {
 public:
  explicit EngineReplay(Engine& engine) : engine_(engine) {
    unit_.replaying = true;
    unit_.replay_expiries = &expiries_;
    engine_.replaying.store(true);
  }
  ~EngineReplay() override { engine_.replaying.store(false); }

  bool apply(Bytes records, uint64_t count) override {
    while (count != 0) {
      const size_t several = std::min<uint64_t>(count, kAhead);
      if (!decode_several(records, several) || !apply_several(several)) return false;
      count -= several;
    }
    return records.empty();
  }

  // Expiries and timers are not read before.
  void finish(const std::function<void()>& pulse) override {
    for (unsigned shard = 0; shard < kShards; ++shard) {
      for (int i = 0; i < kDatabases; ++i) {
        expiries_.build(shard, i, keyspace_of(shard, i).expiries);
      }
      pulse();
    }
    for (Queue* queue : unit_.dirty_queues) {
      queue->head_dirty = false;
      queue->end_replay(pulse);
      queue->lanes.run_rates(queue->queue_ms);
      if (queue->adopted != nullptr)
        AdoptedWork(engine_.adopted(), kAllShards, unit_).watch(*queue);
      list_queue_timers(engine_.shard(KeyRef(queue->key).shard), *queue);
    }
    unit_.clear();
    set_places();
    engine_.queue_clock.outgrow(unit_.greatest_queue_ms);
  }

 private:
  // The number of records that are decoded ahead, so that waits for memory overlap: the keys and
  // elements of most records are in no cache.
  static constexpr size_t kAhead = 16;

  bool decode_several(Bytes& records, size_t several) {
    for (size_t i = 0; i < several; ++i) {
      Effect& effect = effects_[i];
      if (!decode_effect(records, effect)) return false;
      if (effect.type == EffectType::kFlush) continue;
      if (effect.database >= kDatabases) return false;
      keys_[i] = KeyRef(effect.key);
      Database::prefetch_key(engine_.shard(keys_[i].shard), keys_[i], effect);
    }
    return true;
  }

  bool apply_several(size_t several) {
    for (size_t i = 0; i < several; ++i) {
      elements_[i] = {};
      if (effects_[i].type == EffectType::kFlush || effects_[i].type == EffectType::kMoveKey) {
        continue;
      }
      elements_[i] = Database::element_of(engine_.shard(keys_[i].shard), keys_[i], effects_[i]);
      elements_[i].prefetch_for_change();
    }
    for (size_t i = 0; i < several; ++i) elements_[i].prefetch_node();
    for (size_t i = 0; i < several; ++i) {
      const Effect& effect = effects_[i];
      if (effect.type == EffectType::kFlush) {
        if (!flush(effect.database)) return false;
        continue;
      }
      if (effect.type == EffectType::kTokenFloor) {
        const auto token = static_cast<uint64_t>(effect.number);
        if (engine_.token_floor.load() < token) engine_.token_floor.store(token);
        continue;
      }
      if (effect.type == EffectType::kQueueTime) {
        engine_.queue_clock.outgrow(effect.number);
        continue;
      }
      if (effect.type == EffectType::kDatabasePlaces) {
        if (!take_places(effect.value)) return false;
        continue;
      }
      if (effect.type == EffectType::kMoveKey) {
        if (!Database::apply_move(engine_.shards(), unit_, effect)) return false;
        continue;
      }
      if (is_function_effect(effect.type)) {
        if (!engine_.scripts().replay_library(effect)) return false;
        continue;
      }
      Shard& shard = engine_.shard(keys_[i].shard);
      if (!Database::apply(shard, unit_, keys_[i], effect)) return false;
    }
    if (!unit_.retired.empty()) engine_.reclaimer().take(unit_.retired);
    return true;
  }

  bool flush(uint8_t database) {
    if (database >= kDatabases && database != kAllDatabases) return false;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      for (int i = 0; i < kDatabases; ++i) {
        if (database != kAllDatabases && database != i) continue;
        Database(engine_.shard(shard), i, unit_).clear();
      }
    }
    return true;
  }

  // Until the end of replay the index of every database is its number, as in the records.
  bool take_places(Bytes bytes) {
    DatabasePlaces sorted{};
    if (bytes.size() != sorted.size()) return false;
    std::copy(bytes.begin(), bytes.end(), sorted.begin());
    places_ = sorted;
    std::sort(sorted.begin(), sorted.end());
    return sorted == places_at_first();
  }

  void set_places() NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned index = 0; index < kShards; ++index) {
      Shard& shard = engine_.shard(index);
      shard.places = places_;
      for (int number = 0; number < kDatabases; ++number) {
        const size_t size = Database(shard, number, unit_).size();
        shard.key_counts[static_cast<size_t>(number)].store(size, std::memory_order_relaxed);
      }
    }
  }

  // Replay is the only user of the engine.
  Keyspace& keyspace_of(unsigned shard, int database) NO_THREAD_SAFETY_ANALYSIS {
    return engine_.shard(shard).databases[static_cast<size_t>(database)];
  }

  Engine& engine_;
  Unit unit_;
  ReplayExpiries expiries_;
  DatabasePlaces places_ = places_at_first();
  std::array<Effect, kAhead> effects_;
  std::array<KeyRef, kAhead> keys_;
  std::array<ElementPlace, kAhead> elements_;
};

}  // namespace

std::unique_ptr<Replay> Engine::begin_replay() { return std::make_unique<EngineReplay>(*this); }

}  // namespace sluice
