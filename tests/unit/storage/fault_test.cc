// A disk that fails at its n-th change, and one that loses power: nothing is acknowledged after the
// first failure, and everything acknowledged is there afterwards.
#include "tests/support/fault_fs.h"

#include "tests/support/seeds.h"
#include "tests/support/storage_support.h"

#include "storage/arm_kill_points.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <random>
#include <thread>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr uint32_t kKeys = 7;

std::map<uint32_t, uint64_t> state_at(Lsn lsn) {
  std::map<uint32_t, uint64_t> state;
  for (Lsn n = lsn > kKeys ? lsn - kKeys + 1 : 1; n <= lsn; ++n) state[n % kKeys] = n;
  return state;
}

// SLUICE_LONG_TESTS=n makes the random and exhaustive tests n times as thorough.
uint64_t thoroughness() {
  const char* setting = std::getenv("SLUICE_LONG_TESTS");
  return setting != nullptr ? std::max<uint64_t>(std::strtoull(setting, nullptr, 10), 1) : 1;
}

struct Disk {
  Disk()
      : fs(std::make_shared<FaultFs>(rocksdb::FileSystem::Default())),
        env(rocksdb::NewCompositeEnv(fs)),
        directory(true) {}
  StoreOptions options(SyncMode mode) const {
    StoreOptions options = store_options(directory.path(), mode);
    options.env = env.get();
    options.memtable_bytes = memtable_bytes;
    options.checkpoint_rest_ratio = 0;
    return options;
  }
  std::shared_ptr<FaultFs> fs;
  std::unique_ptr<rocksdb::Env> env;
  TempDirectory directory;
  // Small, for several files of each kind; but RocksDB waits a second after a failed flush.
  size_t memtable_bytes = 64 << 10;
};

struct Outcome {
  Lsn appended = 0;
  Lsn acknowledged = 0;  // the greatest durable_lsn observed
  Lsn synced = 0;
  bool reported = false;  // a failure was reported
};

// Opens, appends with flushes and a checkpoint in between, closes; stops at the first failure.
Outcome work(Disk& disk, SyncMode mode, Lsn units, uint64_t seed) {
  Outcome outcome;
  StoreOptions options = disk.options(mode);
  std::atomic<bool> failed{false};
  GroupCommitJournal* journal = nullptr;
  std::atomic<Lsn> durable_at_failure{0};
  options.journal.on_failed = [&](const Status& status) {
    CHECK(!status.message().empty());
    if (journal != nullptr) durable_at_failure = journal->durable_lsn();
    failed = true;
  };
  MapReplay replay;
  auto opened = Store::open(options, replay);
  if (!opened.ok()) {
    outcome.reported = true;
    return outcome;
  }
  Store& store = **opened;
  journal = &store.journal();
  MapEngine engine(journal, replay.state);
  store.start_checkpoints([&] { return engine.walk(500); }, [] { return int64_t{1}; });
  std::mt19937_64 random(seed);
  Lsn last = store.recovered().last_lsn;
  const Lsn first = last;
  outcome.acknowledged = last;
  while (last < first + units && !failed) {
    const Lsn lsn = last + 1;
    last = engine.set(lsn % kKeys, lsn, random() % 1500);
    if (random() % 4 != 0) continue;
    const bool flushed = mode == SyncMode::kAlways ? journal->sync() : journal->flush();
    if (!flushed) break;
    if (random() % 8 == 0 && !journal->sync()) break;
    // Read in this order: what is synced now was synced if a power cut comes later.
    outcome.acknowledged = std::max(outcome.acknowledged, journal->durable_lsn());
    if (random() % 20 == 0) {
      Checkpointer& checkpointer = *store.checkpointer();
      // A failure beside the log is reported, and the journal continues.
      if (!checkpointer.wait_until_done(checkpointer.request()).ok()) outcome.reported = true;
    }
  }
  outcome.appended = last;
  outcome.synced = journal->synced_lsn();
  if (failed) {
    CHECK(journal->failed());
    CHECK(journal->durable_lsn() == durable_at_failure);
    // It remains failed, whatever is tried.
    engine.set((last + 1) % kKeys, last + 1);
    ++outcome.appended;
    CHECK(!journal->flush());
    CHECK(!journal->sync());
    CHECK(journal->durable_lsn() == durable_at_failure);
  }
  outcome.acknowledged = std::max(outcome.acknowledged, journal->durable_lsn());
  const bool closed = store.close(CloseMode::kFlush).ok();
  outcome.reported = outcome.reported || failed || !closed;
  return outcome;
}

