// Site: an engine with a journal in memory, one session and clocks, and what recovery makes of
// both. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/queue/queue.h"
#include "tests/support/queue_server.h"
#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

using Words = std::vector<std::string>;

// A part of a checkpoint.
struct Piece {
  std::string records;
  uint64_t count;
};

class Site {
 public:
  Site() : engine(std::make_unique<CompleteEngine>(port_, 7)) {
    engine->attach_journal(&journal);
    execution = std::make_unique<Execution>(*engine);
    session = std::make_unique<EngineSession>(*engine, *execution);
    session->client.port = std::make_shared<CollectingPort>();
    pass(0);
  }

  std::string run(const Words& words) {
    const std::vector<Bytes> args(words.begin(), words.end());
    return session->run(args);
  }
  // The lease of the first job of a pop; 0: none.
  uint64_t pop(const std::string& queue, const Words& options = {}) {
    Words words{"Q.POP", "1", queue};
    words.insert(words.end(), options.begin(), options.end());
    const RespValue jobs = resp_value(run(words));
    if (jobs.items.empty()) return 0;
    return static_cast<uint64_t>(jobs.items[0].number("lease"));
  }
  void pass(int64_t ms) {
    now_ms += ms;
    steady_ms += ms;
    execution->set_times(Times::agreeing(now_ms, steady_ms));
  }
  // Returns the number of lock holds.
  size_t run_timers() {
    size_t holds = 1;
    while (execution->run_timers(Times::agreeing(now_ms, steady_ms))) ++holds;
    execution->finish();
    return holds;
  }
  Queue* queue(const std::string& name) { return find(*engine, name); }
  static Queue* find(Engine& engine, const std::string& name,
                     size_t database = 0) NO_THREAD_SAFETY_ANALYSIS {
    const KeyRef key(name);
    Entry* entry = engine.shard(key.shard).databases[database].entries.find(key.key, key.hash);
    return entry == nullptr || entry->type() != Type::kQueue ? nullptr : &entry->object<Queue>();
  }
  // The engine recovered from a checkpoint and the units after `begin`.
  std::unique_ptr<Engine> recover(const std::vector<Piece>& checkpoint, Lsn begin) {
    auto recovered = std::make_unique<CompleteEngine>(port_, 7);
    const auto replay = recovered->begin_replay();
    for (const Piece& piece : checkpoint) REQUIRE(replay->apply(piece.records, piece.count));
    for (Lsn lsn = begin + 1; lsn <= journal.last_lsn(); ++lsn) {
      const MemoryJournal::Unit unit = journal.unit(lsn);
      REQUIRE(replay->apply(unit.records, unit.count));
    }
    replay->finish();
    return recovered;
  }

  MemoryJournal journal;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Execution> execution;
  std::unique_ptr<EngineSession> session;
  int64_t now_ms = 1'700'000'000'000;
  int64_t steady_ms = 0;

 private:
  QuietServer port_;
};

}  // namespace sluice::test
