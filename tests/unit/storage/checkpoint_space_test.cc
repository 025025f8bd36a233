// A checkpoint that cannot be written, because of space or otherwise: the journal continues, the
// checkpoint is removed, and it is retried.
#include "tests/support/fault_fs.h"

#include "tests/support/storage_support.h"

#include <rocksdb/env.h>

#include <thread>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr uint64_t kMb = uint64_t{1} << 20;
constexpr uint32_t kKeys = 300;

// A store on a disk that can be small or fail, whose checkpoints take `filling` bytes for a key.
struct Fixture {
  Fixture()
      : fs(std::make_shared<FaultFs>(rocksdb::FileSystem::Default())),
        env(rocksdb::NewCompositeEnv(fs)),
        directory(true),
        options(store_options(directory.path())) {
    options.env = env.get();
    options.memtable_bytes = 64 << 10;
    options.checkpoint_rest_ratio = 0;
    options.checkpoint_retry_delay = std::chrono::milliseconds(20);
    options.data_bytes = [this] { return kKeys * (filling + 100); };
    options.journal.on_failed = [this](const Status&) { stopped = true; };
    options.sink = [this](LogLevel level, Bytes text) {
      if (level != LogLevel::kWarning) return;
      std::lock_guard<std::mutex> lock(mutex);
      warnings += std::string(text) + "\n";
    };
  }
  void open(uint64_t earlier_changes = 0) {
    MapReplay replay;
    auto opened = Store::open(options, replay);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    store = std::move(*opened);
    engine = std::make_unique<MapEngine>(&store->journal(), replay.state);
    store->start_checkpoints([this] { return engine->walk(filling); }, [] { return int64_t{1}; },
                             earlier_changes);
  }
  void fill() {
    for (uint32_t key = 0; key < kKeys; ++key) engine->set(key, key);
    REQUIRE(store->journal().sync());
  }
  Status checkpoint() { return checkpointer().wait_until_done(checkpointer().request()); }
  Checkpointer& checkpointer() { return *store->checkpointer(); }
  bool staging_is_empty() const { return std::filesystem::is_empty(directory.path() + "/staging"); }
  std::string warned() {
    std::lock_guard<std::mutex> lock(mutex);
    return warnings;
  }
  // The journal still accepts and keeps a change.
  void check_journal_goes_on() {
    CHECK(!stopped);
    engine->set(1, ++last_value);
    CHECK(store->journal().sync());
    CHECK(store->journal().durable_lsn() == store->journal().last_lsn());
  }
  void check_reopened() {
    const std::map<uint32_t, uint64_t> state = engine->state();
    CHECK(store->close(CloseMode::kFlush).ok());
    const ReadBack back = read_back(options);
    REQUIRE_MESSAGE(back.status.ok(), back.status.message());
    CHECK(back.state == state);
  }

  std::shared_ptr<FaultFs> fs;
  std::unique_ptr<rocksdb::Env> env;
  TempDirectory directory;
  StoreOptions options;
  std::atomic<size_t> filling{10};
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  std::string warnings;
  uint64_t last_value = 1000;
  std::unique_ptr<MapEngine> engine;
  std::unique_ptr<Store> store;
};

}  // namespace

TEST_CASE(
    "a checkpoint that does not fit gives up in front of the reserve, and the journal goes on") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 12 * kMb;
  it.fs->set_capacity(40 * kMb);
  it.open();
  it.fill();
  it.filling = 200'000;  // 60 MB
  const Status refused = it.checkpoint();
  CHECK(refused.code() == StatusCode::kNoSpace);
  CHECK(refused.message().find("not enough disk space") != std::string::npos);
  CHECK(it.checkpointer().status().failed == 1);
  CHECK(!it.checkpointer().status().last_result.ok());
  CHECK(it.fs->least_free_bytes() < 20 * kMb);  // an attempt was made
  CHECK(it.fs->least_free_bytes() >= 12 * kMb);
  CHECK(it.staging_is_empty());
  CHECK(it.warned().find("the journal continues") != std::string::npos);
  it.check_journal_goes_on();

  it.filling = 10;
  CHECK(it.checkpoint().ok());
  CHECK(it.checkpointer().status().failed_in_a_row == 0);
  it.check_reopened();
}

