// Checkpoints: correct under concurrent changes, complete or absent, and disk use stays bounded.
#include "storage/checkpointer.h"

#include "tests/support/storage_support.h"

#include <atomic>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

int64_t fixed_clock() { return 1'700'000'000'000; }

struct Running {
  // First, so that it is destroyed last: a checkpoint that runs at the end walks through it.
  std::unique_ptr<MapEngine> engine;
  std::unique_ptr<Store> store;
};

// A walk that runs `before` at its start, when B is fixed and nothing has been read yet.
class HookedWalk final : public CheckpointWalk {
 public:
  HookedWalk(std::unique_ptr<CheckpointWalk> walk, std::function<void()> before)
      : walk_(std::move(walk)), before_(std::move(before)) {}
  bool step(ByteBuffer& records, uint64_t& count) override {
    if (const std::function<void()> before = std::exchange(before_, nullptr)) before();
    return walk_->step(records, count);
  }

 private:
  std::unique_ptr<CheckpointWalk> walk_;
  std::function<void()> before_;
};

Running start(StoreOptions options, size_t walk_filling = 0,
              std::function<void(MapEngine&)> before_walk = nullptr) {
  MapReplay replay;
  auto store = Store::open(std::move(options), replay);
  REQUIRE_MESSAGE(store.ok(), store.status().message());
  Running running{std::make_unique<MapEngine>(&(*store)->journal(), replay.state),
                  std::move(*store)};
  MapEngine* engine = running.engine.get();
  running.store->start_checkpoints(
      [engine, walk_filling, before_walk]() -> std::unique_ptr<CheckpointWalk> {
        if (!before_walk) return engine->walk(walk_filling);
        return std::make_unique<HookedWalk>(engine->walk(walk_filling),
                                            [engine, before_walk] { before_walk(*engine); });
      },
      fixed_clock);
  return running;
}

Status checkpoint(Store& store) {
  return store.checkpointer()->wait_until_done(store.checkpointer()->request());
}

}  // namespace

TEST_CASE("a restart begins with the checkpoint and applies only the log after it") {
  TempDirectory directory;
  std::map<uint32_t, uint64_t> state;
  {
    Running run = start(store_options(directory.path()));
    for (uint32_t i = 0; i < 1000; ++i) run.engine->set(i, i);
    REQUIRE(checkpoint(*run.store).ok());
    CHECK(run.store->checkpointer()->status().last_success_ms == fixed_clock());
    for (uint32_t i = 0; i < 10; ++i) run.engine->set(i, 77);
    state = run.engine->state();
  }
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  REQUIRE(back.recovered.checkpoint.has_value());
  CHECK(back.recovered.checkpoint->begin_lsn == 1000);
  CHECK(back.recovered.checkpoint->records == 1000);
  CHECK(back.recovered.checkpoint->finished_ms == fixed_clock());
  CHECK(back.recovered.units == 10);
}

TEST_CASE("an empty state makes a checkpoint too") {
  TempDirectory directory;
  {
    Running run = start(store_options(directory.path()));
    REQUIRE(checkpoint(*run.store).ok());
  }
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.checkpoint.has_value());
  CHECK(back.state.empty());
}

