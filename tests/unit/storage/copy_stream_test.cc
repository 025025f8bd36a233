// A copy of a log, as a stream, and the directory that is made of it: the same data and the same
// place in the replicated log, or an error that names the place. Never less.
#include "storage/copy_stream.h"

#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "storage/copy_writer.h"
#include "storage/group_mark.h"
#include "tests/support/contents_log.h"
#include "tests/support/copy_source.h"
#include "tests/support/fault_fs.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> copy_items(Log& log, const std::string& mark = {}) {
  auto reader = CopyReader::open(log, mark);
  REQUIRE_MESSAGE(reader.ok(), reader.status().message());
  std::vector<std::string> items = items_of(**reader);
  CHECK((*reader)->status().ok());
  return items;
}

std::string make_copy(bool with_position = true) {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path(), with_position);
  REQUIRE(log != nullptr);
  return join_items(copy_items(*log));
}

// Loads a copy in parts of `step` bytes, and puts it in place if it is whole.
Status load(const std::string& directory, const std::string& copy, size_t step = 70'000,
            bool in_group = true) {
  CopyWriter writer(directory, in_group);
  CopyChecker checker(&writer);
  for (size_t at = 0; at < copy.size(); at += step) {
    if (Status status = checker.take(Bytes(copy).substr(at, step)); !status.ok()) return status;
  }
  if (Status status = checker.finish(); !status.ok()) return status;
  if (Status status = accept_copy(directory); !status.ok()) return status;
  const Result<bool> installed = install_copy(directory);
  CHECK((!installed.ok() || *installed));
  return installed.status();
}

void require_copied(const std::string& directory, bool in_group = true) {
  const ReadBack back = read_back(directory);
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.state == copied_state(kCopiedLast));
  CHECK(back.recovered.last_lsn == kCopiedLast);
  CHECK(back.recovered.checkpoint->begin_lsn == kCopiedBegin);
  CHECK(back.recovered.position ==
        (in_group ? encode_position(copied_position(kCopiedLast)) : std::string()));
}

struct FailingDisk {
  std::shared_ptr<FaultFs> fs = std::make_shared<FaultFs>(rocksdb::FileSystem::Default());
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(fs);
};

bool has_leftovers(const std::string& directory) {
  return fs::exists(directory + "/incoming-copy") || fs::exists(directory + "/replaced-data");
}

}  // namespace

TEST_CASE("a copy in parts of any size makes a directory with the same data and place") {
  const std::string copy = make_copy();
  CHECK(begins_copy(copy));
  CHECK(!begins_copy("REDIS0011" + copy));
  for (const size_t step : {size_t{1}, size_t{4093}, copy.size()}) {
    TempDirectory directory(true);
    const Status status = load(directory.path(), copy, step);
    REQUIRE_MESSAGE(status.ok(), status.message());
    RocksdbLogOptions options;
    options.directory = directory.path();
    CHECK((*open_rocksdb_log(options))->mark().value() == kCopiedLast);
    require_copied(directory.path());
    CHECK(!has_leftovers(directory.path()));
  }
}

TEST_CASE("a copy that would leave less of the disk than is to be kept writes nothing") {
  FailingDisk disk;
  TempDirectory directory(true);
  CopyHead head;
  head.summary.bytes = 300 << 10;
  disk.fs->set_capacity(1 << 20);
  const uint64_t kept = (1 << 20) - head.summary.bytes;
  const Status status = CopyWriter(directory.path(), true, disk.env.get(), kept + 1).begin(head);
  CHECK(status.code() == StatusCode::kNoSpace);
  CHECK(status.message().find("min-free-disk") != std::string::npos);
  CHECK(!has_leftovers(directory.path()));
  CHECK(CopyWriter(directory.path(), true, disk.env.get(), kept).begin(head).ok());
}

