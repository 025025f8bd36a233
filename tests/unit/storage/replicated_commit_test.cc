// The replicated journal over a fake log: when commits are sent, what is acknowledged, and that the
// local log follows.
#include "storage/replicated_commit.h"

#include <algorithm>
#include <thread>

#include "tests/support/fake_remote_log.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;
using std::chrono::milliseconds;

namespace {

using Clock = ReplicatedCommit::Clock;

LogPosition beginning(Lsn lsn = 0) { return {"cluster", "1", 1, 0, lsn, 0}; }
std::string own_epoch() { return encode_epoch({"cluster", 1, "n1", "r1", true, "", 0}); }
std::string other_epoch() { return encode_epoch({"cluster", 2, "n2", "r2", false, "", 0}); }

// The contiguous prefix of the log, checked.
std::vector<TailCommit> commits_of(const FakeRemoteService& service, Lsn base = 0) {
  LogTail tail(beginning(base));
  std::vector<TailCommit> commits;
  for (const auto& [seq, bytes] : service.frames()) {
    if (seq != tail.next_seq()) break;
    const Status status = tail.add(seq, bytes, commits);
    REQUIRE_MESSAGE(status.ok(), status.message());
  }
  return commits;
}

// ReplicatedCommit alone: this thread is every thread.
struct Sender {
  explicit Sender(size_t in_flight = 4, uint64_t seed = 1, Clock::time_point acknowledge_from = {})
      : service(seed), log(service.connect()) {
    service.put_epoch(own_epoch());
    ReplicatedOptions options{own_epoch(), beginning(), in_flight, kMaxFramePayload, {}};
    options.acknowledge_from = acknowledge_from;
    options.now_ms = [this] { return boot_ms; };
    options.on_proof = [this](int64_t sent_ms) { proofs.push_back(sent_ms); };
    ReplicatedCallbacks callbacks;
    callbacks.on_durable = [this](Lsn lsn) { durable.push_back(lsn); };
    callbacks.on_change = [] {};
    callbacks.on_failed = [this](const Status& status) { failures.push_back(status); };
    commit = std::make_shared<ReplicatedCommit>(*log, std::move(options), std::move(callbacks));
  }
  ~Sender() {
    commit->stop();
    log->close();
  }

  static CommitBuffer unit(Lsn lsn, size_t size) {
    CommitBuffer buffer;
    append(buffer, lsn, size);
    return buffer;
  }
  static void append(CommitBuffer& buffer, Lsn lsn, size_t size, bool owned = false) {
    const std::string records = encode_record(1, lsn, size);
    ByteBuffer own;
    own.append(records);
    buffer.append({records, 1}, crc32c(records), {lsn, 1, 0}, owned ? &own : nullptr,
                  kMaxUnitBytes);
    if (owned) buffer.seal();
  }
  void add(CommitBuffer buffer) {
    commit->add(std::move(buffer), now);
    commit->pump(now);
  }

  FakeRemoteService service;
  std::unique_ptr<RemoteLog> log;
  std::vector<Lsn> durable;
  std::vector<Status> failures;
  std::vector<int64_t> proofs;
  int64_t boot_ms = 1000;
  std::shared_ptr<ReplicatedCommit> commit;
  Clock::time_point now = Clock::now() + std::chrono::hours(1);  // every repetition is due
};

}  // namespace

TEST_CASE("with nothing out a buffer goes at once; else large ones, after a frame, or after 2 ms") {
  Sender sender;
  CHECK(!sender.commit->wants(0, sender.now));
  CHECK(sender.commit->wants(1, sender.now));
  sender.add(Sender::unit(1, 10));
  CHECK(!sender.commit->wants(1, sender.now));
  CHECK(sender.commit->next_pump(1, sender.now) == sender.now + milliseconds(2));
  CHECK(!sender.commit->wants((64 << 10) - 1, sender.now + milliseconds(1)));
  CHECK(sender.commit->wants(64 << 10, sender.now));
  CHECK(sender.commit->wants(1, sender.now + milliseconds(2)));
  sender.add(Sender::unit(2, 10));
  CHECK(!sender.commit->wants(1, sender.now));
  // One of the two comes back.
  while (sender.service.outstanding() == 2) sender.service.step();
  CHECK(sender.commit->wants(1, sender.now));
}

