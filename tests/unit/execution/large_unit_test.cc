// Transactions, scripts and keys with more bytes than a unit or a piece of a checkpoint can hold.
// The limit is a few hundred bytes, so that no test needs gigabytes.
#include <chrono>
#include <thread>

#include "engine/commands/complete_engine.h"
#include "engine/execution/transaction.h"
#include "engine/unit/effects.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr size_t kLimit = 300;

// An engine on a data directory, set up like the server's.
struct Kept {
  explicit Kept(const std::string& directory, size_t max_unit_bytes = kLimit)
      : engine(port, 7), execution(engine) {
    StoreOptions options = store_options(directory, SyncMode::kEverySecond);
    options.journal.max_unit_bytes = max_unit_bytes;
    const std::unique_ptr<Replay> replay = engine.begin_replay();
    auto opened = Store::open(options, *replay);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    store = std::move(*opened);
    engine.attach_journal(&store->journal());
    session = std::make_unique<EngineSession>(engine, execution);
  }
  // Like a kill: only what was flushed is kept.
  void crash() {
    session.reset();
    REQUIRE(store->close(CloseMode::kDiscard).ok());
  }

  QuietServer port;
  CompleteEngine engine;
  Execution execution;
  std::unique_ptr<Store> store;
  std::unique_ptr<EngineSession> session;
};

std::string text(char c, size_t size) { return std::string(size, c); }

std::string bulk(const std::string& value) {
  return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

}  // namespace

TEST_CASE("a transaction larger than a unit is kept as a whole") {
  TempDirectory directory(true);
  {
    Kept kept(directory.path());
    kept.session->run({"SET", "before", "1"});
    kept.session->run({"MULTI"});
    for (const char c : {'a', 'b', 'c', 'd'}) {
      kept.session->run({"SET", std::string(1, c), text(c, 200)});
    }
    kept.session->run({"EXEC"});
    kept.session->run({"SET", "after", "1"});
    REQUIRE(kept.store->journal().flush());
    // One for each of the four, since no two fit into one.
    CHECK(kept.store->journal().durable_lsn() == 6);
    kept.crash();
  }
  Kept kept(directory.path());
  CHECK(kept.store->recovered().last_lsn == 6);
  for (const char c : {'a', 'b', 'c', 'd'}) {
    CHECK(kept.session->run({"GET", std::string(1, c)}) == bulk(text(c, 200)));
  }
  CHECK(kept.session->run({"EXISTS", "before", "after"}) == ":2\r\n");
}

TEST_CASE("a value larger than a unit goes through, and so does RENAME of a large key") {
  TempDirectory directory(true);
  {
    Kept kept(directory.path());
    kept.session->run({"SET", "large", text('x', 5 * kLimit)});
    kept.session->run({"EVAL", "for i = 1, 300 do redis.call('RPUSH', 'list', i) end", "0"});
    kept.session->run({"RENAME", "list", "renamed"});
    REQUIRE(kept.store->journal().flush());
    kept.crash();
  }
  Kept kept(directory.path());
  CHECK(kept.session->run({"GET", "large"}) == bulk(text('x', 5 * kLimit)));
  CHECK(kept.session->run({"LLEN", "renamed"}) == ":300\r\n");
  CHECK(kept.session->run({"LINDEX", "renamed", "-1"}) == bulk("300"));
  CHECK(kept.session->run({"EXISTS", "list"}) == ":0\r\n");
}

TEST_CASE("a checkpoint divides what is too large for one piece") {
  TempDirectory directory(true);
  std::string fields;
  {
    Kept kept(directory.path());
    kept.store->start_checkpoints([&] { return kept.engine.begin_walk(); }, [] { return 1; });
    // A small hash keeps the order of insertion: it is processed in one step of the walk.
    for (int i = 0; i < 60; ++i) {
      kept.session->run({"HSET", "hash", "field" + std::to_string(99 - i), "value"});
    }
    fields = kept.session->run({"HKEYS", "hash"});
    Checkpointer& checkpointer = *kept.store->checkpointer();
    REQUIRE(checkpointer.wait_until_done(checkpointer.request()).ok());
    CHECK(checkpointer.status().last.pieces > 4);
    kept.crash();
  }
  Kept kept(directory.path());
  REQUIRE(kept.store->recovered().checkpoint.has_value());
  CHECK(kept.store->recovered().units == 0);
  CHECK(kept.session->run({"HKEYS", "hash"}) == fields);
}

TEST_CASE("many units between two commits become several values of the log") {
  TempDirectory directory(true);
  {
    Kept kept(directory.path());
    for (int i = 0; i < 100; ++i) kept.session->run({"INCR", "n"});
    REQUIRE(kept.store->journal().flush());
    CHECK(kept.store->journal().stats().commits == 1);
    kept.crash();
  }
  Kept kept(directory.path());
  CHECK(kept.store->recovered().last_lsn == 100);
  CHECK(kept.session->run({"GET", "n"}) == bulk("100"));
}

TEST_CASE("units whose records are taken stand in the log in their order, among others") {
  TempDirectory directory(true);
  const auto value = [](int i) { return text(static_cast<char>('a' + i % 26), 20 + i * 37 % 230); };
  {
    Kept kept(directory.path());
    Journal& journal = kept.store->journal();
    for (int i = 0; i < 200; ++i) {
      ByteBuffer records;
      EffectEncoder(records).put_string(0, "k" + std::to_string(i / 2), value(i), 0);
      journal.append(records.view(), 1, 0, false, i % 3 == 0 ? nullptr : &records);
      if (i % 50 == 49) REQUIRE(kept.store->journal().flush());
    }
    CHECK(kept.store->journal().unwritten_bytes() == 0);
    kept.crash();
  }
  Kept kept(directory.path());
  CHECK(kept.store->recovered().last_lsn == 200);
  for (int i = 1; i < 200; i += 2) {
    CHECK(kept.session->run({"GET", "k" + std::to_string(i / 2)}) == bulk(value(i)));
  }
}

TEST_CASE("what is large is written beside the caller of flush(), and durable with what follows") {
  TempDirectory directory(true);
  const std::string large = text('x', 3 << 20);
  {
    Kept kept(directory.path(), kMaxUnitBytes);
    GroupCommitJournal& journal = kept.store->journal();
    for (int i = 0; i < 5; ++i) {
      kept.session->run({"SET", "large", large});
      if (i == 0) CHECK(journal.pressing_bytes() < 1000);
      REQUIRE(journal.flush());
      kept.session->run({"SET", "after", std::to_string(i)});
      REQUIRE(journal.flush());
    }
    // Nobody else calls it any more.
    while (journal.durable_lsn() != 10) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kept.crash();
  }
  Kept kept(directory.path());
  CHECK(kept.session->run({"GET", "large"}) == bulk(large));
  CHECK(kept.session->run({"GET", "after"}) == bulk("4"));
}

TEST_CASE("in memory only, a large unit is counted and nothing else") {
  Kept kept("");
  kept.session->run({"SET", "large", text('x', 5 * kLimit)});
  kept.session->run({"MSET", "a", text('a', kLimit), "b", text('b', kLimit)});
  CHECK(kept.store->journal().durable_lsn() == kept.store->journal().last_lsn());
  CHECK(kept.session->run({"STRLEN", "large"}) == ":1500\r\n");
}
