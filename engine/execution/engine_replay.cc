// Recovery: the records of a checkpoint and of the log fill an engine that nothing else uses.
#include "engine/adopted/adopted_work.h"
#include "engine/execution/effect_applier.h"
#include "engine/execution/engine.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/keyspace/replay_expiries.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

class EngineReplay final : public Replay {
 public:
  explicit EngineReplay(Engine& engine) : engine_(engine), applier_(engine, unit_) {
    unit_.told = true;
    unit_.replay_expiries = &expiries_;
    engine_.replaying.store(true);
  }
  ~EngineReplay() override { engine_.replaying.store(false); }

  bool apply(Bytes records, uint64_t count) override { return applier_.apply(records, count); }

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
    applier_.set_places();
    engine_.queue_clock.outgrow(unit_.greatest_queue_ms);
  }

 private:
  // Replay is the only user of the engine.
  Keyspace& keyspace_of(unsigned shard, int database) NO_THREAD_SAFETY_ANALYSIS {
    return engine_.shard(shard).databases[static_cast<size_t>(database)];
  }

  Engine& engine_;
  Unit unit_;
  ReplayExpiries expiries_;
  EffectApplier applier_;
};

}  // namespace

std::unique_ptr<Replay> Engine::begin_replay() { return std::make_unique<EngineReplay>(*this); }

}  // namespace sluice
