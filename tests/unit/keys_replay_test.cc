// Whatever changes whole keys or parts of strings is journaled: an engine that replays the units of
// another one, or a fuzzy checkpoint and the units since its beginning, shows the same keys.
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
    switch (random_() % 18) {
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
      case 10:
        return {"COPY", key(), key(), "DB", number(3), "REPLACE"};
      case 11:
        return {"MOVE", key(), number(3)};
      case 12:
        return {"SWAPDB", number(3), number(4)};
      case 13:
        return {"RENAME", key(), key()};
      case 14:
        return {"SORT", key(), "ALPHA", "BY", pick({"*", "nothing"}), "STORE", key()};
      case 15:
        return {"EVAL",
                "local p = redis.call('DUMP', KEYS[1]) if p then redis.call('RESTORE', KEYS[2], "
                "ARGV[1], p, 'REPLACE') end",
                "2",
                key(),
                key(),
                pick({"0", "5000"})};
      case 16:
        return {number(8) == "0" ? "FLUSHDB" : "DBSIZE"};
      default:
        return {"SET", key(), value()};
    }
  }

  const Words names = {"a", "b", "c", "d", "e", "{a}f"};

 private:
  std::mt19937_64 random_;
};

}  // namespace

namespace {

struct Piece {
  std::string records;
  uint64_t count;
};

// What a walk has brought, and the last unit before it began.
struct Checkpoint {
  Lsn begin = 0;
  std::vector<Piece> pieces;
};

Checkpoint run_history(Engine& engine, const MemoryJournal& journal, History& history,
                       uint64_t seed) {
  std::mt19937_64 random(seed);
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  for (int i = 0; i < 200; ++i) run(session, history.next());
  Checkpoint checkpoint{journal.last_lsn(), {}};
  const auto walk = engine.begin_walk();
  bool more = true;
  for (int i = 0; i < 200 || more; ++i) {
    for (uint64_t step = random() % 8; step != 0 && more; --step) {
      ByteBuffer records;
      uint64_t count = 0;
      more = walk->step(records, count);
      checkpoint.pieces.push_back({std::string(records.view()), count});
    }
    run(session, history.next());
  }
  return checkpoint;
}

void recover(Engine& engine, const Checkpoint& checkpoint, const MemoryJournal& journal) {
  const auto replay = engine.begin_replay();
  for (const Piece& piece : checkpoint.pieces) REQUIRE(replay->apply(piece.records, piece.count));
  for (Lsn lsn = checkpoint.begin + 1; lsn <= journal.last_lsn(); ++lsn) {
    const MemoryJournal::Unit unit = journal.unit(lsn);
    REQUIRE(replay->apply(unit.records, unit.count));
  }
  replay->finish();
}

}  // namespace

TEST_CASE("what changes keys is there again after replay") {
  for (const uint64_t seed : testing::seeds(40, 17)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    QuietServer server;
    MemoryJournal journal;
    Engine engine(server, 7);
    engine.attach_journal(&journal);
    History history(seed);
    const Checkpoint checkpoint = run_history(engine, journal, history, seed);
    const auto keys = all_keys(engine, history.names);
    Engine from_journal(server, 7);
    recover(from_journal, {}, journal);
    CHECK(all_keys(from_journal, history.names) == keys);
    Engine from_checkpoint(server, 7);
    recover(from_checkpoint, checkpoint, journal);
    CHECK(all_keys(from_checkpoint, history.names) == keys);
  }
}

TEST_CASE("places of databases that are none are refused") {
  QuietServer server;
  Engine engine(server, 7);
  const auto replay = engine.begin_replay();
  std::string places;
  for (int i = 0; i < kDatabases; ++i) places += static_cast<char>(i);
  const auto apply = [&](Bytes bytes) {
    ByteBuffer records;
    EffectEncoder(records).database_places(bytes);
    return replay->apply(records.view(), 1);
  };
  CHECK(apply(places));
  CHECK_FALSE(apply(Bytes(places).substr(1)));
  CHECK_FALSE(apply(places + "a"));
  places[3] = 4;
  CHECK_FALSE(apply(places));
  places[4] = 3;
  CHECK(apply(places));
  replay->finish();
  Execution execution(engine);
  EngineSession session(engine, execution);
  run(session, {"SELECT", "3"});
  run(session, {"SET", "a", "1"});
  CHECK(engine.key_count(3) == 1);
}

}  // namespace sluice::test
