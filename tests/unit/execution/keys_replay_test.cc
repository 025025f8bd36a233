// All changes of whole keys and of parts of strings are journaled: an engine that replays another
// one's units, or a fuzzy checkpoint and the units since its beginning, has the same keys.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "tests/support/engine_session.h"
#include "tests/support/key_history.h"
#include "tests/support/large_moves.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

struct Piece {
  std::string records;
  uint64_t count;
};

// The result of a walk, and the last unit before it began.
struct Checkpoint {
  Lsn begin = 0;
  std::vector<Piece> pieces;
};

// Whether a walk restarts after a unit that moved keys by name alone, as a checkpoint's does.
enum class StaleWalk : uint8_t { kBeginsAgain, kCounts };

// A walk with commands in between. After two stale walks the journal rejects moves.
class Walking {
 public:
  Walking(Engine& engine, MemoryJournal& journal, StaleWalk rule)
      : engine_(engine), journal_(journal), rule_(rule) {
    begin();
  }

  bool more() const { return more_; }
  void step() {
    if (rule_ == StaleWalk::kBeginsAgain && journal_.last_move_lsn > checkpoint_.begin) {
      if (++stale_ == 2) journal_.take_moves(false);
      begin();
    }
    ByteBuffer records;
    uint64_t count = 0;
    more_ = walk_->step(records, count);
    checkpoint_.pieces.push_back({std::string(records.view()), count});
    if (!more_) journal_.take_moves(true);
  }
  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  void begin() {
    checkpoint_ = {journal_.last_lsn(), {}};
    walk_ = engine_.begin_walk();
  }

  Engine& engine_;
  MemoryJournal& journal_;
  const StaleWalk rule_;
  std::unique_ptr<CheckpointWalk> walk_;
  Checkpoint checkpoint_;
  int stale_ = 0;
  bool more_ = true;
};

Checkpoint run_history(Engine& engine, MemoryJournal& journal, KeyHistory& history, uint64_t seed,
                       StaleWalk rule = StaleWalk::kBeginsAgain) {
  std::mt19937_64 random(seed);
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  for (int i = 0; i < 200; ++i) run(session, history.next());
  Walking walking(engine, journal, rule);
  for (int i = 0; i < 200 || walking.more(); ++i) {
    for (uint64_t step = random() % 8; step != 0 && walking.more(); --step) walking.step();
    run(session, history.next());
  }
  return walking.checkpoint();
}

// Returns false if a record cannot be applied.
bool recover(Engine& engine, const Checkpoint& checkpoint, const MemoryJournal& journal) {
  const auto replay = engine.begin_replay();
  for (const Piece& piece : checkpoint.pieces) REQUIRE(replay->apply(piece.records, piece.count));
  for (Lsn lsn = checkpoint.begin + 1; lsn <= journal.last_lsn(); ++lsn) {
    const MemoryJournal::Unit unit = journal.unit(lsn);
    if (!replay->apply(unit.records, unit.count)) return false;
  }
  replay->finish();
  return true;
}

}  // namespace

namespace {

// Whether the state is restored from the journal and a checkpoint whose walks follow this rule.
bool checkpoint_is_right(uint64_t seed, StaleWalk rule) {
  QuietServer server;
  MemoryJournal journal;
  journal.take_moves(true);
  CompleteEngine engine(server, 7);
  engine.attach_journal(&journal);
  KeyHistory history(seed);
  const Checkpoint checkpoint = run_history(engine, journal, history, seed, rule);
  CHECK(journal.last_move_lsn > 0);
  const auto keys = all_keys(engine, history.names);
  CompleteEngine from_journal(server, 7);
  REQUIRE(recover(from_journal, {}, journal));
  CHECK(all_keys(from_journal, history.names) == keys);
  CompleteEngine from_checkpoint(server, 7);
  return recover(from_checkpoint, checkpoint, journal) &&
         all_keys(from_checkpoint, history.names) == keys;
}

}  // namespace

