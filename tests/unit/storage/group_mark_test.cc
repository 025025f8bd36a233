// The mark by which a data directory begins a group, and which position counts.
#include "storage/group_mark.h"

#include <rocksdb/env.h>

#include "tests/support/fault_fs.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

LogPosition position_of(const std::string& cluster_id, uint64_t seq, Lsn lsn) {
  return {cluster_id, "1", seq == 0 ? 0U : 3U, seq, lsn, static_cast<uint32_t>(seq)};
}

RecoveryResult recovered_at(Lsn last, const std::string& position = {}) {
  RecoveryResult result;
  result.last_lsn = last;
  result.position = position;
  return result;
}

}  // namespace

TEST_CASE("a mark is read as it was written, and the next one replaces it") {
  TempDirectory directory;
  CHECK(!read_lead_mark(directory.path())->has_value());
  for (const Lsn lsn : {Lsn{7}, Lsn{9}}) {
    REQUIRE(write_lead_mark(directory.path(), position_of("c" + std::to_string(lsn), 0, lsn)).ok());
    CHECK(*read_lead_mark(directory.path()) == position_of("c" + std::to_string(lsn), 0, lsn));
  }
}

TEST_CASE("after a power cut the mark is the one that was written last") {
  const LogPosition first = position_of("first", 0, 7);
  const LogPosition second = position_of("second", 0, 9);
  bool written = false;
  for (uint64_t operation = 1; !written; ++operation) {
    CAPTURE(operation);
    const auto disk = std::make_shared<FaultFs>(rocksdb::FileSystem::Default());
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
    TempDirectory directory(true);
    REQUIRE(write_lead_mark(directory.path(), first, env.get()).ok());
    disk->freeze_at(operation);
    written = write_lead_mark(directory.path(), second, env.get()).ok();
    disk->lose_unsynced(operation, true);
    const auto mark = read_lead_mark(directory.path());
    REQUIRE_MESSAGE(mark.ok(), mark.status().message());
    CHECK(*mark == (written ? second : first));
  }
}

TEST_CASE("a damaged mark is refused, with its name") {
  TempDirectory directory;
  REQUIRE(write_lead_mark(directory.path(), position_of("c", 0, 7)).ok());
  const std::string name = directory.path() + "/group-base";
  const std::string whole = read_file(name);
  for (const std::string& text : {whole.substr(0, whole.size() - 1), std::string(), "x" + whole}) {
    write_file(name, text);
    const auto read = read_lead_mark(directory.path());
    REQUIRE(!read.ok());
    CHECK(read.status().code() == StatusCode::kDamaged);
    CHECK(read.status().message().find(name) != std::string::npos);
    CHECK(!find_group_position(directory.path(), recovered_at(7)).ok());
  }
}

TEST_CASE("the position of the group that the mark began counts, and no older one") {
  TempDirectory directory;
  const std::string& path = directory.path();
  const LogPosition old = position_of("old", 40, 7);
  CHECK(!find_group_position(path, recovered_at(7))->has_value());
  CHECK(*find_group_position(path, recovered_at(7, encode_position(old))) == old);
  const LogPosition mark = position_of("new", 0, 7);
  REQUIRE(write_lead_mark(path, mark).ok());
  CHECK(*find_group_position(path, recovered_at(7, encode_position(old))) == mark);
  CHECK(*find_group_position(path, recovered_at(7)) == mark);
  const LogPosition later = position_of("new", 2, 9);
  CHECK(*find_group_position(path, recovered_at(9, encode_position(later))) == later);
  CHECK(!find_group_position(path, recovered_at(7, "what is this")).ok());
}

TEST_CASE("a directory that was changed without its group is refused") {
  TempDirectory directory;
  REQUIRE(write_lead_mark(directory.path(), position_of("new", 0, 7)).ok());
  const std::string old = encode_position(position_of("old", 40, 8));
  for (const RecoveryResult& recovered : {recovered_at(8), recovered_at(6), recovered_at(8, old)}) {
    const auto position = find_group_position(directory.path(), recovered);
    REQUIRE(!position.ok());
    CHECK(position.status().code() == StatusCode::kInvalid);
    CHECK(position.status().message().find("sluice-journal lead") != std::string::npos);
  }
}