TEST_CASE("checkpoints that overlap with changes lose nothing and invent nothing") {
  for (const SyncMode mode : {SyncMode::kAlways, SyncMode::kEverySecond}) {
    TempDirectory directory;
    std::map<uint32_t, uint64_t> state;
    {
      Running run = start(store_options(directory.path(), mode), 200);
      std::atomic<bool> stop{false};
      std::vector<std::thread> writers;
      for (uint32_t t = 0; t < 2; ++t) {
        writers.emplace_back([&, t] {
          std::mt19937 random(t);
          for (uint64_t i = 0; !stop; ++i) {
            run.engine->set(random() % 20000, i * 2 + t, random() % 100);
            if (i % 50 == 0) {
              run.store->journal().flush();
              std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
          }
        });
      }
      for (int i = 0; i < 5; ++i) REQUIRE(checkpoint(*run.store).ok());
      stop = true;
      for (std::thread& writer : writers) writer.join();
      state = run.engine->state();
      CHECK(run.store->checkpointer()->status().completed == 5);
    }
    const ReadBack back = read_back(directory.path());
    REQUIRE_MESSAGE(back.status.ok(), back.status.message());
    CHECK(back.state == state);
    CHECK(back.recovered.checkpoint->checkpoint == 5);
    CHECK(back.recovered.checkpoint->end_lsn >= back.recovered.checkpoint->begin_lsn);
  }
}

TEST_CASE("the disk levels off under a steady load") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  options.checkpoint_log_bytes = 16 << 20;
  Running run = start(options);
  uint64_t largest = 0;
  uint64_t written = 0;
  uint64_t completed = 0;
  uint64_t written_before = 0;  // when that one was seen
  // Real load is slowed by back-pressure; this one lets the checkpointer keep up, which may sleep.
  const auto keeps_up = [&] {
    const uint64_t now = run.store->checkpointer()->status().completed;
    if (std::exchange(completed, now) != now) written_before = written;
    return written - written_before <= 2 * options.checkpoint_log_bytes;
  };
  for (uint64_t i = 0; written < (uint64_t{400} << 20); ++i) {
    run.engine->set(i % 1000, i, 4000);
    written += 4000;
    if (i % 20 != 0) continue;
    run.store->journal().flush();
    if (i % 500 == 0) largest = std::max(largest, run.store->disk_bytes());
    REQUIRE(eventually(keeps_up));
  }
  INFO("largest ", largest >> 20, " MB");
  CHECK(run.store->checkpointer()->status().completed >= 3);
  CHECK(largest < (uint64_t{160} << 20));
}

TEST_CASE("an older checkpoint's files are gone once a newer one is committed") {
  TempDirectory directory;
  Running run = start(store_options(directory.path(), SyncMode::kNever), 10000);
  for (uint32_t i = 0; i < 1000; ++i) run.engine->set(i, i);
  REQUIRE(checkpoint(*run.store).ok());
  REQUIRE(checkpoint(*run.store).ok());
  CHECK(eventually([&] { return run.store->disk_bytes() < (15 << 20); }));
}

TEST_CASE("a growing log starts a checkpoint by itself, but no sooner than the last one's size") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  options.checkpoint_log_bytes = 1 << 20;
  Running run = start(options, 100'000);  // a checkpoint of 100 keys: 10 MB
  for (uint32_t i = 0; i < 1100; ++i) run.engine->set(i % 100, i, 1000);
  run.store->journal().flush();
  REQUIRE(eventually([&] { return run.store->checkpointer()->status().completed == 1; }));
  for (uint32_t i = 0; i < 5000; ++i) run.engine->set(i % 100, i, 1000);
  run.store->journal().flush();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(run.store->checkpointer()->status().completed == 1);
  for (uint32_t i = 0; i < 6000; ++i) run.engine->set(i % 100, i, 1000);
  run.store->journal().flush();
  CHECK(eventually([&] { return run.store->checkpointer()->status().completed == 2; }));
}

TEST_CASE("what the log holds from before a start counts as its growth") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  {
    Running run = start(options);
    for (uint32_t i = 0; i < 2000; ++i) run.engine->set(i % 100, i, 1000);
  }
  options.checkpoint_log_bytes = 1 << 20;
  Running run = start(options);
  CHECK(eventually([&] { return run.store->checkpointer()->status().completed == 1; }));
}

TEST_CASE("a checkpoint that is wanted is made once, whatever the log's size") {
  TempDirectory directory;
  Running run = start(store_options(directory.path()));
  Checkpointer& checkpointer = *run.store->checkpointer();
  for (uint32_t i = 0; i < 10; ++i) run.engine->set(i, i);
  const Lsn wanted = run.store->journal().last_lsn();
  checkpointer.want(wanted);
  REQUIRE(eventually([&] { return checkpointer.status().completed == 1; }));
  CHECK(checkpointer.status().last.begin_lsn >= wanted);
  checkpointer.want(wanted);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(checkpointer.status().completed == 1);
  run.engine->set(1, 1);
  checkpointer.want(wanted + 1);
  CHECK(eventually([&] { return checkpointer.status().completed == 2; }));
}