TEST_CASE("after a restart the same checkpoint fails again, and the server serves all the same") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 12 * kMb;
  it.options.checkpoint_log_bytes = 1000;
  it.filling = 200'000;
  it.fs->set_capacity(40 * kMb);
  for (int start = 0; start < 3; ++start) {
    CAPTURE(start);
    it.open();
    it.fill();
    CHECK(eventually([&] { return it.checkpointer().status().failed != 0; }));
    it.check_journal_goes_on();
    CHECK(it.store->close(CloseMode::kFlush).ok());
  }
}

TEST_CASE("one that would not fit is not begun by itself, and is made when there is room") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 12 * kMb;
  it.options.checkpoint_log_bytes = 1000;
  it.filling = 200'000;
  it.fs->set_capacity(40 * kMb);
  it.open();
  it.fill();
  // Once without a known size.
  REQUIRE(eventually([&] { return it.checkpointer().status().failed >= 1; }));
  it.fs->only_in("/staging/");
  it.fs->fail_at(0, FaultKind::kIoError, false);  // counted from here
  REQUIRE(eventually([&] { return it.checkpointer().status().failed >= 3; }));
  CHECK(it.fs->operations() == 0);
  CHECK(it.checkpointer().status().completed == 0);
  it.fs->set_capacity(200 * kMb);
  CHECK(eventually([&] { return it.checkpointer().status().completed != 0; }));
  CHECK(it.checkpointer().status().last_result.ok());
  it.check_reopened();
}

TEST_CASE("the pause before it is tried again grows, also if somebody wants it all the time") {
  for (const bool wanted : {false, true}) {
    INFO(wanted);
    Fixture it;
    it.options.checkpoint_log_bytes = wanted ? 0 : 1000;
    it.options.checkpoint_retry_delay = std::chrono::milliseconds(100);
    it.open();
    it.fs->only_in("/staging/");
    it.fs->fail_at(1, FaultKind::kIoError, true);
    const auto begin = std::chrono::steady_clock::now();
    it.fill();
    CheckpointStatus seen;
    REQUIRE(eventually([&] {
      if (wanted) it.checkpointer().want(it.store->journal().last_lsn());
      seen = it.checkpointer().status();
      return seen.failed >= 4;
    }));
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(700));
    CHECK(seen.failed_in_a_row == seen.failed);
    it.check_journal_goes_on();
  }
}

TEST_CASE("a first checkpoint that failed is made by the rule for changes from before the store") {
  Fixture it;
  it.options.journal.attached = false;
  it.open(5);
  CHECK(it.checkpointer().changes() == 5);
  it.fs->only_in("/staging/");
  it.fs->fail_at(1, FaultKind::kIoError, true);
  CHECK(!it.checkpoint().ok());
  CHECK(it.checkpointer().changes() == 5);
  it.fs->heal();
  it.checkpointer().set_save_rules({{3600, 6}});
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  CHECK(it.checkpointer().status().completed == 0);
  it.checkpointer().set_save_rules({{3600, 5}});
  REQUIRE(eventually([&] { return it.checkpointer().status().completed == 1; }));
  CHECK(it.checkpointer().changes() == 0);
  it.engine->set(1, 1);
  CHECK(it.checkpointer().changes() == 1);
}

TEST_CASE("whatever fails beside the log, the journal goes on; what fails in the log stops it") {
  bool met_staging = false;
  bool met_log = false;
  for (const FaultKind kind : {FaultKind::kIoError, FaultKind::kNoSpace, FaultKind::kShortWrite}) {
    for (uint64_t n = 1;; ++n) {
      Fixture it;
      it.open();
      it.fill();
      it.fs->only_in("/staging/");
      it.fs->fail_at(n, kind, true);
      const Status status = it.checkpoint();
      std::string operation = it.fs->failed_operation();
      operation.resize(std::min(operation.size(), operation.find(" after ")));
      CAPTURE(operation);
      if (!it.fs->has_failed()) break;
      it.fs->heal();
      // Linking files into the log is an operation of the log.
      const bool of_log = operation.find("link ") != std::string::npos;
      if (of_log) {
        met_log = true;
        CHECK(!status.ok());
        CHECK(it.stopped);
        continue;
      }
      const bool of_cleaning = operation.find("delete ") != std::string::npos;
      CHECK(status.ok() == of_cleaning);
      met_staging = met_staging || !of_cleaning;
      it.check_journal_goes_on();
      CHECK(it.checkpoint().ok());
      if (!of_cleaning) CHECK(it.staging_is_empty());
      it.check_reopened();
    }
  }
  CHECK(met_staging);
  CHECK(met_log);
}

