// The files that the server itself has open, and its behaviour when descriptors run out.
#include "storage/spare_files.h"

#include "net/process/memory_use.h"
#include "storage/careful_fs.h"
#include "storage/data_directory.h"
#include "storage/rocksdb_log.h"
#include "tests/support/fault_fs.h"
#include "tests/support/storage_support.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr size_t kMemtableBytes = 64 << 10;

size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

std::unique_ptr<Log> open_log(const std::string& directory, std::shared_ptr<SpareFiles> spares) {
  RocksdbLogOptions options;
  options.directory = directory;
  options.memtable_bytes = kMemtableBytes;
  options.spare_files = std::move(spares);
  auto log = open_rocksdb_log(options);
  REQUIRE_MESSAGE(log.ok(), log.status().message());
  return std::move(*log);
}

// Writes the equivalent of some memtables.
Status fill(Log& log, Lsn& lsn, int memtables) {
  for (int i = 0; i < memtables * 4; ++i) {
    if (Status status = log.append_commit(++lsn, std::string(kMemtableBytes / 3, 'x'), false);
        !status.ok()) {
      return status;
    }
  }
  return log.sync();
}

size_t tables_in(const std::string& directory) {
  size_t count = 0;
  for (const std::string& file : files_under(directory)) count += file.ends_with(".sst") ? 1 : 0;
  return count;
}

// Prevents this process from opening further descriptors while the object exists.
class NoFurtherFile {
 public:
  NoFurtherFile() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      const auto number = std::stoull(file.path().filename().string());
      none.rlim_cur = std::max<rlim_t>(none.rlim_cur, number + 1);
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int file = 0; file >= 0; file = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
      if (file != 0) taken_.push_back(file);
    }
  }
  ~NoFurtherFile() {
    setrlimit(RLIMIT_NOFILE, &before_);
    for (const int file : taken_) ::close(file);
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

}  // namespace

TEST_CASE("however many tables there are, few of them are open") {
  TempDirectory directory(true);
  auto log = open_log(directory.path(), nullptr);
  const size_t before = open_files();
  Lsn lsn = 0;
  while (tables_in(directory.path()) < 150) REQUIRE(fill(*log, lsn, 10).ok());
  CHECK(open_files() < before + 50);
  log.reset();
  log = open_log(directory.path(), nullptr);
  Lsn found = 0;
  const auto reader = log->read_from(1);
  Lsn first = 0;
  Bytes commit;
  while (reader->next(first, commit)) REQUIRE(first == ++found);
  REQUIRE(reader->status().ok());
  CHECK(found == lsn);
  CHECK(open_files() < before + 50);
}

TEST_CASE("without a further descriptor the journal's files take spare ones, while there are any") {
  for (const bool has_spares : {true, false}) {
    CAPTURE(has_spares);
    TempDirectory directory(true);
    const auto spares = std::make_shared<SpareFiles>();
    REQUIRE(spares->missing() == 0);
    auto log = open_log(directory.path(), has_spares ? spares : nullptr);
    Lsn lsn = 0;
    // As many tables as are kept open.
    Status status = fill(*log, lsn, 60);
    REQUIRE(status.ok());
    {
      const NoFurtherFile none;
      for (int i = 0; i < 100 && status.ok() && spares->missing() == 0; ++i) {
        status = fill(*log, lsn, 1);
      }
    }
    INFO(status.message());
    CHECK(status.ok() == has_spares);
    CHECK((spares->missing() != 0) == has_spares);
    CHECK(spares->refill());
    CHECK(spares->missing() == 0);
    if (has_spares) CHECK(fill(*log, lsn, 10).ok());
  }
}

namespace {

// Another thread takes the first descriptors that are freed.
class ContendedFs final : public rocksdb::FileSystemWrapper {
 public:
  explicit ContendedFs(int taken)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), left_(taken) {}
  const char* Name() const override { return "ContendedFs"; }
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override {
    if (left_-- > 0) return rocksdb::IOStatus::IOError(name, "Too many open files");
    return FileSystemWrapper::NewDirectory(name, options, directory, debug);
  }

