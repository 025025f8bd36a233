// The log on RocksDB, through its interface.
#include "storage/rocksdb_log.h"

#include "tests/support/storage_support.h"

#include <dlfcn.h>

#include <filesystem>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

std::unique_ptr<Log> open(const std::string& directory, size_t memtable_bytes = 64 << 10) {
  RocksdbLogOptions options;
  options.directory = directory;
  options.memtable_bytes = memtable_bytes;
  auto log = open_rocksdb_log(options);
  REQUIRE_MESSAGE(log.ok(), log.status().message());
  return std::move(*log);
}

std::string bytes_of(Lsn lsn, size_t size) {
  return std::string(size, static_cast<char>('a' + lsn % 26));
}

std::vector<Lsn> first_lsns(Log& log, Lsn from) {
  std::vector<Lsn> found;
  const auto reader = log.read_from(from);
  Lsn first = 0;
  Bytes commit;
  while (reader->next(first, commit)) found.push_back(first);
  CHECK(reader->status().ok());
  return found;
}

std::string sealed(uint64_t checkpoint, uint32_t number, const std::string& records) {
  std::string piece(kPieceHeaderBytes, '\0');
  piece += records;
  seal_piece(piece.data(), piece.size(), {checkpoint, number, 1});
  return piece;
}

Status write_checkpoint(Log& log, uint64_t number, uint32_t pieces, size_t bytes,
                        bool commit = true) {
  auto writer = log.start_checkpoint(number);
  if (!writer.ok()) return writer.status();
  for (uint32_t i = 0; i < pieces; ++i) {
    if (Status status = (*writer)->add_piece(i, sealed(number, i, std::string(bytes, 'p')));
        !status.ok()) {
      return status;
    }
  }
  CheckpointSummary summary;
  summary.checkpoint = number;
  summary.pieces = pieces;
  if (!commit) return {};
  const Status status = (*writer)->finish(summary);
  return status.ok() ? (*writer)->commit() : status;
}

uint32_t count_pieces(Log& log, uint64_t checkpoint) {
  const auto reader = log.read_checkpoint(checkpoint);
  uint32_t count = 0;
  uint32_t number = 0;
  Bytes piece;
  while (reader->next(number, piece)) CHECK(number == count++);
  CHECK(reader->status().ok());
  return count;
}

// The bytes that this process has passed to the kernel.
uint64_t written_bytes() {
  const std::string text = read_file("/proc/self/io");
  const size_t at = text.find("wchar: ");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 7, nullptr, 10);
}

}  // namespace

TEST_CASE("commits are read back in order, from memory and from files") {
  TempDirectory directory;
  for (int round = 0; round < 2; ++round) {
    auto log = open(directory.path());
    if (round == 0) {
      for (Lsn lsn = 1; lsn <= 500; ++lsn) {
        REQUIRE(log->append_commit(lsn, bytes_of(lsn, 1000), false).ok());
      }
      CHECK(log->sync().ok());
    }
    Lsn expected = 1;
    const auto reader = log->read_from(1);
    Lsn first = 0;
    Bytes commit;
    while (reader->next(first, commit)) {
      REQUIRE(first == expected);
      REQUIRE(commit == bytes_of(first, 1000));
      ++expected;
    }
    CHECK(reader->status().ok());
    CHECK(expected == 501);
  }
}

TEST_CASE("reading starts with the commit that contains the lsn") {
  TempDirectory directory;
  auto log = open(directory.path());
  for (const Lsn lsn : {10, 20, 30}) REQUIRE(log->append_commit(lsn, "commit", false).ok());
  CHECK(first_lsns(*log, 1) == std::vector<Lsn>{10, 20, 30});
  CHECK(first_lsns(*log, 10) == std::vector<Lsn>{10, 20, 30});
  CHECK(first_lsns(*log, 19) == std::vector<Lsn>{10, 20, 30});
  CHECK(first_lsns(*log, 20) == std::vector<Lsn>{20, 30});
  CHECK(first_lsns(*log, 99) == std::vector<Lsn>{30});
}

TEST_CASE("a new directory is made, and opened again, without a complaint") {
  TempDirectory directory(true);
  for (int round = 0; round < 2; ++round) {
    std::string complaints;
    RocksdbLogOptions options;
    options.directory = directory.path() + "/data";
    options.sink = [&](LogLevel level, std::string_view message) {
      if (level >= LogLevel::kWarning) complaints += message;
    };
    auto log = open_rocksdb_log(options);
    REQUIRE(log.ok());
    CHECK(complaints == "");
  }
}