TEST_CASE("where the reserve is in use, a small checkpoint gives the log's space back") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 48 * kMb;
  it.options.checkpoint_log_bytes = 1024 * kMb;
  it.options.memtable_bytes = kMb;
  it.fs->set_capacity(96 * kMb);
  it.open();
  for (uint32_t i = 0; i < 60'000; ++i) {
    it.engine->set(i % kKeys, i, 1000);
    if (i % 500 == 0) REQUIRE(it.store->journal().sync());
  }
  REQUIRE(it.store->journal().sync());
  CHECK(eventually([&] { return it.checkpointer().status().completed != 0; }));
  CHECK(eventually([&] { return !it.store->journal().disk().below_min(); }));
  it.check_reopened();
}

TEST_CASE("where the reserve is in use and the data have shrunk, the log's space comes back too") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 48 * kMb;
  it.options.checkpoint_log_bytes = 1024 * kMb;
  it.options.memtable_bytes = kMb;
  it.filling = 100'000;  // 30 MB
  it.fs->set_capacity(128 * kMb);
  it.open();
  it.fill();
  REQUIRE(it.checkpoint().ok());
  it.filling = 10;
  for (uint32_t i = 0; i < 60'000; ++i) {
    it.engine->set(i % kKeys, i, 1000);
    if (i % 500 == 0) REQUIRE(it.store->journal().sync());
  }
  REQUIRE(it.store->journal().sync());
  CHECK(eventually([&] { return it.checkpointer().status().completed >= 2; }));
}

TEST_CASE(
    "attached, the last checkpoint's failure takes nothing away and is no failure of the end") {
  for (const bool attached : {true, false}) {
    Fixture it;
    it.options.journal.attached = attached;
    it.open();
    it.fill();
    it.fs->only_in("/staging/");
    it.fs->fail_at(1, FaultKind::kIoError, true);
    CHECK(it.store->close(CloseMode::kCheckpoint).ok() == attached);
    it.fs->heal();
    const ReadBack back = read_back(it.options);
    REQUIRE_MESSAGE(back.status.ok(), back.status.message());
    CHECK(back.state.size() == (attached ? kKeys : 0));
  }
}

TEST_CASE("the reserve is seen long before it is written, however fast that goes") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 32 * kMb;
  std::atomic<bool> below{false};
  it.options.journal.on_min_free_disk = [&](bool now) { below = now; };
  it.options.memtable_bytes = 4 * kMb;
  it.fs->set_capacity(96 * kMb);
  it.open();
  uint64_t units = 0;
  for (; !below && units < 90; ++units) {
    it.engine->set(1, ++it.last_value, kMb);
    REQUIRE(it.store->journal().sync());
  }
  CHECK(below);
  CHECK(it.store->journal().disk().below_min());
  CHECK(units < 72);
  CHECK(it.fs->least_free_bytes() > 16 * kMb);
}

TEST_CASE("where the reserve is in use, a checkpoint that does not fit leaves half of it") {
  Fixture it;
  it.options.journal.min_free_disk_bytes = 40 * kMb;
  it.options.checkpoint_log_bytes = 0;
  it.options.memtable_bytes = kMb;
  it.open();
  it.fill();
  it.filling = 200'000;  // 60 MB
  it.fs->set_capacity(36 * kMb);
  const Status refused = it.checkpoint();
  CHECK(refused.code() == StatusCode::kNoSpace);
  CHECK(it.fs->least_free_bytes() < 30 * kMb);  // an attempt was made
  CHECK(it.fs->least_free_bytes() >= 20 * kMb);
  CHECK(it.staging_is_empty());
  it.check_journal_goes_on();
}
