// Shared by the fuzzers of records: an engine that applies them, and the inputs to skip.
#pragma once

#include "engine/commands/complete_engine.h"
#include "engine/execution/engine.h"
#include "engine/unit/effects.h"
#include "tests/support/quiet_server.h"

namespace sluice::test {

// Returns false for valid records that need more memory than a fuzzer should use: the sizes of
// strings and lists are numbers in a record.
inline bool small_enough(Bytes records) {
  constexpr uint64_t kMaxSize = 1 << 14;
  Effect effect;
  while (!records.empty() && decode_effect(records, effect)) {
    if (effect.size > kMaxSize) return false;
  }
  return true;
}

inline bool moves_keys(Bytes records) {
  Effect effect;
  while (!records.empty() && decode_effect(records, effect)) {
    if (effect.type == EffectType::kMoveKey) return true;
  }
  return false;
}

inline uint64_t count_records(Bytes records) {
  uint64_t count = 0;
  Effect effect;
  while (!records.empty() && decode_effect(records, effect)) ++count;
  return count;
}

// Walks the engine like a checkpoint; returns all records.
inline ByteBuffer walk_all(Engine& engine, uint64_t& count) {
  ByteBuffer records;
  count = 0;
  const std::unique_ptr<CheckpointWalk> walk = engine.begin_walk();
  while (walk->step(records, count)) {
  }
  return records;
}

// Checks that another engine can load this engine's walk.
inline void check_walk(Engine& engine) {
  uint64_t count = 0;
  const ByteBuffer records = walk_all(engine, count);
  QuietServer port;
  CompleteEngine second(port, 7);
  const std::unique_ptr<Replay> replay = second.begin_replay();
  CHECK(replay->apply(records.view(), count));
  replay->finish();
}

}  // namespace sluice::test