TEST_CASE("a checkpoint that is wanted while one runs does not follow it") {
  TempDirectory directory;
  std::atomic<Checkpointer*> checkpointer{nullptr};
  Running run = start(store_options(directory.path()), 0,
                      [&](MapEngine& engine) { checkpointer.load()->want(engine.set(1, 2)); });
  checkpointer = run.store->checkpointer();
  checkpointer.load()->want(run.engine->set(1, 1));
  REQUIRE(eventually([&] { return checkpointer.load()->status().completed == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(checkpointer.load()->status().completed == 1);
}

TEST_CASE("a save rule fires when enough has changed for long enough") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path());
  options.journal.attached = false;
  options.save_rules = {{0, 5}};
  Running run = start(options);
  for (uint32_t i = 0; i < 4; ++i) run.engine->set(i, i);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  CHECK(run.store->checkpointer()->status().completed == 0);
  CHECK(run.store->checkpointer()->changes() == 4);
  run.engine->set(5, 5);
  CHECK(eventually([&] { return run.store->checkpointer()->status().completed == 1; }));
  CHECK(run.store->checkpointer()->changes() == 0);
}

TEST_CASE("detached, a restart finds a state between the checkpoint's bounds and no older one") {
  TempDirectory directory;
  std::map<uint32_t, uint64_t> state;
  StoreOptions options = store_options(directory.path(), SyncMode::kEverySecond);
  options.journal.attached = false;
  {
    Running run = start(options);
    for (uint32_t i = 0; i < 5000; ++i) {
      const Lsn lsn = run.engine->set(i, i);
      REQUIRE(run.store->journal().durable_lsn() == lsn);
    }
    CHECK(run.store->journal().unwritten_bytes() == 0);
    std::thread writer([&] {
      for (uint32_t i = 0; i < 5000; ++i) run.engine->set(i, i + 1);
    });
    REQUIRE(checkpoint(*run.store).ok());
    writer.join();
    state = run.engine->state();
    // Only this last change is lost, which was not acknowledged.
    run.engine->set(1, 12345);
    CHECK(run.store->close(CloseMode::kFlush).ok());
  }
  const ReadBack back = read_back(options);
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn >= back.recovered.checkpoint->end_lsn);
  for (const auto& [key, value] : back.state) CHECK((value == key || value == key + 1));
  CHECK(back.state.size() == 5000);
}

TEST_CASE("detached, a second checkpoint that was cut off leaves the first one valid") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  options.journal.attached = false;
  std::map<uint32_t, uint64_t> state;
  for (int round = 0; round < 3; ++round) {
    Running run = start(options);
    CHECK(run.engine->state() == state);
    for (uint32_t i = 0; i < 100; ++i) run.engine->set(i, i + static_cast<uint64_t>(round) * 1000);
    REQUIRE(checkpoint(*run.store).ok());
    state = run.engine->state();
    run.engine->set(1, 999);
    // The steps of a checkpoint until the process is killed during it.
    run.store->journal().begin_checkpoint();
    run.engine->set(2, 999);
    REQUIRE(run.store->journal().finish_walk().has_value());
    CHECK(run.store->close(CloseMode::kDiscard).ok());
  }
  const ReadBack back = read_back(options);
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.dropped_tail);
}

TEST_CASE("detached, what was kept for a walk that failed is not in the log of the next one") {
  // The journal's thread may have written it meanwhile, but hardly each time.
  for (int round = 0; round < 5; ++round) {
    TempDirectory directory(true);
    StoreOptions options = store_options(directory.path(), SyncMode::kEverySecond);
    options.journal.attached = false;
    std::map<uint32_t, uint64_t> state;
    {
      Running run = start(options, 0, [](MapEngine& engine) { engine.set(3, 3); });
      run.store->journal().begin_checkpoint();
      run.engine->set(1, 1);
      run.store->journal().end_checkpoint(std::nullopt);
      run.engine->set(2, 2);
      REQUIRE(checkpoint(*run.store).ok());
      state = run.engine->state();
      CHECK(run.store->close(CloseMode::kFlush).ok());
    }
    const ReadBack back = read_back(options);
    REQUIRE_MESSAGE(back.status.ok(), back.status.message());
    CHECK(back.state == state);
    CHECK(back.recovered.last_lsn == 3);
  }
}