TEST_CASE("commits that are handed over together are all there") {
  TempDirectory directory;
  {
    auto log = open(directory.path());
    const std::string a = bytes_of(1, 5000);
    const std::string b = bytes_of(4, 7000);
    const Bytes whole[] = {a};
    const Bytes parts[] = {Bytes(b).substr(0, 100), Bytes(b).substr(100, 1), Bytes(b).substr(101)};
    const Commit commits[] = {{1, whole}, {4, parts}};
    REQUIRE(log->append_commits(commits, true).ok());
  }
  auto log = open(directory.path());
  CHECK(first_lsns(*log, 1) == std::vector<Lsn>{1, 4});
  Lsn first = 0;
  Bytes read;
  const auto reader = log->read_from(4);
  REQUIRE(reader->next(first, read));
  CHECK(read == bytes_of(4, 7000));
}

TEST_CASE("the positions beside commits are no commits, and go with them") {
  TempDirectory directory;
  auto log = open(directory.path());
  CHECK(log->position_at(0).value().empty());
  for (Lsn lsn = 1; lsn <= 91; lsn += 10) {
    const std::string position = "at " + std::to_string(lsn);
    REQUIRE(log->append_commit(lsn, bytes_of(lsn, 20'000), lsn % 20 == 1, position).ok());
  }
  const std::vector<Lsn> all = {1, 11, 21, 31, 41, 51, 61, 71, 81, 91};
  CHECK(first_lsns(*log, 0) == all);
  CHECK(first_lsns(*log, 45) == std::vector<Lsn>{41, 51, 61, 71, 81, 91});
  CHECK(first_lsns(*log, 51) == std::vector<Lsn>{51, 61, 71, 81, 91});
  CHECK(log->position_at(91).value() == "at 91");
  CHECK(log->position_at(90).value() == "at 81");
  REQUIRE(log->truncate_after(81).ok());
  CHECK(log->position_at(91).value() == "at 81");
  REQUIRE(write_checkpoint(*log, 1, 3, 1000).ok());
  REQUIRE(log->trim_before(85).ok());
  CHECK(first_lsns(*log, 85) == std::vector<Lsn>{81});
  log.reset();
  log = open(directory.path());
  CHECK(log->position_at(81).value() == "at 81");
  CHECK(first_lsns(*log, 81) == std::vector<Lsn>{81});
  CHECK(log->newest_checkpoint().value()->checkpoint == 1);
}

TEST_CASE("a checkpoint whose summary fills a file is committed") {
  TempDirectory directory(true);
  auto log = open(directory.path());
  auto writer = log->start_checkpoint(1);
  REQUIRE(writer.ok());
  // RocksDB counts a block's bytes when the next value arrives: here that is the summary.
  std::string piece(size_t{80} << 20, 'x');
  seal_piece(piece.data(), piece.size(), {1, 0, 1});
  REQUIRE((*writer)->add_piece(0, piece).ok());
  CheckpointSummary summary;
  summary.checkpoint = 1;
  summary.pieces = 1;
  REQUIRE((*writer)->finish(summary).ok());
  REQUIRE((*writer)->commit().ok());
  CHECK(count_pieces(*log, 1) == 1);
  CHECK(log->newest_checkpoint()->has_value());
}

TEST_CASE("trimming keeps the commit that contains the first lsn to stay") {
  TempDirectory directory;
  auto log = open(directory.path());
  for (Lsn lsn = 1; lsn < 40000; lsn += 10) {
    REQUIRE(log->append_commit(lsn, bytes_of(lsn, 1000), false).ok());
  }
  const uint64_t before = log->disk_bytes();
  CHECK(log->trim_before(30005).ok());
  const std::vector<Lsn> left = first_lsns(*log, 30005);
  REQUIRE(!left.empty());
  CHECK(left.front() == 30001);
  CHECK(left.back() == 39991);
  // Files are deleted in the background.
  CHECK(eventually([&] { return log->disk_bytes() * 2 < before; }));
}

TEST_CASE("each byte is written twice at most: to the write-ahead log and to one table") {
  TempDirectory directory;
  auto log = open(directory.path(), 1 << 20);
  const uint64_t before = written_bytes();
  uint64_t payload = 0;
  for (Lsn lsn = 1; lsn <= 4000; ++lsn) {
    REQUIRE(log->append_commit(lsn, bytes_of(lsn, 16000), false).ok());
    payload += 16000;
    if (lsn % 500 == 0) CHECK(log->trim_before(lsn - 200).ok());
  }
  log.reset();
  const uint64_t written = written_bytes() - before;
  if (before != 0) CHECK(written < payload * 21 / 10);
}

TEST_CASE("a truncated tail is gone, and its lsns can be used again") {
  TempDirectory directory;
  {
    auto log = open(directory.path());
    for (Lsn lsn = 1; lsn <= 200; ++lsn) {
      REQUIRE(log->append_commit(lsn, bytes_of(lsn, 1000), false).ok());
    }
    REQUIRE(write_checkpoint(*log, 1, 2, 100).ok());
    CHECK(log->truncate_after(50).ok());
    CHECK(first_lsns(*log, 1).size() == 50);
    REQUIRE(log->append_commit(51, "new", true).ok());
  }
  auto log = open(directory.path());
  CHECK(first_lsns(*log, 1).size() == 51);
  CHECK(count_pieces(*log, 1) == 2);
}

TEST_CASE("a checkpoint appears whole with its commit, and not at all without") {
  TempDirectory directory;
  {
    auto log = open(directory.path());
    CHECK(!log->newest_checkpoint().value().has_value());
    REQUIRE(log->append_commit(1, "x", false).ok());
    CHECK(write_checkpoint(*log, 1, 10, 1000, false).ok());
    CHECK(!log->newest_checkpoint().value().has_value());
    CHECK(count_pieces(*log, 1) == 0);
    CHECK(write_checkpoint(*log, 1, 10, 1000).ok());
    CHECK(log->newest_checkpoint().value()->checkpoint == 1);
    CHECK(write_checkpoint(*log, 2, 3, 1000).ok());
    CHECK(write_checkpoint(*log, 3, 3, 1000, false).ok());
    CHECK(log->newest_checkpoint().value()->checkpoint == 2);
    CHECK(count_pieces(*log, 1) == 10);
    CHECK(log->drop_checkpoints_before(2).ok());
    CHECK(count_pieces(*log, 1) == 0);
    CHECK(count_pieces(*log, 2) == 3);
    CHECK(first_lsns(*log, 1) == std::vector<Lsn>{1});
  }
  auto log = open(directory.path());
  CHECK(log->newest_checkpoint().value()->checkpoint == 2);
  CHECK(count_pieces(*log, 2) == 3);
}

TEST_CASE("a checkpoint of several files is one checkpoint") {
  TempDirectory directory;
  auto log = open(directory.path());
  CHECK(write_checkpoint(*log, 1, 80, 2 << 20).ok());
  CHECK(count_pieces(*log, 1) == 80);
  CHECK(log->newest_checkpoint().value()->pieces == 80);
  log.reset();
  CHECK(count_pieces(*open(directory.path()), 1) == 80);
  // Through the page cache, as on a file system without direct I/O.
  RocksdbLogOptions options;
  options.directory = directory.path();
  options.read_only = true;
  auto reader = open_rocksdb_log(options);
  REQUIRE_MESSAGE(reader.ok(), reader.status().message());
  CHECK(count_pieces(**reader, 1) == 80);
}

TEST_CASE("the mark is read back, also in memory-backed file systems without direct writes") {
  for (const bool in_memory : {false, true}) {
    TempDirectory directory(in_memory);
    {
      auto log = open(directory.path());
      CHECK(log->mark().value() == 0);
      CHECK(log->set_mark(77).ok());
      CHECK(log->mark().value() == 77);
      CHECK(log->free_disk_bytes().value() > 0);
    }
    CHECK(open(directory.path())->mark().value() == 77);
  }
}

TEST_CASE("a read-only log sees what a running one has written, and changes nothing") {
  TempDirectory directory;
  auto log = open(directory.path(), 8 << 20);  // no background work
  for (Lsn lsn = 1; lsn <= 100; ++lsn)
    REQUIRE(log->append_commit(lsn, bytes_of(lsn, 1000), false).ok());
  RocksdbLogOptions options;
  options.directory = directory.path();
  options.read_only = true;
  // The running database removes its first manifest in the background.
  const std::string first_manifest = directory.path() + "/log/MANIFEST-000001";
  REQUIRE(eventually([&] { return !std::filesystem::exists(first_manifest); }));
  const auto files = files_under(directory.path());
  auto reader = open_rocksdb_log(options);
  REQUIRE_MESSAGE(reader.ok(), reader.status().message());
  CHECK(first_lsns(**reader, 1).size() == 100);
  CHECK(files_under(directory.path()) == files);
  options.directory = directory.path() + "/nothing-here";
  CHECK(open_rocksdb_log(options).status().code() == StatusCode::kInvalid);
}

TEST_CASE("RocksDB computes its checksums with our function") {
  open(TempDirectory().path());
  using Extend = uint32_t (*)(uint32_t, const char*, size_t);
  const auto extend =
      reinterpret_cast<Extend>(dlsym(RTLD_DEFAULT, "_ZN7rocksdb6crc32c6ExtendEjPKcm"));
  REQUIRE((extend != nullptr));
  CHECK(extend(0, "123456789", 9) == 0xe3069283);
  Dl_info in_program{};
  Dl_info checksum{};
  REQUIRE(dladdr(reinterpret_cast<void*>(&sealed), &in_program) != 0);
  REQUIRE(dladdr(reinterpret_cast<void*>(extend), &checksum) != 0);
  CHECK(std::string(checksum.dli_fname) == in_program.dli_fname);
}