TEST_CASE("the mark of a group's beginning goes along, and neither it nor the place to a backup") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  const LogPosition mark = {"cluster", "1", 0, 0, 5, 0};
  const std::string copy = join_items(copy_items(*log, encode_position(mark)));
  TempDirectory node(true);
  REQUIRE(load(node.path(), copy).ok());
  CHECK(*read_lead_mark(node.path()) == mark);
  require_copied(node.path());
  TempDirectory backup(true);
  REQUIRE(load(backup.path(), copy, copy.size(), false).ok());
  CHECK(!read_lead_mark(backup.path())->has_value());
  require_copied(backup.path(), false);
}

TEST_CASE("the copy of a store tells where its group begins") {
  TempDirectory directory(true);
  REQUIRE(make_copied_log(directory.path()) != nullptr);
  const LogPosition mark = {"cluster", "1", 0, 0, 5, 0};
  REQUIRE(write_lead_mark(directory.path(), mark).ok());
  MapReplay replay;
  auto store = Store::open(store_options(directory.path()), replay);
  REQUIRE(store.ok());
  const auto reader = (*store)->read_copy();
  REQUIRE(reader.ok());
  CopyChecker checker(nullptr);
  REQUIRE(checker.take(join_items(items_of(**reader))).ok());
  CHECK(checker.head().mark == encode_position(mark));
}

TEST_CASE("a reader goes on although the log removes what it reads") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  auto reader = CopyReader::open(*log, "");
  REQUIRE(reader.ok());
  Bytes header;
  Bytes body;
  REQUIRE((*reader)->next(header, body));
  std::string copy = std::string(header) + std::string(body);
  for (Lsn first = kCopiedLast + 1; first < 200; first += 2)
    REQUIRE(append_copied(*log, first).ok());
  REQUIRE(checkpoint_copied(*log, 5, 150).ok());
  REQUIRE(log->drop_checkpoints_before(5).ok());
  REQUIRE(log->trim_before(151).ok());
  copy += join_items(items_of(**reader));
  CHECK((*reader)->status().ok());
  reader->reset();
  TempDirectory directory(true);
  const Status status = load(directory.path(), copy);
  REQUIRE_MESSAGE(status.ok(), status.message());
  require_copied(directory.path());
}

TEST_CASE("a copy is whole while the log is written") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (Lsn first = kCopiedLast + 1; !stop.load(); first += 2) {
      if (!append_copied(*log, first).ok()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  Lsn most = 0;
  for (int i = 0; i < 100; ++i) {
    CopyChecker checker(nullptr);
    auto reader = CopyReader::open(*log, "");
    Status status = reader.status();
    if (status.ok()) status = checker.take(join_items(items_of(**reader)));
    if (status.ok()) status = checker.finish();
    CHECK_MESSAGE(status.ok(), status.message());
    CHECK(checker.head().position == encode_position(copied_position(checker.head().last_lsn)));
    most = checker.head().last_lsn;
  }
  stop.store(true);
  writer.join();
  CHECK(most > kCopiedLast);
}

TEST_CASE("every flipped bit is refused, and the directory stays as it was") {
  const std::string copy = make_copy();
  TempDirectory directory(true);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = copy;
    // Half of the bits in the head and the ends of the items, which are a small part of it.
    const size_t at = i % 2 == 0 ? random() % damaged.size() : random() % 200;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const Status status = load(directory.path(), damaged);
    REQUIRE_MESSAGE(!status.ok(), "byte " << at);
    REQUIRE(install_copy(directory.path()).ok());
    REQUIRE(fs::is_empty(directory.path()));
  }
}

TEST_CASE("a copy that is cut anywhere is refused") {
  const std::string copy = make_copy();
  for (size_t i = 0; i < 100; ++i) {
    CopyChecker checker(nullptr);
    const size_t length = i < 50 ? copy.size() * i / 50 : copy.size() - (i - 49);
    REQUIRE(checker.take(copy.substr(0, length)).ok());
    CHECK(checker.finish().code() == StatusCode::kDamaged);
  }
}