TEST_CASE("what changes keys is there again after replay") {
  for (const uint64_t seed : testing::seeds(40, 17)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    QuietServer server;
    MemoryJournal journal;
    CompleteEngine engine(server, 7);
    engine.attach_journal(&journal);
    KeyHistory history(seed);
    const Checkpoint checkpoint = run_history(engine, journal, history, seed);
    const auto keys = all_keys(engine, history.names);
    CompleteEngine from_journal(server, 7);
    REQUIRE(recover(from_journal, {}, journal));
    CHECK(all_keys(from_journal, history.names) == keys);
    CompleteEngine from_checkpoint(server, 7);
    REQUIRE(recover(from_checkpoint, checkpoint, journal));
    CHECK(all_keys(from_checkpoint, history.names) == keys);
  }
}

TEST_CASE("a step of a walk is small, however large the values are") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  const std::string text(10'000, 'x');
  run(session, {"SET", "string", std::string(4'000'000, 'x')});
  for (int i = 0; i < 120; ++i) {
    const std::string value = std::to_string(i) + text;
    run(session, {"HSET", "hash", std::to_string(i), value});
    run(session, {"SADD", "set", value});
    run(session, {"ZADD", "sorted", std::to_string(i), value});
    run(session, {"RPUSH", "list", value});
    run(session, {"XADD", "stream", "*", "field", value});
    run(session, {"Q.ADD", "queue", std::to_string(i), value});
  }
  const auto walk = engine.begin_walk();
  const auto replayed = std::make_unique<CompleteEngine>(server, 7);
  const auto replay = replayed->begin_replay();
  size_t all = 0;
  bool more = true;
  while (more) {
    ByteBuffer records;
    uint64_t count = 0;
    more = walk->step(records, count);
    all += records.size();
    // 64 KB, and of each value at most the sixteen elements that a map is scanned by.
    CHECK(records.size() < 500'000);
    REQUIRE(replay->apply(records.view(), count));
  }
  replay->finish();
  CHECK(all > 10'000'000);
  const Words names{"string", "set", "sorted", "list", "stream", "queue"};
  CHECK(all_keys(*replayed, names) == all_keys(engine, names));
  // The fields of so large a hash have no order.
  Execution replayed_execution(*replayed);
  EngineSession replayed_session(*replayed, replayed_execution);
  for (const Words& question : std::vector<Words>{{"HLEN", "hash"}, {"HGET", "hash", "119"}}) {
    CHECK(run(replayed_session, question) == run(session, question));
  }
}

TEST_CASE("keys that move by name alone are there again after replay") {
  const LargeMoves large;
  for (const uint64_t seed : testing::seeds(40, 17)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    CHECK(checkpoint_is_right(seed, StaleWalk::kBeginsAgain));
  }
}

TEST_CASE("a walk that counts though keys have moved meanwhile loses values") {
  const LargeMoves large;
  size_t wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    if (!checkpoint_is_right(seed, StaleWalk::kCounts)) ++wrong;
  }
  MESSAGE(wrong, " of 20 histories are wrong");
  CHECK(wrong > 0);
}

TEST_CASE("a large unit that moves keys by name alone tells the journal so") {
  const LargeMoves large;
  QuietServer server;
  MemoryJournal journal;
  journal.take_moves(true);
  CompleteEngine engine(server, 7);
  engine.attach_journal(&journal);
  Execution execution(engine);
  execution.set_now_ms(kNowMs);
  EngineSession session(engine, execution);
  run(session, {"SET", "a", "x"});
  run(session, {"MULTI"});
  run(session, {"SET", "big", std::string(1 << 20, 'x')});
  run(session, {"RENAME", "a", "b"});
  run(session, {"EXEC"});
  CHECK(journal.last_lsn() == 2);
  CHECK(journal.last_move_lsn == 2);
}

