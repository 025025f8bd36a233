// The group-commit journal over a real log: the meaning of durable in each mode, and failures.
#include "tests/support/storage_support.h"

#include <filesystem>
#include <map>
#include <thread>

#include "storage/format.h"
#include "storage/rocksdb_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

std::unique_ptr<Store> open_store(StoreOptions options) {
  MapReplay replay;
  auto store = Store::open(std::move(options), replay);
  REQUIRE_MESSAGE(store.ok(), store.status().message());
  return std::move(*store);
}

Lsn mark_in(const TempDirectory& directory) {
  const auto mark = decode_mark(read_file(directory.path() + "/high-water-mark"));
  REQUIRE(mark.has_value());
  return *mark;
}

}  // namespace

TEST_CASE("an empty directory starts at lsn 0 and gives the first unit lsn 1") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path()));
  CHECK(store->recovered().last_lsn == 0);
  MapEngine engine(&store->journal());
  CHECK(engine.set(1, 10) == 1);
  CHECK(store->journal().last_lsn() == 1);
}

TEST_CASE("always: a flush wakes the commit thread, and durable means synced") {
  TempDirectory directory;
  std::atomic<Lsn> told{0};
  StoreOptions options = store_options(directory.path());
  options.journal.on_durable = [&](Lsn lsn) { told = lsn; };
  auto store = open_store(options);
  MapEngine engine(&store->journal());
  for (uint32_t i = 0; i < 100; ++i) engine.set(i, i);
  CHECK(store->journal().flush());
  CHECK(eventually([&] { return store->journal().durable_lsn() == 100; }));
  CHECK(store->journal().synced_lsn() == 100);
  CHECK(eventually([&] { return told == 100; }));
  CHECK(store->journal().unwritten_bytes() == 0);
  CHECK(store->journal().stats().commits >= 1);
}

TEST_CASE("always: the mark on the disk is exactly what was acknowledged last") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path()));
  MapEngine engine(&store->journal());
  for (uint32_t i = 1; i <= 5; ++i) {
    engine.set(i, i);
    REQUIRE(store->journal().sync());
    CHECK(mark_in(directory) == i);
    CHECK(store->journal().durable_lsn() == i);
  }
}

TEST_CASE("always: a unit that the mark does not cover is not acknowledged") {
  TempDirectory directory;
  const std::string elsewhere = directory.path() + ".moved";
  {
    auto store = open_store(store_options(directory.path()));
    MapEngine engine(&store->journal());
    engine.set(1, 1);
    REQUIRE(store->journal().sync());
    // The log can be written and synced, but the mark refuses a directory that has gone.
    std::filesystem::rename(directory.path(), elsewhere);
    engine.set(2, 2);
    CHECK_FALSE(store->journal().sync());
    CHECK(store->journal().durable_lsn() == 1);
  }
  std::filesystem::rename(elsewhere, directory.path());
}

TEST_CASE("always: whoever waits is told when a checkpoint's end takes the units to the disk") {
  TempDirectory directory;
  std::atomic<Lsn> told{0};
  StoreOptions options = store_options(directory.path());
  options.journal.on_durable = [&](Lsn lsn) { told = lsn; };
  auto store = open_store(options);
  MapEngine engine(&store->journal());
  int told_at_once = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    // Not flushed: the commit thread sleeps, and finish_walk() writes in its place.
    store->journal().begin_checkpoint();
    const Lsn lsn = engine.set(i, i);
    const std::optional<Lsn> end = store->journal().finish_walk();
    REQUIRE(end == lsn);
    told_at_once += told == lsn ? 1 : 0;
    REQUIRE(eventually([&] { return told == lsn; }));
    store->journal().end_checkpoint(std::nullopt);
  }
  // The commit thread wakes by itself now and then. It may have synced a unit and not told it yet.
  CHECK(told_at_once > 50);
}

TEST_CASE("whoever waits is told when the mode changes, and when nothing is kept any more") {
  TempDirectory directory;
  std::atomic<Lsn> told{0};
  StoreOptions options = store_options(directory.path());
  options.journal.on_durable = [&](Lsn lsn) { told = lsn; };
  auto store = open_store(options);
  GroupCommitJournal& journal = store->journal();
  MapEngine engine(&journal);
  int told_at_once = 0;
  for (uint32_t i = 0; i < 30; ++i) {
    const SyncMode mode = i % 2 == 0 ? SyncMode::kEverySecond : SyncMode::kAlways;
    const Lsn lsn = engine.set(i, i);
    CHECK(journal.set_mode(mode));
    told_at_once += told == lsn ? 1 : 0;
    REQUIRE(eventually([&] { return told == lsn; }));
  }
  CHECK(told_at_once > 15);
  const Lsn lsn = engine.set(1, 99);
  journal.detach();
  CHECK(eventually([&] { return told == lsn; }));
}

TEST_CASE("everysec: what was appended before a flush is durable when it returns") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path(), SyncMode::kEverySecond));
  MapEngine engine(&store->journal());
  for (uint32_t i = 0; i < 100; ++i) {
    const Lsn lsn = engine.set(i, i);
    CHECK(store->journal().flush());
    CHECK(store->journal().durable_lsn() == lsn);
  }
  CHECK(eventually([&] { return store->journal().synced_lsn() == 100; }));
}