TEST_CASE(
    "appendonly can be switched on at run time, and counts once its checkpoint is committed") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path());
  options.journal.attached = false;
  std::map<uint32_t, uint64_t> state;
  {
    Running run = start(options);
    for (uint32_t i = 0; i < 100; ++i) run.engine->set(i, i);
    const auto ticket = run.store->set_appendonly(true);
    REQUIRE(ticket.has_value());
    REQUIRE(run.store->checkpointer()->wait_until_done(*ticket).ok());
    for (uint32_t i = 0; i < 50; ++i) run.engine->set(i, i * 2);
    state = run.engine->state();
    CHECK(run.store->journal().sync());
    CHECK(run.store->close(CloseMode::kDiscard).ok());
  }
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.last_lsn == 150);
}

TEST_CASE("appendonly that is switched on and killed before its checkpoint starts from before") {
  TempDirectory directory;
  std::map<uint32_t, uint64_t> state;
  {
    Running run = start(store_options(directory.path()));
    for (uint32_t i = 0; i < 100; ++i) run.engine->set(i, i);
    REQUIRE(run.store->set_appendonly(false).has_value());
    state = run.engine->state();
    for (uint32_t i = 0; i < 100; ++i) run.engine->set(i, 5);
    run.store->journal().attach();
    for (uint32_t i = 0; i < 100; ++i) run.engine->set(i, 6);
    CHECK(run.store->journal().sync());
    CHECK(run.store->close(CloseMode::kDiscard).ok());
  }
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.dropped_tail);
  CHECK(read_back(directory.path()).state == state);
}

TEST_CASE("a stop cancels a running checkpoint and leaves nothing of it") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path(), SyncMode::kNever);
  options.checkpoint_rest_ratio = 1000;  // it would never end
  std::map<uint32_t, uint64_t> state;
  {
    Running run = start(options, 20000);
    for (uint32_t i = 0; i < 2000; ++i) run.engine->set(i, i);
    state = run.engine->state();
    run.store->checkpointer()->request();
    REQUIRE(eventually([&] { return run.store->checkpointer()->running(); }));
    CHECK(run.store->close(CloseMode::kFlush).ok());
  }
  CHECK(std::filesystem::is_empty(directory.path() + "/staging"));
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(!back.recovered.checkpoint.has_value());
}

TEST_CASE("closing with a checkpoint leaves no log to replay") {
  TempDirectory directory;
  {
    Running run = start(store_options(directory.path()));
    for (uint32_t i = 0; i < 2000; ++i) run.engine->set(i, i);
    CHECK(run.store->close(CloseMode::kCheckpoint).ok());
  }
  const ReadBack back = read_back(directory.path());
  CHECK(back.recovered.units == 0);
  CHECK(back.state.size() == 2000);
}

TEST_CASE("a request while a checkpoint runs is met by one that begins after it") {
  TempDirectory directory;
  std::promise<void> walks;
  std::promise<void> may_go;
  std::atomic<int> begun{0};
  Running run = start(store_options(directory.path()), 0, [&](MapEngine&) {
    if (begun++ != 0) return;
    walks.set_value();
    may_go.get_future().wait();
  });
  Checkpointer& checkpointer = *run.store->checkpointer();
  const uint64_t first = checkpointer.request();
  walks.get_future().wait();
  const Lsn before_request = run.engine->set(1, 1);
  const uint64_t second = checkpointer.request();
  CHECK(second > first);
  may_go.set_value();
  REQUIRE(checkpointer.wait_until_done(second).ok());
  CHECK(begun == 2);
  CHECK(checkpointer.status().last.begin_lsn >= before_request);
}

TEST_CASE("whoever waits for a checkpoint that the end of the server cuts off is told so") {
  TempDirectory directory;
  std::promise<void> walks;
  std::promise<void> may_go;
  std::atomic<int> begun{0};
  Running run = start(store_options(directory.path()), 0, [&](MapEngine&) {
    if (begun++ != 1) return;
    walks.set_value();
    may_go.get_future().wait();
  });
  Checkpointer& checkpointer = *run.store->checkpointer();
  REQUIRE(checkpoint(*run.store).ok());
  auto told = std::async(std::launch::async, [&] { return checkpoint(*run.store); });
  walks.get_future().wait();
  auto end = std::async(std::launch::async, [&] { checkpointer.stop(); });
  const Status status = told.get();
  may_go.set_value();
  end.get();
  CHECK(status.code() == StatusCode::kCancelled);
}