TEST_CASE("items that are missing, repeated or out of order are refused") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  const std::vector<std::string> items = copy_items(*log);
  // Head, three pieces, the commits from 11 and 12 to 19 and 20, end.
  REQUIRE(items.size() == 10);
  const auto refused = [](const std::vector<std::string>& wrong) {
    CopyChecker checker(nullptr);
    const Status status = checker.take(join_items(wrong));
    return !status.ok() || !checker.finish().ok();
  };
  CHECK(!refused(items));
  for (size_t i = 0; i < items.size(); ++i) {
    auto without = items;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(refused(without));
    auto twice = items;
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), items[i]);
    CHECK(refused(twice));
    if (i == 0) continue;
    auto swapped = items;
    std::swap(swapped[i], swapped[i - 1]);
    CHECK(refused(swapped));
  }
}

TEST_CASE("a copy of a later version, or of a directory of a later format, is refused in words") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  const std::string whole = copy_items(*log)[0];
  for (const size_t field : {4, 8}) {
    std::string head = whole;
    ++head[kCopyItemBytes + field];
    const uint32_t body_crc = crc32c(Bytes(head).substr(kCopyItemBytes));
    std::memcpy(head.data() + 4, &body_crc, 4);
    const uint32_t header_crc = crc32c(Bytes(head).substr(4, kCopyItemBytes - 4));
    std::memcpy(head.data(), &header_crc, 4);
    CopyChecker checker(nullptr);
    const Status status = checker.take(head);
    CHECK(status.code() == StatusCode::kUnsupported);
    CHECK(status.message().find("this version of Sluice supports") != std::string::npos);
  }
}

// The numbers of the items are right, so that only what they hold is wrong.
TEST_CASE("a log that lacks commits is refused, where the copy is read or where it arrives") {
  const auto copy_of = [](const std::vector<Lsn>& firsts) {
    TempDirectory source(true);
    RocksdbLogOptions options;
    options.directory = source.path();
    auto log = open_rocksdb_log(options);
    for (const Lsn first : firsts) REQUIRE(append_copied(**log, first).ok());
    REQUIRE(checkpoint_copied(**log, 4, kCopiedBegin).ok());
    return join_items(copy_items(**log));
  };
  TempDirectory whole(true);
  CHECK(load(whole.path(), copy_of({11, 13, 15})).ok());
  for (const auto& firsts : std::vector<std::vector<Lsn>>{{13, 15}, {11, 15}, {9}}) {
    TempDirectory directory(true);
    const Status status = load(directory.path(), copy_of(firsts));
    CHECK(status.code() == StatusCode::kDamaged);
    CHECK(!fs::exists(directory.path() + "/FORMAT"));
  }
}

TEST_CASE("a log that cannot be read to its end has no copy, and one of few pieces is refused") {
  Contents contents;
  contents.commits = {{2, copied_unit(2)}, {3, copied_unit(3)}};
  std::string piece = std::string(kPieceHeaderBytes, '\0') + encode_record(1, 1);
  seal_piece(piece.data(), piece.size(), {4, 0, 1});
  contents.pieces = {piece};
  contents.summary = CheckpointSummary{4, 1, 2, 1, 2, 1, 1, piece.size()};
  ContentsLog log(contents);
  const auto arrives = [&] {
    CopyChecker checker(nullptr);
    const Status status = checker.take(join_items(copy_items(log)));
    return status.ok() ? checker.finish() : status;
  };
  CHECK(arrives().ok());
  contents.summary->pieces = 2;
  CHECK(arrives().code() == StatusCode::kDamaged);
  contents.summary->records = 2;
  CHECK(arrives().code() == StatusCode::kDamaged);
  contents.log_status = Status(StatusCode::kDamaged, "made");
  CHECK(CopyReader::open(log, "").status().code() == StatusCode::kDamaged);
}

