// sluice-import: creates a data directory from the data of a Redis, or from a backup.
//
//   sluice-import FILE.rdb DIR              an RDB file of Redis 2.8 to 7.0
//   sluice-import FILE DIR                  a file of `sluice backup`
//   sluice-import --redis HOST:PORT DIR     a running Redis (or the path of its socket)
//       --user NAME                         the user there; the password is in REDISCLI_AUTH
//       --quiet                             no progress
//
// All or nothing: DIR is created if it does not exist, must not hold keys, and receives everything
// at the end in one checkpoint. If a file is damaged anywhere, DIR stays empty; it is not created
// for what is not such a file, or for a Redis that cannot be reached.
//
// Exit status: 0 imported, 1 failure, 2 wrong usage.
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "engine/rdb/file_reader.h"
#include "net/process/standard_files.h"
#include "net/process/version.h"
#include "storage/copy_stream.h"
#include "storage/copy_writer.h"
#include "storage/data_directory.h"
#include "tools/import/limits.h"
#include "tools/import/progress.h"
#include "tools/import/redis_source.h"
#include "tools/import/target.h"

namespace sluice::import {
namespace {

constexpr const char* kHelp =
    "\nCreates a data directory from an RDB file of Redis 2.8 to 7.0, from a running Redis, or "
    "from a\n"
    "file of `sluice backup`, which belongs to no group of nodes then.\n"
    "DIR must be empty or not exist, and receives all or nothing. Keys of all databases, their\n"
    "expiries and the function libraries are imported.\n"
    "\n"
    "  --quiet             no progress on standard error\n"
    "  --redis ADDRESS     read from a server by SCAN and DUMP; stop its writers first\n"
    "  --user NAME         log in as this user; the password is in REDISCLI_AUTH\n"
    "\n"
    "Exit status: 0 imported, 1 failure, 2 wrong usage.\n";
constexpr const char* kUsage =
    "usage: sluice-import [--quiet] FILE DIR\n"
    "       sluice-import [--quiet] --redis HOST:PORT|PATH [--user NAME] DIR\n"
    "                     (the password, if any, is in REDISCLI_AUTH)\n"
    "       sluice-import --version\n";

struct Arguments {
  bool quiet = false;
  std::optional<RedisAddress> redis;
  std::string file;
  std::string directory;
};

RedisAddress parse_address(const std::string& text) {
  RedisAddress address;
  const size_t colon = text.rfind(':');
  address.host = text.substr(0, colon);
  if (colon != std::string::npos) address.port = text.substr(colon + 1);
  // [::1]:6379
  if (address.host.starts_with("[") && address.host.ends_with("]")) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  const char* password = std::getenv("REDISCLI_AUTH");
  if (password != nullptr) address.password = password;
  return address;
}

std::optional<Arguments> parse_arguments(int count, char** values) {
  Arguments arguments;
  std::string user;
  std::vector<std::string> places;
  for (int i = 1; i < count; ++i) {
    const std::string value = values[i];
    if (value == "--quiet") {
      arguments.quiet = true;
    } else if (value == "--redis" && i + 1 < count) {
      arguments.redis = parse_address(values[++i]);
    } else if (value == "--user" && i + 1 < count) {
      user = values[++i];
    } else if (value.starts_with("--")) {
      return std::nullopt;
    } else {
      places.push_back(value);
    }
  }
  if (places.size() != (arguments.redis ? 1U : 2U)) return std::nullopt;
  if (!user.empty() && !arguments.redis) return std::nullopt;
  if (arguments.redis) arguments.redis->user = user;
  arguments.directory = places.back();
  arguments.file = places.front();
  return arguments;
}

// --- A file ---

class OpenFile final : public rdb::Source {
 public:
  explicit OpenFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() override {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Nothing if the file cannot be read; errno holds the reason.
  std::optional<uint64_t> size() const {
    struct stat facts {};
    if (file_ < 0 || ::fstat(file_, &facts) != 0) return std::nullopt;
    if (!S_ISREG(facts.st_mode)) {
      errno = S_ISDIR(facts.st_mode) ? EISDIR : ESPIPE;
      return std::nullopt;
    }
    return static_cast<uint64_t>(facts.st_size);
  }

  size_t read(char* to, size_t size) override {
    ssize_t count = 0;
    do {
      count = ::read(file_, to, size);
    } while (count < 0 && errno == EINTR);
    return count > 0 ? static_cast<size_t>(count) : 0;
  }

 private:
  int file_;
};

class FileImport final : public rdb::FileSink {
 public:
  FileImport(ImportTarget& target, Progress& progress, const rdb::Reader& from, uint64_t size)
      : target_(target), progress_(progress), from_(from), size_(size) {}