TEST_CASE("no more frames are out than allowed, and a long commit waits for its turn") {
  for (const size_t in_flight : {size_t{1}, size_t{4}}) {
    Sender sender(in_flight);
    sender.add(Sender::unit(1, 3'000'000));
    CHECK(sender.service.outstanding() == in_flight);
    CHECK(!sender.commit->wants(1 << 20, sender.now + milliseconds(100)));
    CHECK(sender.commit->bytes() >= 3'000'000);
    while (!sender.commit->idle()) {
      sender.service.settle();
      sender.commit->pump(sender.now);
      CHECK(sender.service.outstanding() <= in_flight);
    }
    CHECK(sender.durable == std::vector<Lsn>{1});
    CHECK(sender.service.frames().size() == 12);
    for (const auto& [seq, frame] : sender.service.frames()) {
      CHECK(decode_frame(frame)->payload.size() <= kMaxFramePayload);
      CHECK(decode_frame(frame)->header.last_of_commit == (seq == 12));
    }
  }
}

TEST_CASE("large units that are not copied come whole") {
  Sender sender;
  CommitBuffer buffer;
  Sender::append(buffer, 1, 10);
  Sender::append(buffer, 2, 300'000, true);
  Sender::append(buffer, 3, 20);
  Sender::append(buffer, 4, 700'000, true);
  sender.add(std::move(buffer));
  while (!sender.commit->idle()) {
    sender.service.settle();
    sender.commit->pump(sender.now);
  }
  const std::vector<TailCommit> commits = commits_of(sender.service);
  REQUIRE(commits.size() == 1);
  CHECK(commits[0].position == sender.commit->position());
  const auto committed = sender.commit->take_committed();
  REQUIRE(committed.has_value());
  std::string bytes;
  for (const Bytes part : committed->buffer.divide().parts) bytes += part;
  CHECK(commits[0].units == bytes);
  CHECK(committed->position == commits[0].position);
  CHECK(sender.commit->bytes() == 0);
}

TEST_CASE("an acknowledgement waits for the frames before it, however they come back") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Sender sender(4, seed);
    for (Lsn lsn = 1; lsn <= 4; ++lsn) sender.add(Sender::unit(lsn, 10));
    sender.service.settle();
    CHECK(sender.durable == std::vector<Lsn>{1, 2, 3, 4});
  }
}

TEST_CASE("a frame of unknown outcome is sent again with the same bytes until it is there") {
  FakeFaults faults;
  faults.lost = 0.3;
  faults.unanswered = 0.3;
  faults.repeated = 0.3;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Sender sender(4, seed);
    sender.service.set_faults(faults);
    for (Lsn lsn = 1; lsn <= 30;) {
      if (sender.commit->wants(1 << 20, sender.now)) {
        sender.add(Sender::unit(lsn, lsn % 50));
        ++lsn;
      }
      sender.service.step();
      sender.commit->pump(sender.now);
    }
    for (int i = 0; i < 10000 && !sender.commit->idle(); ++i) {
      sender.service.step();
      sender.commit->pump(sender.now);
    }
    CHECK(sender.durable.size() == 30);
    CHECK(sender.failures.empty());
    CHECK(commits_of(sender.service).size() == 30);
  }
}

TEST_CASE("after another node has taken the epoch nothing is acknowledged") {
  Sender sender;
  sender.add(Sender::unit(1, 10));
  sender.service.settle();
  sender.add(Sender::unit(2, 10));
  sender.service.put_epoch(other_epoch());
  sender.service.settle();
  CHECK(sender.durable == std::vector<Lsn>{1});
  REQUIRE(sender.failures.size() == 1);
  CHECK(sender.failures[0].code() == StatusCode::kLocked);
  CHECK(sender.failures[0].message().find(other_epoch()) != std::string::npos);
  CHECK(!sender.commit->wants(1 << 20, sender.now));
}