TEST_CASE("a copy that a checkpoint overtakes as it begins is of that checkpoint") {
  struct OvertakenLog final : ContentsLog {
    explicit OvertakenLog(Contents& of) : ContentsLog(of), contents(of) {}
    std::unique_ptr<PieceReader> read_checkpoint(uint64_t number) override {
      contents.summary->checkpoint = 5;
      return ContentsLog::read_checkpoint(number);
    }
    Contents& contents;
  };
  Contents contents;
  contents.summary = CheckpointSummary{4, 1, 1, 1, 2, 0, 0, 0};
  OvertakenLog log(contents);
  CopyChecker checker(nullptr);
  REQUIRE(checker.take(join_items(copy_items(log))).ok());
  CHECK(checker.head().summary.checkpoint == 5);
}

// Without a journal units are kept only while a checkpoint is written, and one that fails leaves
// them.
TEST_CASE("a log whose units follow a gap is copied up to the gap") {
  struct Case {
    std::vector<Lsn> firsts;
    Lsn last = 0;
  };
  for (const Case& log_of : {Case{{11, 17, 19}, 12}, Case{{11, 13}, 14}, Case{{11, 13, 17}, 14},
                             Case{{12, 14, 17}, 15}, Case{{12, 17, 25}, 13}}) {
    TempDirectory source(true);
    RocksdbLogOptions options;
    options.directory = source.path();
    auto log = open_rocksdb_log(options);
    for (const Lsn first : log_of.firsts) {
      std::string commit = copied_unit(first, kUnitFollowsGap) + copied_unit(first + 1);
      REQUIRE((*log)->append_commit(first, commit, true).ok());
    }
    REQUIRE(checkpoint_copied(**log, 4, kCopiedBegin).ok());
    TempDirectory directory(true);
    const Status status = load(directory.path(), join_items(copy_items(**log)));
    REQUIRE_MESSAGE(status.ok(), status.message());
    const ReadBack back = read_back(directory.path());
    CHECK(back.recovered.last_lsn == log_of.last);
    CHECK(back.state == copied_state(log_of.last));
  }
}

TEST_CASE("a log without a checkpoint has no copy yet") {
  TempDirectory source(true);
  RocksdbLogOptions options;
  options.directory = source.path();
  auto log = open_rocksdb_log(options);
  REQUIRE(append_copied(**log, 1).ok());
  CHECK(CopyReader::open(**log, "").status().code() == StatusCode::kInvalid);
}

TEST_CASE("a copy takes the place of other data, also after a crash at any step") {
  const std::string copy = make_copy();
  for (int crash = 0; crash < 8; ++crash) {
    TempDirectory directory(true);
    const std::string& path = directory.path();
    {
      MapReplay replay;
      auto store = Store::open(store_options(path), replay);
      REQUIRE(store.ok());
      MapEngine engine(&(*store)->journal());
      for (uint32_t key = 100; key < 120; ++key) engine.set(key, key);
      REQUIRE((*store)->close(CloseMode::kFlush).ok());
    }
    REQUIRE(write_lead_mark(path, {"other", "1", 0, 0, 20, 0}).ok());
    REQUIRE(ask_to_load_anew(path, "").ok());
    write_file(path + "/node-id", "kept");
    CopyWriter writer(path, true);
    CopyChecker checker(&writer);
    REQUIRE(checker.take(copy).ok());
    const std::string incoming = path + "/incoming-copy/";
    const std::string old = path + "/replaced-data/";
    if (crash == 0) {
      // Before it was accepted: the old data stay.
      REQUIRE(*install_copy(path) == false);
      CHECK(read_back(path).state.count(100) == 1);
      CHECK(is_to_load_anew(path));
      continue;
    }
    REQUIRE(accept_copy(path).ok());
    if (crash > 1) fs::create_directory(old);
    if (crash > 2) fs::rename(path + "/FORMAT", old + "FORMAT");
    if (crash > 3) {
      for (const char* part : {"group-base", "high-water-mark", "log"}) {
        fs::rename(path + "/" + part, old + part);
      }
    }
    if (crash > 4) fs::rename(incoming + "accepted", incoming + "install");
    if (crash > 5) fs::rename(incoming + "FORMAT", path + "/FORMAT");
    if (crash > 6) {
      REQUIRE(*install_copy(path));
      fs::create_directory(old);
    }
    REQUIRE(finish_copy(path).ok());
    require_copied(path);
    CHECK(!read_lead_mark(path)->has_value());
    CHECK(!is_to_load_anew(path));
    CHECK(!has_leftovers(path));
    CHECK(read_file(path + "/node-id") == "kept");
  }
}