  void auxiliary(Bytes name, Bytes value) override {
    if (name == "redis-ver") progress_.say("written by Redis " + std::string(value));
  }
  Status put_key(int database, OwnedEntry entry) override {
    Status status = target_.put_key(database, std::move(entry), false);
    progress_.show(target_.counts().keys, from_.position(), from_.position(), size_);
    return status;
  }
  Status put_library(Bytes code) override { return target_.put_library(code); }

 private:
  ImportTarget& target_;
  Progress& progress_;
  const rdb::Reader& from_;
  uint64_t size_;
};

Status import_file(const Arguments& arguments, ImportTarget& target, Progress& progress) {
  const std::string& path = arguments.file;
  OpenFile file(path);
  const std::optional<uint64_t> size = file.size();
  if (!size) return io_error(path + ": " + std::strerror(errno));
  rdb::Reader from(file, *size, kMaxStringBytes);
  FileImport sink(target, progress, from, *size);
  rdb::FileReader reader(from, sink);
  std::optional<rdb::FileFault> fault = reader.read_head();
  if (!fault) {
    if (Status status = target.open(arguments.directory); !status.ok()) return status;
    fault = reader.read();
  }
  if (!fault) return {};
  return invalid(path + ", at byte " + std::to_string(fault->offset) + " of " +
                 std::to_string(*size) + ": " + fault->message);
}

// --- A backup ---

// Whether the file is one of `sluice backup`.
bool is_backup(const std::string& path) {
  OpenFile file(path);
  std::string begin(kCopyItemBytes + 4, '\0');
  begin.resize(file.read(begin.data(), begin.size()));
  return begins_copy(begin);
}

// Nothing stays of a file that is not whole.
Status restore_backup(const std::string& path, const std::string& directory, CopyHead& head) {
  const auto lock = DirectoryLock::take(directory);
  if (!lock.ok()) return lock.status();
  if (const Result<bool> removed = install_copy(directory); !removed.ok()) return removed.status();
  if (holds_data(directory)) {
    return invalid(directory + " already holds data: import into an empty directory");
  }
  OpenFile file(path);
  CopyWriter writer(directory, false);
  CopyChecker checker(&writer);
  Status status;
  std::string part(size_t{1} << 20, '\0');
  for (size_t count = 1; status.ok() && count != 0;) {
    count = file.read(part.data(), part.size());
    status = checker.take(Bytes(part).substr(0, count));
  }
  if (status.ok()) status = checker.finish();
  if (status.ok()) status = accept_copy(directory);
  const Status installed = install_copy(directory).status();
  head = checker.head();
  return status.ok() ? installed : Status(status.code(), path + ": " + status.message());
}

int run_restore(const Arguments& arguments) {
  CopyHead head;
  const Status status = restore_backup(arguments.file, arguments.directory, head);
  if (!status.ok()) {
    std::fprintf(stderr, "sluice-import: %s\nNothing was imported.\n", status.message().c_str());
    return 1;
  }
  std::printf("%s holds everything up to lsn %llu (%s records in the checkpoint)\n",
              arguments.directory.c_str(), static_cast<unsigned long long>(head.last_lsn),
              grouped(head.summary.records).c_str());
  return 0;
}

// --- A running Redis ---

Status import_redis(const Arguments& arguments, ImportTarget& target, Progress& progress,
                    uint64_t& vanished) {
  RedisSource source;
  Status status = source.connect(*arguments.redis);
  if (!status.ok()) return status;
  const Result<std::vector<RedisSource::Database>> databases = source.find_databases();
  if (!databases.ok()) return databases.status();
  status = target.open(arguments.directory);
  if (!status.ok()) return status;
  uint64_t expected = 0;
  for (const RedisSource::Database& database : *databases) expected += database.keys;
  progress.say("Redis " + source.version() + " with " + grouped(expected) + " keys");
  status = source.read_libraries([&](Bytes code) { return target.put_library(code); });
  for (const RedisSource::Database& database : *databases) {
    if (!status.ok()) break;
    status = source.read_keys(database.number, [&](int number, OwnedEntry entry) {
      Status put = target.put_key(number, std::move(entry), true);
      progress.show(target.counts().keys, source.bytes_read(), target.counts().keys, expected);
      return put;
    });
  }
  vanished = source.vanished();
  return status;
}

// --- Summary ---

std::string summary(const ImportCounts& counts, uint64_t vanished, double seconds) {
  static constexpr const char* kNames[] = {"strings", "lists",   "sets",  "sorted sets",
                                           "hashes",  "streams", "queues"};
  const auto rate = static_cast<uint64_t>(static_cast<double>(counts.keys) / seconds);
  char time[32];
  std::snprintf(time, sizeof(time), "%.1f s", seconds);
  std::string text = grouped(counts.keys) + " keys in " + time + " (" + grouped(rate) + " keys/s)";
  const char* separator = ": ";
  for (size_t type = 0; type < std::size(kNames); ++type) {
    if (counts.by_type[type] == 0) continue;
    text += separator + grouped(counts.by_type[type]) + " " + kNames[type];
    separator = ", ";
  }
  text += "\n" + std::to_string(std::popcount(counts.databases)) + " databases, " +
          grouped(counts.with_expiry) + " keys with an expiry, " + grouped(counts.libraries) +
          " function libraries\n";
  if (counts.expired != 0) {
    text += grouped(counts.expired) + " keys had expired and were left out\n";
  }
  if (counts.replaced != 0) text += grouped(counts.replaced) + " keys were read twice\n";
  if (vanished != 0) text += grouped(vanished) + " keys were deleted while the import ran\n";
  return text;
}

int run(const Arguments& arguments) {
  if (!arguments.redis && is_backup(arguments.file)) return run_restore(arguments);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("sluice-import"));
  Progress progress(arguments.quiet);
  uint64_t vanished = 0;
  ImportTarget target;
  Status status = arguments.redis ? import_redis(arguments, target, progress, vanished)
                                  : import_file(arguments, target, progress);
  if (status.ok()) {
    progress.say("writing " + grouped(target.counts().keys) + " keys to " + arguments.directory);
    status = target.commit();
  }
  progress.end();
  if (!status.ok()) {
    std::fprintf(stderr, "sluice-import: %s\nNothing was imported.\n", status.message().c_str());
    return 1;
  }
  std::fputs(summary(target.counts(), vanished, progress.seconds()).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace sluice::import

int main(int argc, char** argv) {
  sluice::occupy_standard_files();
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::printf("%s%s", sluice::import::kUsage, sluice::import::kHelp);
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::printf("sluice-import %s\n", sluice::kSluiceVersion);
    return 0;
  }
  const auto arguments = sluice::import::parse_arguments(argc, argv);
  if (!arguments) {
    std::fputs(sluice::import::kUsage, stderr);
    return 2;
  }
  return sluice::import::run(*arguments);
}
