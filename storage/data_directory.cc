#include "storage/data_directory.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

#include "storage/format.h"

namespace sluice {
namespace {

constexpr const char* kTitle = "sluice data directory\n";

std::string format_text(uint32_t version, const char* state) {
  return std::string(kTitle) + "format " + std::to_string(version) + "\nstate " + state + "\n";
}

// Nothing if the file cannot be examined; errno holds the reason.
std::optional<FileIdentity> identity_of(const std::string& name) {
  struct stat found {};
  if (::stat(name.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

// An unknown state (any other errno) does not count as gone.
bool is_gone(const std::optional<FileIdentity>& found) {
  return !found.has_value() && (errno == ENOENT || errno == ENOTDIR);
}

std::optional<uint32_t> format_version(const std::string& text, const char* state) {
  for (uint32_t version = kOldestFormatVersion; version <= kFormatVersion; ++version) {
    if (text == format_text(version, state)) return version;
  }
  return std::nullopt;
}

}  // namespace

Status from_rocksdb(const rocksdb::Status& status, const std::string& what) {
  if (status.ok()) return {};
  StatusCode code = StatusCode::kIoError;
  if (status.IsNoSpace()) code = StatusCode::kNoSpace;
  if (status.IsCorruption()) code = StatusCode::kDamaged;
  return {code, what + ": " + status.ToString()};
}

bool holds_data(const std::string& path) {
  const std::string name = path + "/FORMAT";
  struct stat facts {};
  if (::stat(name.c_str(), &facts) != 0) return false;
  std::string text;
  const bool is_read = rocksdb::ReadFileToString(rocksdb::Env::Default(), name, &text).ok();
  return !is_read || !format_version(text, "creating");
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open(rocksdb::Env* env,
                                                           const std::string& path,
                                                           bool read_only) {
  std::unique_ptr<DataDirectory> directory(new DataDirectory(env, path));
  if (!read_only) {
    if (Status status = from_rocksdb(env->CreateDirIfMissing(path), "cannot create " + path);
        !status.ok()) {
      return status;
    }
    if (Status status = directory->lock(); !status.ok()) return status;
  }
  if (Status status = directory->check_format(read_only); !status.ok()) return status;
  if (!read_only && !directory->creating_) {
    if (Status status = directory->open_mark(); !status.ok()) return status;
  }
  return directory;
}

DataDirectory::DataDirectory(rocksdb::Env* env, std::string root)
    : env_(env), root_(std::move(root)) {}

DataDirectory::~DataDirectory() {
  if (mark_file_ != nullptr)
    mark_file_->Close(rocksdb::IOOptions(), nullptr).PermitUncheckedError();
  if (lock_ != nullptr) env_->UnlockFile(lock_).PermitUncheckedError();
}

Status DataDirectory::lock() {
  const rocksdb::Status status = env_->LockFile(path("LOCK"), &lock_);
  if (status.ok()) return {};
  const std::string text = status.ToString();
  // RocksDB has no code for this: the lock is held by another process, or by this one.
  if (text.find("temporarily unavailable") != std::string::npos ||
      text.find("lock hold by current process") != std::string::npos) {
    return {StatusCode::kLocked, "another server is using the data directory " + root_};
  }
  return from_rocksdb(status, "cannot lock " + path("LOCK"));
}

Status DataDirectory::check_format(bool read_only) {
  const std::string name = path("FORMAT");
  std::string text;
  const rocksdb::Status status = rocksdb::ReadFileToString(env_, name, &text);
  if (status.IsNotFound() || status.IsPathNotFound()) {
    if (env_->FileExists(path("log")).ok() || env_->FileExists(path("high-water-mark")).ok()) {
      return {StatusCode::kDamaged, name + " is missing, but the directory holds data"};
    }
    if (read_only) return {StatusCode::kInvalid, root_ + " is not a data directory of Sluice"};
    return begin_creation();
  }
  if (!status.ok()) return from_rocksdb(status, "cannot read " + name);

  if (const auto version = format_version(text, "ready")) {
    // Raise the version before the first record that an older version would take for damage.
    return read_only || *version == kFormatVersion ? Status() : write_format("ready");
  }
  if (format_version(text, "creating")) {
    if (read_only) return {StatusCode::kInvalid, root_ + ": its creation was not finished"};
    return begin_creation();
  }
  const std::string start = std::string(kTitle) + "format ";
  if (text.compare(0, start.size(), start) == 0) {
    const char* end = text.data() + text.size();
    uint32_t version = 0;
    const auto parsed = std::from_chars(text.data() + start.size(), end, version);
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '\n' &&
        (version < kOldestFormatVersion || version > kFormatVersion)) {
      return {StatusCode::kUnsupported, root_ + " has format " + std::to_string(version) +
                                            "; this version of Sluice supports " +
                                            std::to_string(kFormatVersion)};
    }
  }
  return {StatusCode::kDamaged, name + " is damaged"};
}

// What an earlier attempt left can be deleted: nothing was acknowledged before "ready".
Status DataDirectory::begin_creation() {
  creating_ = true;
  if (Status status = sync_parent(); !status.ok()) return status;
  if (Status status = write_format("creating"); !status.ok()) return status;
  std::vector<std::string> leftovers;
  const std::string log = path("log");
  if (env_->GetChildren(log, &leftovers).ok()) {
    for (const std::string& name : leftovers) {
      if (name == "." || name == "..") continue;
      const std::string file = log + "/" + name;
      if (Status status = from_rocksdb(env_->DeleteFile(file), "cannot remove " + file);
          !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

// The directory's own name is on disk once its parent has been synced.
Status DataDirectory::sync_parent() {
  const size_t end = root_.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : root_.rfind('/', end);
  const std::string parent = slash == std::string::npos ? "." : root_.substr(0, slash + 1);
  std::unique_ptr<rocksdb::Directory> directory;
  // Creating a directory does not require permission to open its parent; without it, skip the sync.
  if (!env_->NewDirectory(parent, &directory).ok()) return {};
  return from_rocksdb(directory->Fsync(), "cannot sync " + parent);
}

Status DataDirectory::finish_creation() {
  const std::string name = path("high-water-mark");
  const auto bytes = encode_mark(0);
  if (Status status = from_rocksdb(
          rocksdb::WriteStringToFile(env_, rocksdb::Slice(bytes.data(), bytes.size()), name, true),
          "cannot write " + name);
      !status.ok()) {
    return status;
  }
  if (Status status = write_format("ready"); !status.ok()) return status;
  creating_ = false;
  return open_mark();
}

// The rename makes the change atomic; the sync of the directory makes it durable.
Status DataDirectory::write_format(const char* state) {
  const std::string name = path("FORMAT");
  const std::string next = name + ".next";
  rocksdb::Status status =
      rocksdb::WriteStringToFile(env_, format_text(kFormatVersion, state), next, true);
  if (status.ok()) status = env_->RenameFile(next, name);
  std::unique_ptr<rocksdb::Directory> directory;
  if (status.ok()) status = env_->NewDirectory(root_, &directory);
  if (status.ok()) status = directory->Fsync();
  return from_rocksdb(status, "cannot write " + name);
}

Status DataDirectory::open_mark() {
  const std::string name = path("high-water-mark");
  // NewRandomRWFile refuses a missing file, so a lost mark is found here.
  Status status = from_rocksdb(
      env_->GetFileSystem()->NewRandomRWFile(name, rocksdb::FileOptions(), &mark_file_, nullptr),
      "cannot open " + name + " (a data directory must contain it)");
  if (status.ok()) mark_identity_ = identity_of(name).value_or(FileIdentity());
  return status;
}

Status DataDirectory::removed(const std::string& name, const char* what) const {
  return {StatusCode::kIoError, "the data directory " + root_ +
                                    " was removed while the server is running: " + name + what};
}

// Costs two system calls, which is little compared with the sync that precedes them.
Status DataDirectory::check_presence(const std::function<std::string()>& newest_log) const {
  const std::string mark = path("high-water-mark");
  const std::optional<FileIdentity> found = identity_of(mark);
  if (is_gone(found)) return removed(mark, " is gone");
  if (found.value_or(mark_identity_) != mark_identity_) {
    return removed(mark, " is a different file now");
  }
  std::string log = newest_log();
  while (!log.empty() && is_gone(identity_of(log))) {
    std::string newer = newest_log();
    if (newer == log) return removed(log, " is gone");
    log = std::move(newer);
  }
  return {};
}

Result<Lsn> DataDirectory::read_mark() const {
  const std::string name = path("high-water-mark");
  std::string bytes;
  if (Status status =
          from_rocksdb(rocksdb::ReadFileToString(env_, name, &bytes), "cannot read " + name);
      !status.ok()) {
    return status;
  }
  const auto lsn = decode_mark(bytes);
  if (!lsn) return damaged(name + " is damaged");
  return *lsn;
}

Status DataDirectory::write_mark(Lsn lsn) {
  CHECK(mark_file_ != nullptr);
  const auto bytes = encode_mark(lsn);
  return from_rocksdb(mark_file_->Write(0, rocksdb::Slice(bytes.data(), bytes.size()),
                                        rocksdb::IOOptions(), nullptr),
                      "cannot write " + path("high-water-mark"));
}

}  // namespace sluice
