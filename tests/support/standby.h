// Standby: an engine that follows another one by the units of its MemoryJournal. Used by one
// thread. Include it before doctest.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/follower.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/queue_dump.h"
#include "tests/support/quiet_server.h"

namespace sluice::test {

class Standby {
 public:
  // Replays the units so far, and follows from there. The journal must outlive it.
  Standby(ServerPort& server, const MemoryJournal& journal)
      : journal_(journal), engine(server, 7), execution(engine), session(engine, execution) {
    const auto replay = engine.begin_replay();
    for (; applied_ < journal.last_lsn(); ++applied_) {
      const MemoryJournal::Unit unit = journal.unit(applied_ + 1);
      if (!replay->apply(unit.records, unit.count)) throw std::runtime_error("a bad unit");
    }
    replay->finish();
    engine.options().debug_access = DebugAccess::kEverybody;
    follower = std::make_unique<Follower>(engine);
  }

  // Applies the units since then.
  void follow(const Times& now) {
    execution.set_times(now);
    while (applied_ < journal_.last_lsn()) {
      const MemoryJournal::Unit unit = journal_.unit(++applied_);
      const Status status = follower->apply(applied_, unit.records, unit.count, now);
      if (!status.ok()) throw std::runtime_error(status.message());
    }
  }
  void promote(MemoryJournal& journal, const Times& now) {
    follow(now);
    engine.attach_journal(&journal);
    follower->promote(now);
    execution.set_times(now);
  }

 private:
  const MemoryJournal& journal_;
  Lsn applied_ = 0;

 public:
  CompleteEngine engine;
  Execution execution;
  EngineSession session;
  std::unique_ptr<Follower> follower;
};

// The digest of the whole state. REQUIRES: the session may use DEBUG.
inline std::string state_digest(EngineSession& session) {
  return session.run({"DEBUG", "DIGEST-STATE"});
}

// The complete state of all queues, by dump_queue(), and whether their invariants hold.
inline std::vector<std::string> dump_queues(Engine& engine,
                                            int64_t now_ms) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::string> out;
  for (Shard& shard : engine.shards()) {
    for (int index = 0; index < kDatabases; ++index) {
      shard.databases[static_cast<size_t>(index)].entries.for_each([&](Entry* entry) {
        if (entry->type() != Type::kQueue) return;
        Queue& queue = entry->object<Queue>();
        queue.check();
        const std::string name = std::to_string(index) + " " + queue.key + " ";
        for (const std::string& line : dump_queue(queue, now_ms)) out.push_back(name + line);
      });
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace sluice::test
