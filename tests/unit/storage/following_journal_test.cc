// Tests what a journal that follows the replicated log owes to checkpoints: between the first
// change that a commit makes in memory and the commit's place in the local log, no walk may end.
// Also that a commit of any length finds a place there.
#include <future>

#include "storage/format.h"
#include "storage/log_tail.h"
#include "storage/rocksdb_log.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;
using std::chrono::milliseconds;

namespace {

TailCommit commit_of(Lsn lsn, bool moves = false) {
  CommitBuffer buffer;
  const std::string record = encode_record(1, lsn);
  buffer.append({record, 1}, crc32c(record), {lsn, 1, moves ? kUnitMoves : uint8_t{0}}, nullptr,
                kMaxUnitBytes);
  return {std::string(buffer.plain()), lsn, {"cluster", "1", 1, lsn, lsn, 0}, moves};
}

struct Follower {
  explicit Follower(milliseconds patience = milliseconds(20'000),
                    SyncMode mode = SyncMode::kEverySecond, size_t max_unit_bytes = kMaxUnitBytes) {
    StoreOptions options = store_options(directory.path(), mode);
    options.journal.replicated = true;
    options.journal.max_unit_bytes = max_unit_bytes;
    options.journal.replication_patience = patience;
    MapReplay replay;
    auto opened = Store::open(std::move(options), replay);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    store = std::move(*opened);
  }
  GroupCommitJournal& journal() { return store->journal(); }
  void follow(const TailCommit& commit) {
    journal().follow_begins(commit);
    REQUIRE(journal().follow(commit));
  }

  TempDirectory directory;
  std::unique_ptr<Store> store;
};

template <typename Future>
bool is_done(const Future& future, milliseconds time) {
  return future.wait_for(time) == std::future_status::ready;
}

}  // namespace

TEST_CASE("a walk ends when the commit that is being applied is in the log, with its lsn") {
  Follower follower;
  follower.follow(commit_of(1));
  CHECK(follower.journal().begin_checkpoint() == 1);
  follower.journal().follow_begins(commit_of(2));
  auto end = std::async(std::launch::async, [&] { return follower.journal().finish_walk(); });
  CHECK(!is_done(end, milliseconds(50)));
  REQUIRE(follower.journal().follow(commit_of(2)));
  REQUIRE(is_done(end, milliseconds(10'000)));
  CHECK(end.get() == Lsn{2});
  CHECK(follower.journal().synced_lsn() == 2);
  follower.journal().end_checkpoint(std::nullopt);
}

TEST_CASE("several commits may be applied before the first of them is in the log") {
  Follower follower;
  follower.journal().begin_checkpoint();
  for (const Lsn lsn : {1, 2, 3}) follower.journal().follow_begins(commit_of(lsn));
  auto end = std::async(std::launch::async, [&] { return follower.journal().finish_walk(); });
  for (const Lsn lsn : {1, 2}) REQUIRE(follower.journal().follow(commit_of(lsn)));
  CHECK(!is_done(end, milliseconds(50)));
  REQUIRE(follower.journal().follow(commit_of(3)));
  REQUIRE(is_done(end, milliseconds(10'000)));
  CHECK(end.get() == Lsn{3});
  follower.journal().end_checkpoint(std::nullopt);
}

TEST_CASE("a walk does not wait for ever for a commit that nobody finishes") {
  SUBCASE("after the patience") {
    Follower follower(milliseconds(30));
    follower.journal().begin_checkpoint();
    follower.journal().follow_begins(commit_of(1));
    CHECK(!follower.journal().finish_walk().has_value());
    follower.journal().end_checkpoint(std::nullopt);
  }
  SUBCASE("when the store is closed") {
    Follower follower;
    follower.journal().begin_checkpoint();
    follower.journal().follow_begins(commit_of(1));
    auto end = std::async(std::launch::async, [&] { return follower.journal().finish_walk(); });
    CHECK(!is_done(end, milliseconds(20)));
    follower.journal().stop();
    REQUIRE(is_done(end, milliseconds(10'000)));
    CHECK(!end.get().has_value());
    follower.journal().end_checkpoint(std::nullopt);
    CHECK(!follower.store->close(CloseMode::kFlush).ok());
  }
  SUBCASE("when the journal fails") {
    Follower follower;
    follower.journal().begin_checkpoint();
    follower.journal().follow_begins(commit_of(1));
    auto end = std::async(std::launch::async, [&] { return follower.journal().finish_walk(); });
    follower.journal().fail(io_error("made"));
    REQUIRE(is_done(end, milliseconds(10'000)));
    CHECK(!end.get().has_value());
    follower.journal().end_checkpoint(std::nullopt);
  }
}

TEST_CASE("a journal that follows wants values after two stale walks, until a checkpoint commits") {
  Follower follower;
  GroupCommitJournal& journal = follower.journal();
  for (const Lsn lsn : {Lsn{1}, Lsn{2}}) {
    CHECK(!journal.wants_values());
    journal.begin_checkpoint();
    follower.follow(commit_of(lsn, true));
    journal.end_checkpoint(std::nullopt);
  }
  CHECK(journal.wants_values());
  journal.begin_checkpoint();
  follower.follow(commit_of(3));
  journal.end_checkpoint(journal.finish_walk());
  CHECK(!journal.wants_values());
  // That of the primary is told so, whatever its own walks need.
  CHECK(journal.takes_moves());
  journal.refuse_moves(true);
  CHECK(!journal.takes_moves());
  CHECK(!journal.wants_values());
  journal.refuse_moves(false);
  CHECK(journal.takes_moves());
}

TEST_CASE("a walk during which a followed commit moves keys is stale, whenever it began") {
  Follower follower;
  follower.journal().begin_checkpoint();
  follower.follow(commit_of(1, true));
  CHECK(follower.journal().walk_is_stale());
  CHECK(!follower.journal().finish_walk().has_value());
  follower.journal().end_checkpoint(std::nullopt);
  // The next one begins while a move is being applied: B lies behind it.
  follower.journal().follow_begins(commit_of(2, true));
  auto begin =
      std::async(std::launch::async, [&] { return follower.journal().begin_checkpoint(); });
  CHECK(!is_done(begin, milliseconds(50)));
  REQUIRE(follower.journal().follow(commit_of(2, true)));
  REQUIRE(is_done(begin, milliseconds(10'000)));
  CHECK(begin.get() == 2);
  CHECK(!follower.journal().walk_is_stale());
  CHECK(follower.journal().finish_walk() == Lsn{2});
  follower.journal().end_checkpoint(std::nullopt);
}

TEST_CASE("a walk that begins although a move is still being applied is stale") {
  Follower follower(milliseconds(30));
  follower.journal().follow_begins(commit_of(1, true));
  follower.journal().begin_checkpoint();
  CHECK(follower.journal().walk_is_stale());
  REQUIRE(follower.journal().follow(commit_of(1, true)));
  CHECK(!follower.journal().finish_walk().has_value());
  follower.journal().end_checkpoint(std::nullopt);
}

TEST_CASE("once appendfsync is always, a standby syncs what it follows") {
  Follower follower(milliseconds(20'000), SyncMode::kNever);
  follower.follow(commit_of(1));
  CHECK(follower.journal().set_mode(SyncMode::kAlways));
  follower.follow(commit_of(2));
  CHECK(eventually([&] { return follower.journal().synced_lsn() == 2; }));
}

TEST_CASE("a standby ends though a commit that moves keys never gets into its log") {
  Follower follower;
  struct Walk : CheckpointWalk {
    bool step(ByteBuffer&, uint64_t&) override { return false; }
  };
  follower.store->start_checkpoints([] { return std::make_unique<Walk>(); },
                                    [] { return int64_t{1}; });
  follower.journal().follow_begins(commit_of(1, true));
  follower.store->checkpointer()->request();
  auto end =
      std::async(std::launch::async, [&] { return follower.store->close(CloseMode::kFlush).ok(); });
  REQUIRE(is_done(end, milliseconds(30'000)));
}

TEST_CASE("a commit that is longer than a value of the log may be is divided between its units") {
  Follower follower(milliseconds(20'000), SyncMode::kEverySecond, 100);
  CommitBuffer buffer;
  for (Lsn lsn = 1; lsn <= 5; ++lsn) {
    // The third one is too long by itself.
    const std::string record = encode_record(static_cast<uint32_t>(lsn), lsn, lsn == 3 ? 300 : 0);
    buffer.append({record, 1}, crc32c(record), {lsn, 1, 0}, nullptr, kMaxUnitBytes);
  }
  const LogPosition position = {"cluster", "1", 1, 7, 5, 0};
  follower.follow({std::string(buffer.plain()), 1, position, false});
  REQUIRE(follower.store->close(CloseMode::kFlush).ok());
  follower.store.reset();
  {
    RocksdbLogOptions options;
    options.directory = follower.directory.path();
    const auto log = open_rocksdb_log(options);
    REQUIRE_MESSAGE(log.ok(), log.status().message());
    std::vector<Lsn> begins;
    Lsn first = 0;
    Bytes commit;
    for (const auto reader = (*log)->read_from(1); reader->next(first, commit);) {
      begins.push_back(first);
    }
    CHECK(begins == std::vector<Lsn>{1, 3, 4});
    CHECK(*(*log)->position_at(5) == encode_position(position));
  }
  const ReadBack back = read_back(follower.directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn == 5);
  CHECK(back.state.size() == 5);
}