TEST_CASE("a move that cannot have been is refused") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  const auto replay = engine.begin_replay();
  ByteBuffer put;
  EffectEncoder(put).put_string(0, "a", "value", 0);
  REQUIRE(replay->apply(put.view(), 1));
  const auto apply = [&](int database, Bytes key, int to_database, Bytes to_key) {
    ByteBuffer records;
    EffectEncoder(records).move_key(database, key, to_database, to_key);
    return replay->apply(records.view(), 1);
  };
  CHECK_FALSE(apply(0, "absent", 0, "b"));
  CHECK_FALSE(apply(0, "a", 0, "a"));
  CHECK_FALSE(apply(0, "a", kDatabases, "a"));
  CHECK_FALSE(apply(kDatabases, "a", 0, "a"));
  CHECK(apply(0, "a", kDatabases - 1, "a"));
  CHECK_FALSE(apply(0, "a", 0, "b"));
  CHECK(apply(kDatabases - 1, "a", 0, "b"));
  replay->finish();
  Execution execution(engine);
  EngineSession session(engine, execution);
  CHECK(run(session, {"GET", "b"}) == "$5\r\nvalue\r\n");
  CHECK(engine.key_count(kDatabases - 1) == 0);
}

TEST_CASE("a long string keeps its value whatever its key and length become") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  std::mt19937_64 random(1);
  const std::vector<size_t> lengths{0, 10, 30'000, 40'000, 65'535, 65'536, 70'000, 300'000};
  for (int round = 0; round < 200; ++round) {
    std::string value;
    std::string key = "k";
    run(session, {"FLUSHALL"});
    for (int step = 0; step < 12; ++step) {
      const size_t length = lengths[random() % lengths.size()];
      const std::string text(length, static_cast<char>('a' + step));
      switch (random() % 4) {
        case 0:
          run(session, {"SET", key, text});
          value = text;
          break;
        case 1:
          run(session, {"APPEND", key, text});
          value += text;
          break;
        case 2:
          run(session, {"SETRANGE", key, std::to_string(length), "!"});
          value.resize(std::max(value.size(), length + 1));
          value[length] = '!';
          break;
        default:
          const std::string other(1 + random() % 700, static_cast<char>('A' + step));
          if (run(session, {"RENAME", key, other}) == "+OK\r\n") key = other;
      }
      REQUIRE(run(session, {"STRLEN", key}) == ":" + std::to_string(value.size()) + "\r\n");
    }
    const std::string reply = run(session, {"GET", key});
    CHECK((value.empty() || reply.substr(reply.find('\n') + 1) == value + "\r\n"));
    CHECK(engine.key_count(0) <= 1);
  }
}

TEST_CASE("places of databases that are none are refused") {
  QuietServer server;
  CompleteEngine engine(server, 7);
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

TEST_CASE("parts that no value can have, and times and tokens that are none, are refused") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  const auto replay = engine.begin_replay();
  const auto apply = [&](const std::function<void(EffectEncoder)>& encode) {
    ByteBuffer records;
    encode(EffectEncoder(records));
    return replay->apply(records.view(), 1);
  };
  const auto write = [&](size_t offset, Bytes bytes, size_t size) {
    return apply([&](EffectEncoder to) { to.write_string(0, "s", offset, bytes, size); });
  };
  CHECK(write(2, "cd", 4));
  CHECK_FALSE(write(3, "cd", 4));
  CHECK_FALSE(write(5, "", 4));
  const auto put = [&](int64_t first, uint64_t size, int64_t index) {
    return apply([&](EffectEncoder to) { to.list_put(0, "l", first, size, index, "item"); });
  };
  CHECK(put(-1, 2, 0));
  CHECK_FALSE(put(-1, 2, 1));
  CHECK_FALSE(put(-1, 2, -2));
  CHECK_FALSE(apply([](EffectEncoder to) { to.sorted_put(0, "z", std::nan(""), "m"); }));
  CHECK_FALSE(apply([](EffectEncoder to) { to.token_floor(uint64_t{1} << 63); }));
  CHECK_FALSE(apply([](EffectEncoder to) { to.queue_time(-1); }));
  CHECK_FALSE(apply([](EffectEncoder to) { to.queue_time(kMaxRecordedTime + 1); }));
}

}  // namespace sluice::test
