// backup: a copy of the server's data in a file, over HTTP.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/numbers.h"
#include "net/config/endpoint.h"
#include "net/config/token_setting.h"
#include "net/group/copy_client.h"
#include "storage/copy_stream.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/replies.h"

namespace sluice::cli {

namespace {

constexpr Option kBackupOptions[] = {
    {"--http", "HOST:PORT", "the server's HTTP side; default: -h, and http-port as it tells"},
    {"--token-file", "FILE", "file with its token; default: SLUICE_HTTP_TOKEN"},
};

Failure file_failure(const std::string& what, const std::string& path) {
  return {kServerError, what + " " + path + ": " + std::strerror(errno)};
}

// For the handler of signals: the name of an incomplete file, or null.
std::atomic<const char*> part_to_remove = nullptr;

void remove_and_die(int number) {
  if (const char* const part = part_to_remove) ::unlink(part);
  static_cast<void>(std::raise(number));  // by SA_RESETHAND as without a handler
}

void handle_ends() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup
    struct sigaction action {};
    action.sa_handler = remove_and_die;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(number, &action, nullptr);
  }
}

// A new file that takes its name when it is complete, and leaves nothing if it does not become so.
class BackupFile {
 public:
  explicit BackupFile(const std::string& path)
      : path_(free_name(path)),
        part_(path + ".part"),
        file_(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (file_ >= 0) {
      part_to_remove = part_.c_str();
      return;
    }
    if (errno != EEXIST) throw file_failure("cannot create", part_);
    throw Failure{kServerError, part_ +
                                    " is there: another backup writes it, or one was broken "
                                    "off. If none runs, remove it"};
  }
  ~BackupFile() {
    ::close(file_);
    if (!complete_) ::unlink(part_.c_str());
    part_to_remove = nullptr;
  }
  BackupFile(const BackupFile&) = delete;
  BackupFile& operator=(const BackupFile&) = delete;

  void write(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw file_failure("cannot write", part_);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  void finish() {
    if (::fsync(file_) != 0) throw file_failure("cannot write", part_);
    if (::rename(part_.c_str(), path_.c_str()) != 0) throw file_failure("cannot create", path_);
    complete_ = true;
    part_to_remove = nullptr;
    sync_folder();
  }

 private:
  // A device or a pipe would be replaced, and not written.
  static const std::string& free_name(const std::string& path) {
    std::error_code error;
    const std::filesystem::file_status there = std::filesystem::status(path, error);
    if (!exists(there) || is_regular_file(there)) return path;
    throw Failure{kServerError, path + " is there, and is no regular file"};
  }
  // Otherwise the new name may be lost with the power.
  void sync_folder() const {
    const std::string parent = std::filesystem::path(path_).parent_path();
    const std::string folder = parent.empty() ? "." : parent;
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Some file systems cannot sync a folder.
    const bool synced = opened >= 0 && (::fsync(opened) == 0 || errno == EINVAL);
    const int error = errno;
    if (opened >= 0) ::close(opened);
    errno = error;
    if (!synced) throw file_failure("cannot sync", folder);
  }

  const std::string path_;
  const std::string part_;
  const int file_;
  bool complete_ = false;
};

std::string token_of(const Context& context) {
  if (const auto path = context.arguments.value("--token-file")) {
    Result<std::string> token = read_secret(*path);
    if (!token.ok()) throw usage_error(token.status().message());
    return *token;
  }
  const char* token = std::getenv("SLUICE_HTTP_TOKEN");
  return token != nullptr ? token : "";
}

CopySource source_of(Context& context) {
  CopySource source;
  source.token = token_of(context);
  std::string port;
  if (const auto http = context.arguments.value("--http")) {
    const Result<HttpEndpoint> endpoint = parse_http_endpoint("http://" + *http, {});
    if (!endpoint.ok() || endpoint->port.empty() || !endpoint->target.empty()) {
      throw usage_error("--http takes HOST:PORT, an IPv6 address in brackets ([::1]:8379), not " +
                        *http);
    }
    source.host = endpoint->host;
    port = endpoint->port;
  } else {
    port = info_field(context.connection.call({"INFO", "server"}).text, "sluice_http_port");
    // Sentinels have named it with the first command.
    source.host = context.connection.address().host;
  }
  const auto number = parse_i64(port);
  if (!number || *number < 1 || *number > UINT16_MAX) {
    throw usage_error("the port of the server's HTTP side is not known: --http HOST:PORT");
  }
  source.port = static_cast<uint16_t>(*number);
  return source;
}

// Until the server has a checkpoint.
CopyHead download(const Context& context, const CopySource& source, BackupFile& file,
                  uint64_t& bytes) {
  for (bool told = false;; told = true) {
    CopyChecker checker(nullptr);
    Status status = fetch_copy(source, {}, [&](Bytes part) {
      file.write(part);
      return checker.take(part);
    });
    if (status.code() == StatusCode::kStale) {
      if (!told) context.note("waiting for the server's first checkpoint");
      std::this_thread::sleep_for(std::chrono::seconds(1));
      continue;
    }
    if (checker.has_ended()) {
      bytes = checker.bytes();
      return checker.head();
    }
    if (status.ok()) status = checker.finish();
    const bool unreachable = status.code() == StatusCode::kIoError && checker.bytes() == 0;
    throw Failure{unreachable ? kNoConnection : kServerError, status.message()};
  }
}

int run_backup(Context& context) {
  const std::string& path = context.operand(0);
  const CopySource source = source_of(context);
  handle_ends();
  BackupFile file(path);
  uint64_t bytes = 0;
  const CopyHead head = download(context, source, file, bytes);
  file.finish();
  if (context.json) {
    print_json({{"file", path}, {"bytes", bytes}, {"lsn", head.last_lsn}});
  } else {
    std::printf("%s: %llu bytes, everything up to lsn %llu\n", path.c_str(),
                static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(head.last_lsn));
  }
  return kDone;
}

}  // namespace

std::span<const CommandRow> backup_commands() {
  static const CommandRow kRows[] = {
      {"backup",
       "FILE",
       "copy all data of the server to a file",
       "Reads GET /api/v1/checkpoint: needs http-port, and a token of the role admin. FILE "
       "appears\n"
       "when it is complete and checked; `sluice-import FILE DIR` makes a data directory of it.",
       {kBackupOptions},
       run_backup,
       "sluice backup sluice.backup --http 127.0.0.1:8379"},
  };
  return kRows;
}

}  // namespace sluice::cli