 private:
  int left_;
};

}  // namespace

TEST_CASE("a descriptor that another thread takes is replaced by the next spare one") {
  TempDirectory directory;
  const auto spares = std::make_shared<SpareFiles>();
  CarefulFs careful(std::make_shared<ContendedFs>(3), directory.path(), spares);
  std::unique_ptr<rocksdb::FSDirectory> opened;
  CHECK(careful.NewDirectory(directory.path(), {}, &opened, nullptr).ok());
  CHECK(spares->missing() == 3);
}

// What the disk has of it is then unknown: perhaps the old table of contents.
TEST_CASE("after a failed change of the table of contents no file of the database is deleted") {
  TempDirectory parent(true);
  const std::string directory = parent.path() + "/log";
  std::filesystem::create_directories(directory);
  const std::string table = directory + "/000007.sst";
  const std::string other = parent.path() + "/other";
  const auto faults = std::make_shared<FaultFs>(rocksdb::FileSystem::Default());
  for (const std::string change : {"rename", "directory", "append", "sync"}) {
    CAPTURE(change);
    for (const std::string& file : {table, other, directory + "/000008.dbtmp"}) {
      write_file(file, "x");
    }
    CarefulFs careful(faults, directory, nullptr);
    std::unique_ptr<rocksdb::FSDirectory> opened;
    std::unique_ptr<rocksdb::FSWritableFile> manifest;
    REQUIRE(careful.NewDirectory(directory, {}, &opened, nullptr).ok());
    REQUIRE(careful.NewWritableFile(directory + "/MANIFEST-000008", {}, &manifest, nullptr).ok());
    faults->heal();
    faults->fail_at(1, FaultKind::kIoError, false);
    const rocksdb::IOStatus status =
        change == "rename"
            ? careful.RenameFile(directory + "/000008.dbtmp", directory + "/CURRENT", {}, nullptr)
        : change == "directory" ? opened->FsyncWithDirOptions({}, nullptr, {})
        : change == "append"    ? manifest->Append("x", {}, nullptr)
                                : manifest->Sync({}, nullptr);
    CHECK_FALSE(status.ok());
    faults->heal();
    CHECK_FALSE(careful.DeleteFile(table, {}, nullptr).ok());
    CHECK(std::filesystem::exists(table));
    CHECK(careful.DeleteFile(other, {}, nullptr).ok());
  }
}

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
  // Another directory at its path is not the same one.
  std::filesystem::copy(directory + ".away", directory, std::filesystem::copy_options::recursive);
  const Status other = log->check_presence();
  CHECK_FALSE(other.ok());
  CHECK(other.message().find("a different file") != std::string::npos);
}

TEST_CASE("a log that is replaced while it is looked for is not missing") {
  TempDirectory parent(true);
  auto opened = DataDirectory::open(rocksdb::Env::Default(), parent.path() + "/data", false);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  DataDirectory& directory = **opened;
  REQUIRE(directory.finish_creation().ok());
  const std::string first = directory.path("000004.log");
  const std::string second = directory.path("000008.log");
  const std::string third = directory.path("000012.log");
  // What RocksDB does between the query for the name and the check: the first and the second log
  // are deleted after each was replaced.
  write_file(third, "");
  std::vector<std::string> names = {third, second, first};
  const auto next = [&] {
    std::string name = names.back();
    if (names.size() > 1) names.pop_back();
    return name;
  };
  const Status replaced = directory.check_presence(next);
  CHECK_MESSAGE(replaced.ok(), replaced.message());
  CHECK(names.size() == 1);
  CHECK(directory.check_presence([] { return std::string(); }).ok());
  // A log that is the newest one before and after.
  std::filesystem::remove(third);
  const Status gone = directory.check_presence(next);
  CHECK_FALSE(gone.ok());
  CHECK(gone.message().find(third + " is gone") != std::string::npos);
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
  // In a container the path is the host's, and the files are at the root.
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