TEST_CASE("an accepted copy is whole after a power cut") {
  TempDirectory source(true);
  const std::unique_ptr<Log> log = make_copied_log(source.path());
  const LogPosition mark = {"cluster", "1", 0, 0, 5, 0};
  const FailingDisk disk;
  TempDirectory directory(true);
  const std::string& path = directory.path();
  CopyWriter writer(path, true, disk.env.get());
  CopyChecker checker(&writer);
  REQUIRE(checker.take(join_items(copy_items(*log, encode_position(mark)))).ok());
  REQUIRE(checker.finish().ok());
  REQUIRE(accept_copy(path, disk.env.get()).ok());
  disk.fs->lose_unsynced(1, true);
  REQUIRE(finish_copy(path).ok());
  require_copied(path);
  const auto found = read_lead_mark(path);
  REQUIRE_MESSAGE(found.ok(), found.status().message());
  CHECK(*found == mark);
}

TEST_CASE("whose data a copy is to replace is known after a power cut") {
  const FailingDisk disk;
  TempDirectory directory(true);
  REQUIRE(ask_to_load_anew(directory.path(), "cluster", disk.env.get()).ok());
  disk.fs->lose_unsynced(1, true);
  CHECK(load_anew_cluster(directory.path()) == "cluster");
}

TEST_CASE("names are synced where they come to first, and an install that fails is completed") {
  const std::string copy = make_copy();
  std::vector<std::string> synced;
  for (uint64_t operation = 1;; ++operation) {
    CAPTURE(operation);
    const FailingDisk disk;
    TempDirectory directory(true);
    const std::string& path = directory.path();
    REQUIRE(read_back(path).status.ok());
    REQUIRE(ask_to_load_anew(path, "").ok());
    CopyWriter writer(path, true);
    CopyChecker checker(&writer);
    REQUIRE(checker.take(copy).ok());
    REQUIRE(checker.finish().ok());
    REQUIRE(accept_copy(path).ok());
    disk.fs->fail_at(operation, FaultKind::kIoError, false);
    const bool installed = install_copy(path, disk.env.get()).ok();
    CHECK(installed != disk.fs->has_failed());
    if (!installed) {
      const std::string failed = disk.fs->failed_operation();
      const size_t at = failed.find(path) + path.size();
      synced.push_back(failed.substr(at, failed.find(" after ") - at));
      REQUIRE(finish_copy(path).ok());
    }
    require_copied(path);
    CHECK(!is_to_load_anew(path));
    CHECK(!has_leftovers(path));
    if (installed) break;
  }
  CHECK(synced == std::vector<std::string>{"/replaced-data", "", "/incoming-copy", "",
                                           "/incoming-copy", "", ""});
}

TEST_CASE("what a copy has left is not touched while another process has the directory") {
  TempDirectory directory(true);
  const auto lock = DirectoryLock::take(directory.path());
  REQUIRE(lock.ok());
  fs::create_directory(directory.path() + "/incoming-copy");
  CHECK(finish_copy(directory.path()).code() == StatusCode::kLocked);
  CHECK(fs::exists(directory.path() + "/incoming-copy"));
}
