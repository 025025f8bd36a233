// Whatever changes whole keys or parts of strings is journaled: an engine that replays the units of
// another one shows the same keys.
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/execution.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/unit/seeds.h"

#undef CHECK
#include <doctest/doctest.h>

namespace sluice::test {

namespace {

constexpr int64_t kNowMs = 1'700'000'000'000;
using Words = std::vector<std::string>;

std::string run(EngineSession& session, const Words& words) {
  return session.run(std::vector<Bytes>(words.begin(), words.end()));
}

// Every key of every database with its type, its end and its value, as replies.
std::map<std::string, std::string> all_keys(Engine& engine, const Words& names) {
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  std::map<std::string, std::string> shown;
  for (int database = 0; database < kDatabases; ++database) {
    run(session, {"SELECT", std::to_string(database)});
    shown[std::to_string(database)] = run(session, {"DBSIZE"});
    for (const std::string& name : names) {
      std::string& text = shown[std::to_string(database) + " " + name];
      for (const Words& question : std::vector<Words>{{"TYPE", name},
                                                      {"PEXPIRETIME", name},
                                                      {"GET", name},
                                                      {"LRANGE", name, "0", "-1"},
                                                      {"ZRANGE", name, "0", "-1", "WITHSCORES"},
                                                      {"SCARD", name},
                                                      {"SMISMEMBER", name, "1", "2", "a", "b"},
                                                      {"HGETALL", name}}) {
        const std::string reply = run(session, question);
        if (reply[0] != '-') text += reply;
      }
    }
  }
  return shown;
}

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {}

  std::string key() { return names[random_() % names.size()]; }
  std::string number(unsigned limit) { return std::to_string(random_() % limit); }
  std::string value() { return pick({"a", "b", "1", "2", "", "a longer text"}); }
  std::string pick(const Words& choices) { return choices[random_() % choices.size()]; }

  Words next() {
    switch (random_() % 12) {
      case 0:
        return {"SET", key(), value(), "PX", std::to_string(1000 + random_() % 1000)};
      case 1:
        return {"RPUSH", key(), value(), value()};
      case 2:
        return {"SADD", key(), value(), value()};
      case 3:
        return {"ZADD", key(), number(5), value(), number(5), value()};
      case 4:
        return {"HSET", key(), value(), value()};
      case 5:
        return {"DEL", key()};
      case 6:
        return {"SELECT", number(3)};
      case 7:
        return {"SETBIT", key(), number(100), number(2)};
      case 8:
        return {"BITOP", pick({"AND", "OR", "XOR"}), key(), key(), key()};
      case 9:
        return {"BITFIELD", key(), "OVERFLOW", "FAIL", "INCRBY", "u" + number(9), number(200), "3"};
      default:
        return {"SET", key(), value()};
    }
  }

  const Words names = {"a", "b", "c", "d", "e", "{a}f"};

 private:
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("what changes keys is there again after replay") {
  for (const uint64_t seed : testing::seeds(20, 17)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    QuietServer server;
    MemoryJournal journal;
    Engine engine(server, 7);
    engine.attach_journal(&journal);
    History history(seed);
    {
      Execution execution(engine);
      execution.set_now_ms(kNowMs);
      EngineSession session(engine, execution);
      for (int i = 0; i < 400; ++i) run(session, history.next());
    }
    Engine recovered(server, 7);
    const auto replay = recovered.begin_replay();
    for (Lsn lsn = 1; lsn <= journal.last_lsn(); ++lsn) {
      const MemoryJournal::Unit unit = journal.unit(lsn);
      REQUIRE(replay->apply(unit.records, unit.count));
    }
    replay->finish();
    CHECK(all_keys(recovered, history.names) == all_keys(engine, history.names));
  }
}

}  // namespace sluice::test
