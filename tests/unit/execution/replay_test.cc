// Where replay and the checkpoint's walk differ from the order of commands: deferred expiries,
// records decoded ahead, sorted sets walked by score.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/replay_expiries.h"
#include "engine/unit/effects.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int64_t kNowMs = 1'700'000'000'000;

struct Piece {
  std::string records;
  uint64_t count;
};

// Runs random commands on keys with an expiry, each batch as one unit in `journal`.
void change_expiries(Engine& engine, uint64_t seed, int commands) {
  std::mt19937_64 random(seed);
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  for (int i = 0; i < commands; ++i) {
    const std::string key = "key" + std::to_string(random() % 400);
    const std::string time = std::to_string(kNowMs + 1000 + static_cast<int64_t>(random() % 50));
    switch (random() % 12) {
      case 0:
        session.run({"DEL", key});
        break;
      case 1:
        session.run({"PERSIST", key});
        break;
      case 2:
        session.run({"SET", key, "plain"});
        break;
      case 3:
        session.run({"DEL", key});
        session.run({"SADD", key, "member"});
        break;
      case 4:
        session.run({"PEXPIREAT", key, time});
        break;
      case 5:
        if (random() % 200 == 0) session.run({"FLUSHALL"});
        break;
      default:
        session.run({"SET", key, time, "PXAT", time});
    }
  }
}

// The remaining keys at each millisecond from now on.
std::vector<std::string> expire_all(Engine& engine) {
  std::vector<std::string> left;
  Execution execution(engine);
  EngineSession session(engine, execution);
  for (int64_t ms = kNowMs + 990; ms < kNowMs + 1060; ++ms) {
    while (execution.run_timers(Times::agreeing(ms))) {
    }
    execution.finish();
    left.push_back(session.run({"DBSIZE"}));
  }
  return left;
}

}  // namespace

TEST_CASE("expiries that were put off are those of a multiset") {
  for (const uint64_t seed : testing::seeds(5, 31)) {
    testing::use_seed(seed);
    std::mt19937_64 random(seed);
    using Key = std::pair<uint64_t, uint64_t>;
    std::multiset<Key> model;
    OrderedIndex<> index;
    for (uint64_t i = 0; i < 500; ++i) {
      index.insert(1 + i % 100, i % 3);
      model.insert({1 + i % 100, i % 3});
    }
    ReplayExpiries expiries;
    for (int i = 0; i < 30000; ++i) {
      if (random() % 20000 == 0) {
        index.clear();
        model.clear();
        expiries.clear(3, 1);
      }
      const auto at = model.lower_bound({1 + random() % 100, random() % 3});
      if (random() % 20 < (i < 15000 ? 9u : 11u) && at != model.end()) {
        expiries.remove(3, 1, static_cast<int64_t>(at->first), at->second);
        model.erase(at);
      } else {
        const Key key{1 + random() % 100, random() % 3};
        expiries.add(3, 1, static_cast<int64_t>(key.first), key.second);
        model.insert(key);
      }
    }
    INFO("seed ", seed);
    OrderedIndex<> other;
    expiries.build(2, 1, other);
    CHECK(other.empty());
    expiries.build(3, 1, index);
    index.check();
    REQUIRE(index.size() == model.size());
    auto at = index.begin();
    for (const Key& key : model) {
      CHECK(Key(at.major(), at.minor()) == key);
      at.next();
    }
  }
}

TEST_CASE("expiries are sorted however their times are spread") {
  std::mt19937_64 random(9);
  // Removed entries are only found if both lists are sorted.
  const auto check = [](const std::vector<uint64_t>& times) {
    ReplayExpiries expiries;
    std::multiset<uint64_t> left;
    for (uint64_t i = 0; i < times.size(); ++i) {
      const uint64_t hash = i * 0x9e3779b97f4a7c15;
      expiries.add(0, 0, static_cast<int64_t>(times[i]), hash);
      if (i % 2 == 0) expiries.remove(0, 0, static_cast<int64_t>(times[i]), hash);
      if (i % 2 != 0) left.insert(times[i]);
    }
    OrderedIndex<> index;
    expiries.build(0, 0, index);
    index.check();
    REQUIRE(index.size() == left.size());
    auto at = index.begin();
    for (const uint64_t time : left) {
      CHECK(at.major() == time);
      at.next();
    }
  };
  for (const size_t count : {1, 255, 256, 5000}) {
    std::vector<uint64_t> same(count, 77);
    std::vector<uint64_t> spread;
    std::vector<uint64_t> lonely(count, 1000);
    for (size_t i = 0; i < count; ++i) spread.push_back(random() >> 1);
    lonely[count / 2] = INT64_MAX;
    check(same);
    check(spread);
    check(lonely);
    std::sort(spread.begin(), spread.end());
    check(spread);
  }
}

