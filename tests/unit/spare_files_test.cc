// What the server has open itself, and what it does when there is no further descriptor.
#include "storage/spare_files.h"

#include "net/memory_use.h"
#include "storage/fault_fs.h"
#include "storage/rocksdb_log.h"
#include "tests/support/storage_support.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <rocksdb/env.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <thread>

using namespace sluice;
using namespace sluice::test;

namespace {

std::unique_ptr<Log> open_log(const std::string& directory, std::shared_ptr<SpareFiles> spares) {
  RocksdbLogOptions options;
  options.directory = directory;
  options.spare_files = std::move(spares);
  auto log = open_rocksdb_log(options);
  REQUIRE_MESSAGE(log.ok(), log.status().message());
  return std::move(*log);
}

}  // namespace

TEST_CASE("the parent of a new data directory is synced") {
  TempDirectory parent(true);
  bool synced = false;
  bool done = false;
  for (uint64_t operation = 1; !done && !synced; ++operation) {
    const std::string directory = parent.path() + "/data" + std::to_string(operation);
    const auto faults = std::make_shared<FaultFs>(rocksdb::FileSystem::Default());
    faults->fail_at(operation, FaultKind::kIoError, false);
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
    RocksdbLogOptions options;
    options.directory = directory;
    options.env = env.get();
    const auto log = open_rocksdb_log(options);
    const std::string failed = faults->failed_operation();
    synced = failed.find("sync directory") != std::string::npos &&
             failed.find(parent.path() + "/ ") != std::string::npos;
    if (synced) CHECK_FALSE(log.ok());
    done = !faults->has_failed();
  }
  CHECK(synced);
}

TEST_CASE("a log whose files have been taken away says so") {
  TempDirectory parent(true);
  const std::string directory = parent.path() + "/data";
  auto log = open_log(directory, nullptr);
  REQUIRE(log->append_commit(1, "one", true).ok());
  CHECK(log->set_mark(1).ok());
  std::filesystem::rename(directory, directory + ".away");
  const Status gone = log->set_mark(1);
  CHECK_FALSE(gone.ok());
  CHECK(gone.message().find("was removed") != std::string::npos);
  // Another directory in its place is not this one.
  std::filesystem::copy(directory + ".away", directory, std::filesystem::copy_options::recursive);
  const Status other = log->check_presence();
  CHECK_FALSE(other.ok());
  CHECK(other.message().find("another file") != std::string::npos);
}

TEST_CASE("the control group's limit of memory is the least of those above the process") {
  TempDirectory directory;
  const std::string groups = directory.path() + "/cgroup";
  const std::string root = directory.path() + "/fs";
  const auto set = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(root + path.substr(0, path.rfind('/')));
    write_file(root + path, text);
  };
  const auto limit = [&] { return group_memory_limit_bytes(groups, root); };
  CHECK(limit() == std::nullopt);
  write_file(groups, "0::/a/b\n");
  CHECK(limit() == std::nullopt);
  set("/a/b/memory.max", "max\n");
  CHECK(limit() == std::nullopt);
  set("/a/memory.max", "4000000000\n");
  CHECK(limit() == 4'000'000'000);
  set("/a/b/memory.max", "1000000\n");
  CHECK(limit() == 1'000'000);
  // In a container: the path is that of the host, the files are at the root.
  write_file(groups, "0::/docker/c0ffee\n");
  CHECK(limit() == std::nullopt);
  set("/memory.max", "5000000\n");
  CHECK(limit() == 5'000'000);
  write_file(groups, "0::/\n");
  CHECK(limit() == 5'000'000);
  // Version 1.
  write_file(groups, "5:cpu,memory:/a\n3:pids:/b\n");
  set("/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(limit() == std::nullopt);
  set("/memory/memory.limit_in_bytes", "7000000\n");
  CHECK(limit() == 7'000'000);
}