void check_reopened(Disk& disk, SyncMode mode, Lsn at_least, Lsn at_most) {
  MapReplay replay;
  auto opened = Store::open(disk.options(mode), replay);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  const Lsn last = (*opened)->recovered().last_lsn;
  CHECK(last >= at_least);
  CHECK(last <= at_most);
  CHECK(replay.state == state_at(last));
  CHECK((*opened)->close(CloseMode::kFlush).ok());
}

void fail_each_operation(SyncMode mode, FaultKind kind, bool stay_broken, bool power_cut) {
  for (uint64_t n = 1;; ++n) {
    CAPTURE(n);
    CAPTURE(static_cast<int>(kind));
    CAPTURE(stay_broken);
    CAPTURE(power_cut);
    Disk disk;
    disk.fs->fail_at(n, kind, stay_broken);
    const Outcome outcome = work(disk, mode, 60, 5);
    const bool met = disk.fs->has_failed();
    const std::string operation = disk.fs->failed_operation();
    CAPTURE(operation);
    if (power_cut) {
      disk.fs->freeze();
      disk.fs->lose_unsynced(n, n % 2 == 0);
    }
    disk.fs->heal();
    // In a weaker mode a power cut may lose what was only written.
    const Lsn at_least =
        power_cut && mode != SyncMode::kAlways ? outcome.synced : outcome.acknowledged;
    check_reopened(disk, mode, at_least, outcome.appended);
    if (!met) return;
    if (!outcome.reported) {
      // The operation was not needed: only cleaning up may fail silently.
      CHECK((operation.find("delete") != std::string::npos ||
             operation.find("direct-io-test") != std::string::npos ||
             operation.find("OPTIONS") != std::string::npos));
    }
  }
}

// A page that survives the killed process: the greatest lsn that it acknowledged.
class SharedLsn {
 public:
  explicit SharedLsn(const std::string& file) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(descriptor >= 0);
    REQUIRE(::ftruncate(descriptor, 4096) == 0);
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    REQUIRE(page != MAP_FAILED);
    lsn_ = static_cast<std::atomic<Lsn>*>(page);
  }
  ~SharedLsn() { ::munmap(lsn_, 4096); }
  std::atomic<Lsn>& operator*() { return *lsn_; }

 private:
  std::atomic<Lsn>* lsn_;
};

constexpr const char* kChildTest = "child of the kill test";

// Runs the child test of this program; true if it was killed, false if it finished.
bool run_child(const std::string& directory, const std::string& mode, const std::string& point) {
  const std::string filter = std::string("--test-case=") + kChildTest;
  const std::vector<std::string> settings = {"SLUICE_TEST_DIRECTORY=" + directory,
                                             "SLUICE_TEST_MODE=" + mode,
                                             "SLUICE_KILL_POINT=" + point};
  std::vector<char*> environment;
  for (const std::string& setting : settings) {
    environment.push_back(const_cast<char*>(setting.c_str()));
  }
  environment.push_back(nullptr);
  const char* arguments[] = {"fault_test", filter.c_str(), "--no-skip", "--quiet", nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
                      const_cast<char* const*>(arguments), environment.data()) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return false;
}

}  // namespace

TEST_CASE("child of the kill test" * doctest::skip()) {
  const std::string directory = std::getenv("SLUICE_TEST_DIRECTORY");
  const SyncMode mode = std::string(std::getenv("SLUICE_TEST_MODE")) == "always"
                            ? SyncMode::kAlways
                            : SyncMode::kEverySecond;
  kill_points_from_environment();
  SharedLsn acknowledged(directory + ".acknowledged");
  StoreOptions options = store_options(directory, mode);
  options.memtable_bytes = 64 << 10;
  options.checkpoint_rest_ratio = 0;
  MapReplay replay;
  auto opened = Store::open(options, replay);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  Store& store = **opened;
  MapEngine engine(&store.journal(), replay.state);
  store.start_checkpoints([&] { return engine.walk(500); }, [] { return int64_t{1}; });
  for (int i = 1; i <= 60; ++i) {
    const Lsn lsn = store.journal().last_lsn() + 1;
    engine.set(lsn % kKeys, lsn, lsn * 37 % 1500);
    if (i % 3 == 0) {
      CHECK((mode == SyncMode::kAlways ? store.journal().sync() : store.journal().flush()));
      *acknowledged = store.journal().durable_lsn();
    }
    if (i % 20 == 0)
      CHECK(store.checkpointer()->wait_until_done(store.checkpointer()->request()).ok());
  }
  CHECK(store.close(CloseMode::kFlush).ok());
}