TEST_CASE("after replay keys expire when they would have without it") {
  for (const uint64_t seed : testing::seeds(4, 77)) {
    testing::use_seed(seed);
    QuietServer server;
    MemoryJournal journal;
    CompleteEngine engine(server, 7);
    engine.attach_journal(&journal);
    change_expiries(engine, seed, 6000);
    CompleteEngine recovered(server, 7);
    const auto replay = recovered.begin_replay();
    for (Lsn lsn = 1; lsn <= journal.last_lsn(); ++lsn) {
      const MemoryJournal::Unit unit = journal.unit(lsn);
      REQUIRE(replay->apply(unit.records, unit.count));
    }
    replay->finish();
    INFO("seed ", seed);
    const std::vector<std::string> left = expire_all(engine);
    CHECK(left.front() != left.back());
    CHECK(expire_all(recovered) == left);
  }
}

TEST_CASE("records that are cut short or too few are refused, wherever they stand") {
  ByteBuffer records;
  for (int i = 0; i < 40; ++i) EffectEncoder(records).set_add(0, "set", std::to_string(i));
  QuietServer server;
  CompleteEngine engine(server, 7);
  const auto replay = engine.begin_replay();
  CHECK(replay->apply(records.view(), 40));
  CHECK_FALSE(replay->apply(records.view(), 39));
  CHECK_FALSE(replay->apply(records.view(), 41));
  for (size_t size = 1; size < records.size(); size += 3) {
    CHECK_FALSE(replay->apply(records.view().substr(0, size), 40));
  }
  std::string no_database(records.view());
  no_database[1] = kDatabases;
  CHECK_FALSE(replay->apply(no_database, 40));
}

TEST_CASE("a walk meets every member of a large sorted set that keeps its score, in order") {
  for (const uint64_t seed : testing::seeds(4, 5)) {
    testing::use_seed(seed);
    std::mt19937_64 random(seed);
    QuietServer server;
    CompleteEngine engine(server, 7);
    Execution execution(engine);
    execution.set_now_ms(kNowMs);
    EngineSession session(engine, execution);
    std::map<std::string, double> steady;
    for (int i = 0; i < 3000; ++i) {
      // Many have the same score and the same first eight bytes.
      const std::string member = "member-with-a-name-" + std::to_string(i);
      const std::string score = std::to_string(static_cast<int>(random() % 7) - 3);
      session.run({"ZADD", "sorted", score, member});
      if (i % 2 == 0) steady[member] = std::stod(score);
    }
    const auto walk = engine.begin_walk();
    std::map<std::string, double> met;
    double last_score = -10;
    bool more = true;
    while (more) {
      ByteBuffer records;
      uint64_t count = 0;
      more = walk->step(records, count);
      Bytes rest = records.view();
      Effect effect;
      for (; count != 0; --count) {
        REQUIRE(decode_effect(rest, effect));
        REQUIRE(effect.type == EffectType::kSortedPut);
        CHECK(effect.score >= last_score);
        last_score = effect.score;
        if (steady.count(std::string(effect.field)) != 0) {
          CHECK(met.emplace(effect.field, effect.score).second);
        }
      }
      for (int i = 0; i < 60; ++i) {
        const std::string odd = "member-with-a-name-" + std::to_string(random() % 1500 * 2 + 1);
        if (random() % 2 == 0) {
          session.run({"ZREM", "sorted", odd});
        } else {
          session.run({"ZADD", "sorted", std::to_string(random() % 9), odd});
        }
      }
    }
    INFO("seed ", seed);
    CHECK(met == steady);
  }
}

}  // namespace sluice::test