TEST_CASE("a foreign frame in the own epoch ends it") {
  Sender sender;
  sender.service.put_frame(1, "something else");
  sender.add(Sender::unit(1, 10));
  sender.service.settle();
  CHECK(sender.durable.empty());
  REQUIRE(sender.failures.size() == 1);
  CHECK(sender.failures[0].code() == StatusCode::kDamaged);
  CHECK(sender.proofs.empty());
}

TEST_CASE("a committed frame proves that this node led when its first try was sent") {
  Sender sender;
  sender.add(Sender::unit(1, 10));
  sender.boot_ms = 1100;
  sender.add(Sender::unit(2, 10));
  CHECK(sender.proofs.empty());
  sender.service.settle();
  std::sort(sender.proofs.begin(), sender.proofs.end());
  CHECK(sender.proofs == std::vector<int64_t>{1000, 1100});
  // The first try is lost, the second one is written: the first one's time counts.
  sender.proofs.clear();
  FakeFaults faults;
  faults.lost = 1;
  sender.service.set_faults(faults);
  sender.boot_ms = 1200;
  sender.add(Sender::unit(3, 10));
  sender.service.settle();
  sender.service.set_faults({});
  sender.boot_ms = 1300;
  sender.commit->pump(sender.now);
  sender.service.settle();
  CHECK(sender.proofs == std::vector<int64_t>{1200});
}

TEST_CASE("a frame that an earlier try had written is acknowledged and proves nothing") {
  Sender sender;
  FakeFaults faults;
  faults.unanswered = 1;
  sender.service.set_faults(faults);
  sender.add(Sender::unit(1, 10));
  sender.service.settle();
  sender.service.set_faults({});
  sender.boot_ms = 5000;
  sender.commit->pump(sender.now);
  sender.service.settle();
  CHECK(sender.durable == std::vector<Lsn>{1});
  CHECK(sender.proofs.empty());
}