TEST_CASE("killed at each named point, a process has lost nothing that it acknowledged") {
  for (const std::string mode : {"always", "everysec"}) {
    TempDirectory directory(true);
    const std::string data = directory.path() + "/data";
    SharedLsn acknowledged(data + ".acknowledged");
    for (const std::string point :
         {"before_journal_write", "after_journal_write", "after_journal_sync", "inside_checkpoint",
          "before_checkpoint_commit", "after_checkpoint_commit", "before_trim", "after_trim"}) {
      bool met = false;
      for (int pass = 1;; pass += thoroughness() > 1 ? 1 : 3) {
        CAPTURE(mode);
        CAPTURE(point);
        CAPTURE(pass);
        const bool killed = run_child(data, mode, point + ":" + std::to_string(pass));
        const ReadBack back = read_back(data);
        REQUIRE_MESSAGE(back.status.ok(), back.status.message());
        CHECK(back.recovered.last_lsn >= *acknowledged);
        CHECK(back.state == state_at(back.recovered.last_lsn));
        if (!killed) break;
        met = true;
      }
      CHECK(met);
    }
  }
}

TEST_CASE("always: whichever operation fails, nothing acknowledged is lost and nothing more is") {
  fail_each_operation(SyncMode::kAlways, FaultKind::kIoError, false, false);
}

TEST_CASE("always: the same when the disk is full from there on, and the power goes afterwards") {
  fail_each_operation(SyncMode::kAlways, FaultKind::kNoSpace, true, true);
}

TEST_CASE("always: the same with a write that is cut short, and the power goes afterwards") {
  fail_each_operation(SyncMode::kAlways, FaultKind::kShortWrite, false, true);
}

TEST_CASE("everysec: whichever operation fails, what was written stays") {
  fail_each_operation(SyncMode::kEverySecond, FaultKind::kShortWrite, true, false);
}

TEST_CASE("a power cut at any moment loses nothing that was synced") {
  for (const uint64_t seed : sluice::testing::seeds(30 * thoroughness(), 1)) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const SyncMode mode = random() % 2 == 0 ? SyncMode::kAlways : SyncMode::kEverySecond;
    Disk disk;
    Lsn at_least = 0;
    // The same directory goes through several power cuts.
    for (int cut = 0; cut < 4; ++cut) {
      CAPTURE(cut);
      disk.fs->heal();
      disk.fs->freeze_at(1 + random() % 500);
      disk.memtable_bytes = random() % 8 == 0 ? 64 << 10 : 8 << 20;
      const Outcome outcome = work(disk, mode, 200, random());
      disk.fs->freeze();
      disk.fs->lose_unsynced(random(), random() % 3 == 0);
      disk.fs->heal();
      const Lsn promised = mode == SyncMode::kAlways ? outcome.acknowledged : outcome.synced;
      at_least = std::max(at_least, promised);
      MapReplay replay;
      auto opened = Store::open(disk.options(mode), replay);
      REQUIRE_MESSAGE(opened.ok(), opened.status().message());
      const Lsn last = (*opened)->recovered().last_lsn;
      CHECK(last >= at_least);
      CHECK(replay.state == state_at(last));
      at_least = last;  // opening syncs what it accepted
      CHECK((*opened)->close(CloseMode::kFlush).ok());
    }
  }
}

TEST_CASE("a failed sync is never tried again: the next one would claim what is gone") {
  Disk disk;
  MapReplay replay;
  auto opened = Store::open(disk.options(SyncMode::kAlways), replay);
  REQUIRE(opened.ok());
  GroupCommitJournal& journal = (*opened)->journal();
  MapEngine engine(&journal);
  engine.set(1, 1);
  CHECK(journal.sync());
  disk.fs->fail_at(2, FaultKind::kIoError, false);  // the write succeeds, its sync fails
  engine.set(2, 2);
  CHECK(!journal.sync());
  CHECK(journal.failed());
  CHECK(journal.failure().message().find("injected") != std::string::npos);
  CHECK(!journal.sync());
  CHECK(journal.durable_lsn() == 1);
  CHECK(!(*opened)->close(CloseMode::kFlush).ok());
}

TEST_CASE("everysec: a failed sync is the end too, and the journal's thread syncs no more") {
  for (int attempt = 0;; ++attempt) {
    REQUIRE(attempt < 50);
    Disk disk;
    StoreOptions options = disk.options(SyncMode::kEverySecond);
    options.journal.sync_interval = std::chrono::milliseconds(20);
    MapReplay replay;
    auto opened = Store::open(options, replay);
    REQUIRE(opened.ok());
    GroupCommitJournal& journal = (*opened)->journal();
    MapEngine engine(&journal);
    engine.set(1, 1);
    REQUIRE(journal.sync());
    engine.set(2, 2);
    REQUIRE(journal.flush());
    disk.fs->fail_at(1, FaultKind::kIoError, false);
    if (journal.sync()) continue;  // the journal's thread had synced it before
    const std::string operation = disk.fs->failed_operation();
    REQUIRE_MESSAGE(operation.find("sync ") != std::string::npos, operation);
    CHECK(journal.failed());
    CHECK(journal.failure().message().find("injected") != std::string::npos);
    const uint64_t syncs = journal.stats().syncs;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(journal.stats().syncs == syncs);
    CHECK(!journal.sync());
    engine.set(3, 3);
    CHECK(!journal.flush());
    CHECK(journal.synced_lsn() == 1);
    CHECK(!(*opened)->close(CloseMode::kFlush).ok());
    return;
  }
}