TEST_CASE("everysec: units that nobody flushes become durable all the same") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path(), SyncMode::kNever));
  MapEngine engine(&store->journal());
  engine.set(1, 1);
  CHECK(eventually([&] { return store->journal().durable_lsn() == 1; }));
}

TEST_CASE("in every mode a sync that is asked for comes at once, and answers who has asked") {
  for (const SyncMode mode : {SyncMode::kAlways, SyncMode::kEverySecond, SyncMode::kNever}) {
    TempDirectory directory;
    StoreOptions options = store_options(directory.path(), mode);
    options.journal.sync_interval = std::chrono::hours(1);
    auto store = open_store(options);
    GroupCommitJournal& journal = store->journal();
    MapEngine engine(&journal);
    std::atomic<int> answered{0};
    for (int i = 1; i <= 20; ++i) {
      const Lsn lsn = engine.set(1, static_cast<uint64_t>(i));
      std::atomic<Lsn> synced_when_told{0};
      journal.when_synced([&](bool synced) {
        if (synced) synced_when_told = journal.synced_lsn();
        ++answered;
      });
      REQUIRE(eventually([&] { return answered == i; }));
      CHECK(synced_when_told >= lsn);
    }
    CHECK(journal.is_synced());
    journal.when_synced([&](bool synced) { answered += synced ? 100 : 0; });
    CHECK(answered == 120);
  }
}

TEST_CASE("a sync counts when a checkpoint has made the journal count, and never when detached") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kEverySecond);
  options.journal.attached = false;
  auto store = open_store(options);
  GroupCommitJournal& journal = store->journal();
  MapEngine engine(&journal);
  engine.set(1, 1);
  std::atomic<int> refused{0};
  std::atomic<int> synced{0};
  const auto count = [&](bool is_synced) { ++(is_synced ? synced : refused); };
  journal.when_synced(count);
  CHECK(refused == 1);
  journal.attach();
  engine.set(1, 2);
  journal.when_synced(count);
  REQUIRE(eventually([&] { return journal.synced_lsn() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  CHECK(synced == 0);
  CHECK_FALSE(journal.is_synced());
  journal.begin_checkpoint();
  const std::optional<Lsn> end = journal.finish_walk();
  REQUIRE(end == 2);
  journal.end_checkpoint(end);
  CHECK(mark_in(directory) == *end);
  CHECK(eventually([&] { return synced == 1; }));
  CHECK(journal.is_synced());
  journal.detach();
  journal.attach();
  engine.set(1, 3);
  journal.when_synced(count);
  journal.detach();
  CHECK(eventually([&] { return refused == 2; }));
}

TEST_CASE("never attached, the mark says where the last checkpoint that was committed ends") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kEverySecond);
  options.journal.attached = false;
  auto store = open_store(options);
  GroupCommitJournal& journal = store->journal();
  MapEngine engine(&journal);
  for (uint32_t i = 1; i <= 3; ++i) {
    journal.begin_checkpoint();
    const Lsn lsn = engine.set(i, i);
    const std::optional<Lsn> end = journal.finish_walk();
    REQUIRE(end == lsn);
    CHECK(mark_in(directory) == lsn - 1);
    journal.end_checkpoint(end);
    CHECK(mark_in(directory) == lsn);
  }
}

TEST_CASE("what is appended while the journal is switched off is durable when it is off") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path(), SyncMode::kEverySecond));
  GroupCommitJournal& journal = store->journal();
  MapEngine engine(&journal);
  for (int i = 0; i < 40; ++i) {
    const Lsn before = journal.last_lsn();
    std::thread writer([&] {
      while (journal.attached()) {
        if (journal.last_lsn() < before + 20'000) engine.set(1, 1);
      }
    });
    CHECK(eventually([&] { return journal.last_lsn() > before; }));
    journal.detach();
    writer.join();
    CHECK(journal.durable_lsn() == journal.last_lsn());
    journal.attach();
  }
}

TEST_CASE("what was appended before the journal is switched off is on the disk when it is off") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kEverySecond);
  options.journal.sync_interval = std::chrono::hours(1);
  {
    auto store = open_store(options);
    MapEngine engine(&store->journal());
    engine.set(1, 1);
    store->journal().detach();
    CHECK(store->journal().synced_lsn() == 1);
    CHECK(store->close(CloseMode::kDiscard).ok());
  }
  CHECK(read_back(directory.path()).recovered.last_lsn == 1);
}