TEST_CASE("the log of the time that a checkpoint takes is kept, as it needs it") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path());
  options.memtable_bytes = 64 << 10;  // several files of the log within one checkpoint
  std::map<uint32_t, uint64_t> state;
  GroupCommitJournal* journal = nullptr;
  {
    Running run = start(options, 0, [&](MapEngine& engine) {
      for (uint32_t i = 0; i < 400; ++i) {
        engine.set(i, 5000 + i, 1000);
        if (i % 10 == 0) REQUIRE(journal->sync());
      }
    });
    journal = &run.store->journal();
    for (uint32_t i = 0; i < 1000; ++i) run.engine->set(i, i);
    REQUIRE(checkpoint(*run.store).ok());
    const CheckpointSummary last = run.store->checkpointer()->status().last;
    CHECK(last.begin_lsn == 1000);
    CHECK(last.end_lsn == 1400);
    for (uint32_t i = 0; i < 400; ++i) {
      run.engine->set(i, 7000 + i, 1000);
      if (i % 10 == 0) REQUIRE(journal->sync());
    }
    REQUIRE(journal->sync());
    state = run.engine->state();
    CHECK(run.store->close(CloseMode::kDiscard).ok());
  }
  const ReadBack back = read_back(options);
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.units == 800);
}

TEST_CASE(
    "a walk during which keys move by name begins again, and after two the journal takes none") {
  TempDirectory directory;
  std::map<uint32_t, uint64_t> state;
  std::vector<bool> taken;
  {
    GroupCommitJournal* journal = nullptr;
    Running run = start(store_options(directory.path()), 0, [&](MapEngine& engine) {
      taken.push_back(journal->takes_moves());
      engine.move(1, 500 + taken.size());
    });
    journal = &run.store->journal();
    for (uint32_t i = 0; i < 1000; ++i) run.engine->set(i, i);
    run.engine->move(2, 77);  // no walk is in progress
    REQUIRE(checkpoint(*run.store).ok());
    CHECK(taken == std::vector<bool>{true, true, false});
    const CheckpointStatus status = run.store->checkpointer()->status();
    CHECK(status.completed == 1);
    CHECK(status.failed == 0);
    CHECK(status.last.checkpoint == 1);
    CHECK(status.last.begin_lsn == 1003);
    CHECK(status.last.end_lsn == 1004);
    // A checkpoint has been committed.
    CHECK(journal->takes_moves());
    REQUIRE(checkpoint(*run.store).ok());
    CHECK(taken == std::vector<bool>{true, true, false, true, true, false});
    state = run.engine->state();
  }
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == state);
  CHECK(back.recovered.units == 1);
}

TEST_CASE("a walk that is stale at its very end does not count") {
  TempDirectory directory;
  Running run = start(store_options(directory.path()));
  GroupCommitJournal& journal = run.store->journal();
  for (const bool moves : {false, true}) {
    journal.begin_checkpoint();
    run.engine->set(1, 1);
    if (moves) run.engine->move(2, 2);
    CHECK(journal.walk_is_stale() == moves);
    CHECK(journal.finish_walk().has_value() == !moves);
    journal.end_checkpoint(std::nullopt);
  }
  // Units after E do not matter.
  journal.begin_checkpoint();
  CHECK(journal.finish_walk().has_value());
  run.engine->move(3, 3);
  CHECK_FALSE(journal.walk_is_stale());
  journal.end_checkpoint(std::nullopt);
  CHECK(journal.takes_moves());
}

TEST_CASE("a walk is stale too if the unit that moves keys is large, or is divided") {
  TempDirectory directory;
  StoreOptions options = store_options(directory.path());
  options.journal.max_unit_bytes = 300;
  Running run = start(options);
  GroupCommitJournal& journal = run.store->journal();
  for (const bool moves : {false, true}) {
    journal.begin_checkpoint();
    ByteBuffer large;
    large.append(encode_effects(1, 200));
    journal.append(large.view(), 1, 1000, moves, &large);
    CHECK(journal.walk_is_stale() == moves);
    journal.end_checkpoint(std::nullopt);
    journal.begin_checkpoint();
    const std::string divided = encode_effects(4, 200);
    const Lsn before = journal.last_lsn();
    const Lsn last = journal.append(divided, 4, 1000, moves);
    CHECK(last == before + 4);
    CHECK(journal.walk_is_stale() == moves);
    journal.end_checkpoint(std::nullopt);
  }
}