TEST_CASE("before its moment nothing is acknowledged, and frames are committed nevertheless") {
  const Clock::time_point from = Clock::now() + std::chrono::hours(2);
  Sender sender(4, 1, from);
  for (Lsn lsn = 1; lsn <= 10; ++lsn) {
    CHECK(sender.commit->wants(1 << 20, sender.now));
    sender.add(Sender::unit(lsn, 10));
    sender.service.settle();
  }
  CHECK(sender.service.frames().size() == 10);
  CHECK(sender.proofs.size() == 10);
  CHECK(sender.commit->next_pump(0, sender.now) == from);
  sender.commit->pump(from - milliseconds(1));
  CHECK(sender.durable.empty());
  CHECK(!sender.commit->take_committed().has_value());
  CHECK(!sender.commit->idle());
  CHECK(sender.commit->position() == beginning());
  CHECK(sender.commit->bytes() > 0);
  sender.commit->pump(from);
  CHECK(sender.durable == std::vector<Lsn>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(sender.commit->idle());
  CHECK(sender.commit->position().seq == 10);
  for (Lsn lsn = 1; lsn <= 10; ++lsn) {
    const auto committed = sender.commit->take_committed();
    REQUIRE(committed.has_value());
    CHECK(committed->position.lsn == lsn);
  }
  CHECK(sender.commit->next_pump(0, from) == Clock::time_point::max());
}

TEST_CASE("a node that is fenced before its moment acknowledges nothing") {
  const Clock::time_point from = Clock::now() + std::chrono::hours(2);
  Sender sender(4, 1, from);
  sender.add(Sender::unit(1, 10));
  sender.service.settle();
  sender.service.put_epoch(other_epoch());
  sender.add(Sender::unit(2, 10));
  sender.service.settle();
  sender.commit->pump(from);
  CHECK(sender.durable.empty());
  CHECK(sender.failures.size() == 1);
}

// --- the journal ---------------------------------------------------------------------------------

namespace {

StoreOptions group_options(const std::string& directory, SyncMode mode = SyncMode::kEverySecond) {
  StoreOptions options = store_options(directory, mode);
  options.journal.replicated = true;
  options.journal.replication_patience = milliseconds(10'000);
  return options;
}

// A node that leads, over a fake that has a thread.
struct Leader {
  explicit Leader(StoreOptions options, FakeFaults faults = {},
                  Clock::time_point acknowledge_from = {})
      : service(7, faults) {
    log = service.connect();
    options.journal.on_durable = [this](Lsn lsn) { told = lsn; };
    options.journal.on_failed = [this](const Status& status) {
      failed_with = status.code();
      ++failures;
    };
    MapReplay replay;
    auto opened = Store::open(std::move(options), replay);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    store = std::move(*opened);
    base = store->recovered().last_lsn;
    service.put_epoch(own_epoch());
    ReplicatedOptions leading{own_epoch(), beginning(base), 4, kMaxFramePayload, {}};
    leading.acknowledge_from = acknowledge_from;
    store->journal().lead(*log, std::move(leading));
    engine = std::make_unique<MapEngine>(&store->journal(), replay.state);
    service.start();
  }
  ~Leader() { end(); }
  void end() {
    if (store == nullptr) return;
    CHECK(store->close(CloseMode::kFlush).ok() == (failures == 0));
    log->close();
    store.reset();
    service.stop();
  }

  FakeRemoteService service;
  std::unique_ptr<RemoteLog> log;
  std::atomic<Lsn> told{0};
  std::atomic<StatusCode> failed_with{StatusCode::kOk};
  std::atomic<int> failures{0};
  std::unique_ptr<Store> store;
  std::unique_ptr<MapEngine> engine;
  Lsn base = 0;
};

}  // namespace

TEST_CASE("durable is what the replicated log has, and the local log follows with the position") {
  for (const SyncMode mode : {SyncMode::kAlways, SyncMode::kEverySecond, SyncMode::kNever}) {
    TempDirectory directory;
    Leader leader(group_options(directory.path(), mode));
    GroupCommitJournal& journal = leader.store->journal();
    for (uint32_t i = 1; i <= 200; ++i) {
      leader.engine->set(i % 7, i, i % 100);
      CHECK(journal.flush());
      if (i % 20 == 0) CHECK(eventually([&] { return journal.durable_lsn() == i; }));
    }
    CHECK(eventually([&] { return leader.told == 200; }));
    const std::vector<TailCommit> commits = commits_of(leader.service);
    REQUIRE(!commits.empty());
    CHECK(commits.back().position.lsn == 200);
    CHECK(eventually([&] { return journal.written_lsn() == 200; }));
    CHECK(journal.unwritten_bytes() == 0);
    const auto state = leader.engine->state();
    leader.end();
    const ReadBack back = read_back(directory.path());
    REQUIRE(back.status.ok());
    CHECK(back.state == state);
    CHECK(back.recovered.last_lsn == 200);
    CHECK(back.recovered.position == encode_position(commits.back().position));
  }
}

TEST_CASE("while the replicated log is out of reach nothing is durable, and units press") {
  TempDirectory directory;
  StoreOptions options = group_options(directory.path());
  options.journal.replication_patience = milliseconds(20);
  Leader leader(options);
  GroupCommitJournal& journal = leader.store->journal();
  leader.service.set_stalled(true);
  for (uint32_t i = 1; i <= 100; ++i) {
    leader.engine->set(i, i, 100'000);
    journal.flush();
  }
  CHECK(!journal.sync());
  CHECK(journal.durable_lsn() == 0);
  CHECK(journal.written_lsn() == 0);
  CHECK(journal.unwritten_bytes() >= 10'000'000);
  CHECK(journal.pressing_bytes() >= 5'000'000);
  CHECK(!journal.failed());
  // A checkpoint cannot end, and says why.
  leader.store->start_checkpoints([&] { return leader.engine->walk(); }, [] { return 1; });
  Checkpointer& checkpointer = *leader.store->checkpointer();
  const Status status = checkpointer.wait_until_done(checkpointer.request());
  CHECK(status.message() == "the replicated log could not be reached");
  leader.service.set_stalled(false);
  CHECK(eventually([&] { return journal.written_lsn() == 100; }));
  CHECK(journal.sync());
  CHECK(journal.unwritten_bytes() == 0);
  CHECK(checkpointer.wait_until_done(checkpointer.request()).ok());
}

TEST_CASE("a fenced node stops: nothing later is durable, here or there") {
  TempDirectory directory;
  Leader leader(group_options(directory.path()));
  GroupCommitJournal& journal = leader.store->journal();
  leader.engine->set(1, 1);
  CHECK(journal.sync());
  leader.service.put_epoch(other_epoch());
  leader.engine->set(1, 2);
  journal.flush();
  CHECK(eventually([&] { return leader.failures == 1; }));
  CHECK(leader.failed_with == StatusCode::kLocked);
  CHECK(journal.failure().code() == StatusCode::kLocked);
  CHECK(journal.failure().message().find("another node has taken") != std::string::npos);
  CHECK(journal.failed());
  CHECK(!journal.flush());
  CHECK(!journal.sync());
  CHECK(journal.durable_lsn() == 1);
  leader.end();
  const ReadBack back = read_back(directory.path());
  CHECK(back.recovered.last_lsn == 1);
  CHECK(back.state == std::map<uint32_t, uint64_t>{{1, 1}});
}

TEST_CASE("many threads over a bad network: the local log is the replicated one") {
  FakeFaults faults;
  faults.lost = 0.1;
  faults.unanswered = 0.1;
  faults.repeated = 0.2;
  TempDirectory directory(true);
  Leader leader(group_options(directory.path()), faults);
  GroupCommitJournal& journal = leader.store->journal();
  std::atomic<int> late{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 500; ++i) {
        const Lsn lsn = leader.engine->set(t, i, i % 200);
        journal.flush();
        if (i % 50 == 0 && !eventually([&] { return journal.durable_lsn() >= lsn; })) ++late;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(late == 0);
  CHECK(journal.sync());
  CHECK(journal.synced_lsn() == 2000);
  MapReplay replay;
  for (const TailCommit& commit : commits_of(leader.service)) {
    UnitCursor cursor(commit.units);
    while (cursor.next()) REQUIRE(replay.apply(cursor.records(), cursor.header().records));
  }
  CHECK(replay.state == leader.engine->state());
  leader.end();
  const ReadBack back = read_back(directory.path());
  CHECK(back.state == replay.state);
  CHECK(back.recovered.last_lsn == 2000);
}

TEST_CASE("a node that follows writes what it reads, and can lead from there after a restart") {
  TempDirectory first;
  TempDirectory second;
  std::vector<TailCommit> commits;
  {
    Leader leader(group_options(first.path()));
    for (uint32_t i = 1; i <= 50; ++i) {
      leader.engine->set(i % 5, i);
      CHECK(leader.store->journal().sync());
    }
    commits = commits_of(leader.service);
  }
  REQUIRE(commits.back().position.lsn == 50);
  for (size_t i = 0; i < commits.size();) {
    MapReplay replay;
    auto store = Store::open(group_options(second.path()), replay);
    REQUIRE_MESSAGE(store.ok(), store.status().message());
    GroupCommitJournal& journal = (*store)->journal();
    for (size_t end = std::min(i + 20, commits.size()); i < end; ++i) {
      journal.follow_begins(commits[i]);
      REQUIRE(journal.follow(commits[i]));
      CHECK(journal.durable_lsn() == commits[i].position.lsn);
      CHECK(journal.last_lsn() == commits[i].position.lsn);
    }
    CHECK((*store)->close(CloseMode::kFlush).ok());
  }
  CHECK(read_back(second.path()).state == read_back(first.path()).state);
  const Result<LogPosition> position = decode_position(read_back(second.path()).recovered.position);
  REQUIRE(position.ok());
  CHECK(*position == commits.back().position);
  Leader leader(group_options(second.path()));
  CHECK(leader.engine->set(1, 1000) == 51);
  CHECK(leader.store->journal().sync());
  CHECK(commits_of(leader.service, 50).back().position.lsn == 51);
}

TEST_CASE("a new leader wakes by itself when it may acknowledge, and not before") {
  TempDirectory directory;
  const Clock::time_point from = Clock::now() + milliseconds(300);
  Leader leader(group_options(directory.path()), {}, from);
  GroupCommitJournal& journal = leader.store->journal();
  leader.engine->set(1, 1);
  journal.flush();
  CHECK(eventually([&] { return leader.service.frames().size() == 1; }));
  CHECK((journal.durable_lsn() == 0 || Clock::now() >= from));
  CHECK(eventually([&] { return journal.durable_lsn() == 1; }));
  CHECK(Clock::now() >= from);
  CHECK(eventually([&] { return leader.told == 1 && journal.written_lsn() == 1; }));
}

TEST_CASE("an unreachable log ends neither the server's end nor what was acknowledged") {
  for (const CloseMode mode : {CloseMode::kFlush, CloseMode::kCheckpoint, CloseMode::kDiscard}) {
    TempDirectory directory;
    StoreOptions options = group_options(directory.path());
    options.journal.settle_patience = milliseconds(200);
    Leader leader(options);
    GroupCommitJournal& journal = leader.store->journal();
    leader.engine->set(1, 1);
    CHECK(journal.sync());
    CHECK(journal.settle());
    leader.service.set_stalled(true);
    leader.engine->set(1, 2);
    journal.flush();
    leader.store->start_checkpoints([&] { return leader.engine->walk(); }, [] { return 1; });
    leader.store->checkpointer()->request();  // its end waits for the log
    const Clock::time_point start = Clock::now();
    const Status status = leader.store->close(mode);
    CHECK(Clock::now() - start < std::chrono::seconds(5));  // replication_patience is 10 s
    CHECK(status.code() ==
          (mode == CloseMode::kDiscard ? StatusCode::kOk : StatusCode::kCancelled));
    const ReadBack back = read_back(directory.path());
    CHECK(back.state == std::map<uint32_t, uint64_t>{{1, 1}});
    leader.store.reset();
    leader.log->close();
    leader.service.stop();
  }
}

TEST_CASE("a commit says that one of its units moves keys") {
  TempDirectory directory;
  Leader leader(group_options(directory.path()));
  for (const bool moves : {false, true, false}) {
    if (moves) {
      leader.engine->move(1, 1);
    } else {
      leader.engine->set(1, 1);
    }
    CHECK(leader.store->journal().sync());
    CHECK(commits_of(leader.service).back().moves == moves);
  }
}

TEST_CASE("a commit says so too if the unit that moves keys is divided") {
  TempDirectory directory;
  StoreOptions options = group_options(directory.path());
  options.journal.max_unit_bytes = 300;
  Leader leader(options);
  GroupCommitJournal& journal = leader.store->journal();
  const std::string records = encode_effects(4, 200);
  for (const bool moves : {false, true, false}) {
    const Lsn before = journal.last_lsn();
    const Lsn last = journal.append(records, 4, 1000, moves);
    CHECK(last == before + 4);
    CHECK(journal.sync());
    CHECK(commits_of(leader.service).back().moves == moves);
  }
}

TEST_CASE("a commit that takes several values of the local log has its place behind the last one") {
  TempDirectory directory;
  StoreOptions options = group_options(directory.path());
  options.journal.max_unit_bytes = 1'200'000;
  Leader leader(options);
  leader.service.set_stalled(true);
  leader.engine->set(1, 1, 1'100'000);  // more than may be out: the next commit waits and grows
  leader.store->journal().flush();
  REQUIRE(eventually([&] { return leader.service.outstanding() == 4; }));
  for (uint32_t key = 2; key <= 4; ++key) leader.engine->set(key, key, 600'000);
  leader.service.set_stalled(false);
  CHECK(leader.store->journal().sync());
  const LogPosition position = commits_of(leader.service).back().position;
  leader.end();
  CHECK(read_back(directory.path()).recovered.position == encode_position(position));
}

TEST_CASE("a sync that is asked for comes when the replicated log has the units, in any mode") {
  std::atomic<int> synced{0};
  TempDirectory directory;
  Leader leader(group_options(directory.path(), SyncMode::kNever));
  GroupCommitJournal& journal = leader.store->journal();
  for (int i = 1; i <= 10; ++i) {
    leader.service.set_stalled(true);
    leader.engine->set(1, static_cast<uint64_t>(i));
    journal.flush();
    journal.when_synced([&](bool is_synced) { synced += is_synced ? 1 : 100; });
    leader.service.set_stalled(false);
    REQUIRE(eventually([&] { return synced == i; }));
  }
}
