// HyperLogLogs: both encodings compared with plain registers, damaged bytes, and the journal
// records of PFADD and PFCOUNT.
#include <algorithm>
#include <random>
#include <string>

#include "engine/commands/complete_engine.h"
#include "engine/keyspace/database.h"
#include "engine/structures/hyperloglog.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using hyperloglog::Change;
using hyperloglog::Registers;

constexpr int64_t kNowMs = 1'700'000'000'000;

Registers registers_of(const std::string& value) {
  Registers registers{};
  CHECK(hyperloglog::merge(value, registers));
  return registers;
}

// An engine whose journal can be read, and one connection.
struct Server {
  QuietServer port;
  MemoryJournal journal;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};

  Server() {
    engine.attach_journal(&journal);
    execution.set_now_ms(kNowMs);
  }
  // The records of a command, which is a unit of its own; empty if it wrote none.
  std::string records_of(std::initializer_list<Bytes> command) {
    const Lsn before = journal.last_lsn();
    session.run(command);
    return journal.last_lsn() == before ? std::string() : journal.unit(before + 1).records;
  }
  std::string get(Bytes key) { return session.run({"GET", key}); }
};

}  // namespace

TEST_CASE("an empty HyperLogLog is Redis's, and knows that it counts nothing") {
  const std::string empty = hyperloglog::make_empty();
  CHECK_EQ(empty, std::string("HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18));
  CHECK(hyperloglog::is_valid(empty));
  CHECK_EQ(hyperloglog::last_count(empty), 0);
  CHECK_EQ(hyperloglog::count(empty), 0);
  CHECK_EQ(hyperloglog::describe_runs(empty), "Z:16384");
}

TEST_CASE("registers are the greatest ranks, whatever the encoding and its bound") {
  const uint64_t seed = testing::seeds(1, 17)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  for (const size_t max_bytes : {size_t{0}, size_t{60}, size_t{3000}, size_t{100'000}}) {
    std::string value = hyperloglog::make_empty();
    Registers expected{};
    for (int i = 0; i < 3000; ++i) {
      // Neighbours and equal ranks are frequent, so that runs are joined and split.
      const auto index = static_cast<uint32_t>(random() % (i % 3 == 0 ? 16384 : 200));
      const auto rank = static_cast<uint8_t>(1 + random() % (i % 500 == 0 ? 51 : 4));
      const Change change = hyperloglog::raise_register(value, {index, rank}, max_bytes);
      CHECK_EQ(change == Change::kChanged, rank > expected[index]);
      CHECK(change != Change::kDamaged);
      expected[index] = std::max(expected[index], rank);
      CHECK(hyperloglog::is_valid(value));
    }
    CHECK(registers_of(value) == expected);
    CHECK_FALSE(hyperloglog::last_count(value).has_value());
    CHECK_EQ(hyperloglog::count(value), hyperloglog::count(expected));
    CHECK(hyperloglog::make_dense(value));
    CHECK_EQ(value.size(), hyperloglog::kDenseBytes);
    CHECK(registers_of(value) == expected);
  }
}

TEST_CASE("what clients made of a HyperLogLog is damaged or not, and never read beyond its end") {
  const uint64_t seed = testing::seeds(1, 17)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string value = hyperloglog::make_empty();
    for (int i = 0; i < 20; ++i) {
      hyperloglog::raise_register(value, hyperloglog::place_of(std::to_string(random())), 3000);
    }
    value.resize(hyperloglog::kHeaderBytes + random() % (value.size() - 15));
    for (int i = 0; i < 3 && value.size() > 16; ++i) {
      value[16 + random() % (value.size() - 16)] = static_cast<char>(random());
    }
    const std::string before = value;
    Registers registers{};
    const bool whole = hyperloglog::merge(value, registers);
    CHECK_EQ(hyperloglog::count(value).has_value(), whole);
    std::string dense = value;
    CHECK_EQ(hyperloglog::make_dense(dense), whole);
    if (!whole) CHECK_EQ(dense, before);
    for (int i = 0; i < 50; ++i) {
      hyperloglog::raise_register(value, hyperloglog::place_of(std::to_string(i)), 3000);
    }
    hyperloglog::describe_runs(value);
  }
}

TEST_CASE("the self test finds nothing") { CHECK_EQ(hyperloglog::self_test(), ""); }

TEST_CASE("the journal holds of PFADD on a dense value what has changed, and nothing else") {
  Server server;
  server.session.run({"PFADD", "h", "a"});
  CHECK_EQ(server.session.run({"PFDEBUG", "TODENSE", "h"}), ":1\r\n");
  CHECK_EQ(server.get("h").size(), hyperloglog::kDenseBytes + 10);
  size_t added = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string records = server.records_of({"PFADD", "h", std::to_string(i)});
    if (records.empty()) continue;
    ++added;
    CHECK(records.size() < 60);
  }
  CHECK(added > 150);
  CHECK_EQ(server.records_of({"PFADD", "h", "1", "2", "3"}), "");
  // A count is journaled once.
  const std::string counted = server.records_of({"PFCOUNT", "h"});
  CHECK_FALSE(counted.empty());
  CHECK(counted.size() < 60);
  CHECK_EQ(server.records_of({"PFCOUNT", "h"}), "");
  CHECK_EQ(server.records_of({"PFCOUNT", "h", "nosuch"}), "");
}

TEST_CASE("the journal holds of PFADD on a sparse value what is behind the change") {
  Server server;
  for (int i = 0; i < 300; ++i) server.session.run({"PFADD", "h", std::to_string(i)});
  const size_t size = server.get("h").size();
  size_t written = 0;
  size_t added = 0;
  for (int i = 300; i < 400; ++i) {
    const std::string records = server.records_of({"PFADD", "h", std::to_string(i)});
    written += records.size();
    added += records.empty() ? 0 : 1;
  }
  CHECK(written < added * size);
}

TEST_CASE("an engine that replays the journal has the same HyperLogLogs") {
  Server server;
  const uint64_t seed = testing::seeds(1, 17)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 600; ++i) {
    const std::string key = "h" + std::to_string(random() % 3);
    const std::string other = "h" + std::to_string(random() % 3);
    const std::string element = std::to_string(random() % 3000);
    switch (random() % 12) {
      case 0:
        server.session.run({"PFCOUNT", key});
        break;
      case 1:
        server.session.run({"PFMERGE", key, other});
        break;
      case 2:
        if (random() % 10 == 0) server.session.run({"PFDEBUG", "TODENSE", key});
        break;
      default:
        server.session.run({"PFADD", key, element, element + "x", element + "y"});
    }
  }
  QuietServer port;
  CompleteEngine replayed{port, 7};
  const auto replay = replayed.begin_replay();
  for (Lsn lsn = 1; lsn <= server.journal.last_lsn(); ++lsn) {
    const MemoryJournal::Unit unit = server.journal.unit(lsn);
    REQUIRE(replay->apply(unit.records, unit.count));
  }
  replay->finish();
  Execution execution(replayed);
  execution.set_now_ms(kNowMs);
  EngineSession session(replayed, execution);
  for (const Bytes key : {"h0", "h1", "h2"}) CHECK_EQ(session.run({"GET", key}), server.get(key));
}

}  // namespace sluice::test