TEST_CASE("always: a commit of several values of the log is synced before it is acknowledged") {
  Disk disk;
  Lsn acknowledged = 0;
  {
    MapReplay replay;
    StoreOptions options = disk.options(SyncMode::kAlways);
    options.journal.max_unit_bytes = 300;
    auto opened = Store::open(options, replay);
    REQUIRE(opened.ok());
    GroupCommitJournal& journal = (*opened)->journal();
    MapEngine engine(&journal);
    for (uint32_t key = 0; key < kKeys; ++key) acknowledged = engine.set(key, key, 200);
    REQUIRE(journal.sync());
    CHECK(journal.durable_lsn() == acknowledged);
    disk.fs->freeze();
    CHECK((*opened)->close(CloseMode::kDiscard).ok());
  }
  disk.fs->lose_unsynced(1, true);
  disk.fs->heal();
  MapReplay replay;
  auto opened = Store::open(disk.options(SyncMode::kAlways), replay);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  CHECK((*opened)->recovered().last_lsn == acknowledged);
  CHECK(replay.state.size() == kKeys);
}

TEST_CASE("a directory whose power fails soon after its first start is opened") {
  Disk disk;
  {
    MapReplay replay;
    auto opened = Store::open(disk.options(SyncMode::kAlways), replay);
    REQUIRE(opened.ok());
    disk.fs->freeze();
    CHECK((*opened)->close(CloseMode::kDiscard).ok());
  }
  disk.fs->lose_unsynced(1, true);
  disk.fs->heal();
  const ReadBack back = read_back(disk.options(SyncMode::kAlways));
  CHECK_MESSAGE(back.status.ok(), back.status.message());
}

TEST_CASE("units that a killed process has only written are synced with those after its restart") {
  Disk disk;
  Lsn synced = 0;
  {
    MapReplay replay;
    auto opened = Store::open(disk.options(SyncMode::kEverySecond), replay);
    REQUIRE(opened.ok());
    MapEngine engine(&(*opened)->journal());
    for (uint32_t key = 0; key < 50; ++key) engine.set(key, key);
    REQUIRE((*opened)->journal().flush());
    CHECK((*opened)->close(CloseMode::kDiscard).ok());
  }
  {
    MapReplay replay;
    auto opened = Store::open(disk.options(SyncMode::kEverySecond), replay);
    REQUIRE(opened.ok());
    GroupCommitJournal& journal = (*opened)->journal();
    MapEngine engine(&journal, replay.state);
    synced = engine.set(50, 50);
    REQUIRE(journal.sync());
    disk.fs->freeze();
    CHECK((*opened)->close(CloseMode::kDiscard).ok());
  }
  CHECK(synced == 51);
  disk.fs->lose_unsynced(1, true);
  disk.fs->heal();
  const ReadBack back = read_back(disk.options(SyncMode::kEverySecond));
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn == synced);
  CHECK(back.state.size() == synced);
}

TEST_CASE("detached, a failed checkpoint is reported and the server lives on") {
  Disk disk;
  StoreOptions options = disk.options(SyncMode::kAlways);
  options.journal.attached = false;
  bool stopped = false;
  options.journal.on_failed = [&](const Status&) { stopped = true; };
  MapReplay replay;
  auto opened = Store::open(options, replay);
  REQUIRE(opened.ok());
  MapEngine engine(&(*opened)->journal());
  (*opened)->start_checkpoints([&] { return engine.walk(); }, [] { return int64_t{1}; });
  engine.set(1, 1);
  disk.fs->fail_at(1, FaultKind::kNoSpace, true);
  Checkpointer& checkpointer = *(*opened)->checkpointer();
  const Status failed = checkpointer.wait_until_done(checkpointer.request());
  CHECK(failed.code() == StatusCode::kNoSpace);
  CHECK(!stopped);
  CHECK(engine.set(2, 2) == 2);
  CHECK((*opened)->journal().durable_lsn() == 2);
  disk.fs->heal();
  CHECK(checkpointer.wait_until_done(checkpointer.request()).ok());
  CHECK((*opened)->close(CloseMode::kFlush).ok());
  CHECK(read_back(disk.directory.path()).state.size() == 2);
}