TEST_CASE("the first unit after the journal was off says that it follows a gap") {
  TempDirectory directory;
  {
    auto store = open_store(store_options(directory.path()));
    GroupCommitJournal& journal = store->journal();
    MapEngine engine(&journal);
    engine.set(1, 1);
    REQUIRE(journal.sync());
    journal.detach();
    engine.set(1, 2);
    journal.attach();
    for (uint64_t value : {3, 4}) {
      engine.set(1, value);
      journal.flush();
    }
    REQUIRE(store->close(CloseMode::kFlush).ok());
  }
  RocksdbLogOptions options;
  options.directory = directory.path();
  auto log = open_rocksdb_log(options);
  REQUIRE(log.ok());
  const auto reader = (*log)->read_from(1);
  std::map<Lsn, bool> follows_gap;
  Lsn first = 0;
  Bytes commit;
  while (reader->next(first, commit)) {
    UnitCursor cursor(commit, commit.size());
    while (cursor.next()) {
      const UnitHeader& header = cursor.header();
      follows_gap[header.lsn] = (header.flags & kUnitFollowsGap) != 0;
    }
  }
  CHECK(follows_gap == std::map<Lsn, bool>{{1, false}, {3, true}, {4, false}});
}

TEST_CASE("flushes from several threads each cover what their thread appended") {
  TempDirectory directory;
  auto store = open_store(store_options(directory.path(), SyncMode::kEverySecond));
  MapEngine engine(&store->journal());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 2000; ++i) {
        const Lsn lsn = engine.set(t, i, i % 200);
        if (!store->journal().flush() || store->journal().durable_lsn() < lsn) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(store->journal().durable_lsn() == 8000);
  const auto state = engine.state();
  CHECK(store->close(CloseMode::kFlush).ok());
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.last_lsn == 8000);
}

TEST_CASE("everything that was durable is read back, in order, in each mode") {
  for (const SyncMode mode : {SyncMode::kAlways, SyncMode::kEverySecond, SyncMode::kNever}) {
    TempDirectory directory;
    std::map<uint32_t, uint64_t> state;
    Lsn last = 0;
    for (int round = 0; round < 3; ++round) {
      MapReplay replay;
      auto store = Store::open(store_options(directory.path(), mode), replay);
      REQUIRE_MESSAGE(store.ok(), store.status().message());
      CHECK(replay.finished);
      CHECK(replay.state == state);
      CHECK((*store)->recovered().last_lsn == last);
      MapEngine engine(&(*store)->journal(), replay.state);
      for (uint32_t i = 0; i < 500; ++i) {
        last = engine.set(i % 97, static_cast<uint64_t>(round) * 1000 + i, i);
        if (i % 7 == 0) CHECK((*store)->journal().flush());
      }
      state = engine.state();
      CHECK((*store)->close(CloseMode::kFlush).ok());
    }
  }
}

TEST_CASE("a unit larger than every buffer goes through") {
  TempDirectory directory;
  {
    auto store = open_store(store_options(directory.path(), SyncMode::kEverySecond));
    MapEngine engine(&store->journal());
    engine.set(1, 1, 40 << 20);
    engine.set(2, 2);
    CHECK(store->journal().flush());
  }
  const ReadBack back = read_back(directory.path());
  CHECK(back.recovered.last_lsn == 2);
  CHECK(back.state.size() == 2);
}

TEST_CASE("a change from everysec to always syncs what was acknowledged before") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  auto store = open_store(options);
  MapEngine engine(&store->journal());
  for (uint32_t i = 0; i < 10; ++i) engine.set(i, i);
  CHECK(store->journal().flush());
  CHECK(store->journal().synced_lsn() == 0);
  CHECK(store->journal().set_mode(SyncMode::kAlways));
  CHECK(store->journal().synced_lsn() == 10);
  engine.set(1, 5);
  CHECK(store->journal().flush());
  CHECK(eventually([&] { return store->journal().durable_lsn() == 11; }));
  CHECK(store->journal().set_mode(SyncMode::kEverySecond));
  engine.set(1, 6);
  CHECK(store->journal().flush());
  CHECK(store->journal().durable_lsn() == 12);
}

TEST_CASE("syncs are counted by how long they took, and those of a stalled disk last") {
  JournalMeter meter;
  for (const int64_t took_us : {0LL, 1000LL, (1LL << 23) - 1, 1LL << 23, 3'600'000'000LL}) {
    meter.count_sync(std::chrono::microseconds(took_us));
  }
  const JournalStats stats = meter.stats();
  std::array<uint64_t, JournalStats::kSyncBuckets> expected{};
  expected[0] = expected[10] = 1;
  expected.back() = 3;
  CHECK(stats.sync_us == expected);
  CHECK(stats.syncs == 5);
  CHECK(stats.sync_us_max == 3'600'000'000);
}

TEST_CASE("in memory only, nothing is kept and every unit is durable at once") {
  MapReplay replay;
  auto store = Store::open(store_options(""), replay);
  REQUIRE(store.ok());
  MapEngine engine(&(*store)->journal());
  for (uint32_t i = 0; i < 10; ++i) {
    const Lsn lsn = engine.set(i, i);
    CHECK((*store)->journal().durable_lsn() == lsn);
  }
  CHECK((*store)->journal().unwritten_bytes() == 0);
  CHECK((*store)->journal().flush());
  CHECK((*store)->close(CloseMode::kCheckpoint).ok());
}

TEST_CASE("free disk below the minimum is seen") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path());
  options.journal.min_free_disk_bytes = UINT64_MAX;
  auto store = open_store(options);
  CHECK(store->journal().disk().below_min());
  CHECK(store->journal().disk().bytes() > 0);
}
