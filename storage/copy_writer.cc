#include "storage/copy_writer.h"

#include <rocksdb/env.h>
#include <fstream>

#include <array>
#include <filesystem>
#include <utility>

#include "storage/data_directory.h"
#include "storage/group_mark.h"
#include "storage/rocksdb_log.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// What holds data in a directory, or says what it holds. Everything else stays.
constexpr std::array kParts = {"FORMAT", "group-base", "high-water-mark", "log"};
// In `incoming-copy`: it is wanted; the old parts are out of the way. One follows the other.
constexpr const char* kAccepted = "accepted";
constexpr const char* kInstall = "install";

std::string incoming_of(const std::string& directory) { return directory + "/incoming-copy"; }
std::string replaced_of(const std::string& directory) { return directory + "/replaced-data"; }
std::string anew_of(const std::string& directory) { return directory + "/load-anew"; }

Status failed(const std::error_code& error, const std::string& what) {
  return error ? io_error(what + ": " + error.message()) : Status();
}

rocksdb::Env* used(rocksdb::Env* env) { return env != nullptr ? env : rocksdb::Env::Default(); }

Status sync_folder(const std::string& folder, rocksdb::Env* env) {
  std::unique_ptr<rocksdb::Directory> opened;
  rocksdb::Status status = used(env)->NewDirectory(folder, &opened);
  if (status.ok()) status = opened->Fsync();
  return from_rocksdb(status, "cannot sync " + folder);
}

Status write_file(const std::string& name, const std::string& text, rocksdb::Env* env) {
  return from_rocksdb(rocksdb::WriteStringToFile(used(env), text, name, true),
                      "cannot write " + name);
}

// Moves what is there of the parts.
Status move_parts(const std::string& from, const std::string& to, rocksdb::Env* env) {
  std::error_code error;
  for (const char* part : kParts) {
    if (!fs::exists(from + "/" + part)) continue;
    fs::rename(from + "/" + part, to + "/" + part, error);
    if (error) return failed(error, "cannot move " + from + "/" + part + " to " + to);
  }
  // The new names first: a crash in between must not leave a part without any.
  if (Status status = sync_folder(to, env); !status.ok()) return status;
  return sync_folder(from, env);
}

Status remove_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return failed(error, "cannot remove " + folder);
}

Status set_old_aside(const std::string& directory, rocksdb::Env* env) {
  const std::string incoming = incoming_of(directory);
  const std::string replaced = replaced_of(directory);
  std::error_code error;
  fs::create_directory(replaced, error);
  if (error) return failed(error, "cannot create " + replaced);
  if (Status status = move_parts(directory, replaced, env); !status.ok()) return status;
  fs::rename(incoming + "/" + kAccepted, incoming + "/" + kInstall, error);
  if (error) return failed(error, "cannot rename " + incoming + "/" + kAccepted);
  return sync_folder(incoming, env);
}

}  // namespace

// --- Writing -------------------------------------------------------------------------------------

CopyWriter::CopyWriter(std::string directory, bool in_group, rocksdb::Env* env,
                       std::optional<uint64_t> keep_free_bytes)
    : directory_(std::move(directory)),
      incoming_(incoming_of(directory_)),
      in_group_(in_group),
      env_(env),
      keep_free_bytes_(keep_free_bytes) {}

CopyWriter::~CopyWriter() = default;

Status CopyWriter::look_for_room(uint64_t bytes) const {
  if (!keep_free_bytes_.has_value()) return {};
  const uint64_t kept = *keep_free_bytes_;
  uint64_t free = 0;
  // Unknown free space is no reason to refuse.
  if (!used(env_)->GetFreeSpace(directory_, &free).ok()) return {};
  if (free >= kept && free - kept >= bytes) return {};
  const auto mb = [](uint64_t count) { return std::to_string(count >> 20) + " MB"; };
  return {StatusCode::kNoSpace,
          "not enough disk space in " + directory_ + ": the copy has at least " + mb(bytes) +
              ", beside which min-free-disk keeps " + mb(kept) + ", and " + mb(free) + " are free"};
}

Status CopyWriter::begin(const CopyHead& head) {
  head_ = head;
  if (Status status = look_for_room(head.summary.bytes); !status.ok()) return status;
  if (fs::exists(incoming_)) return io_error(incoming_ + " is there already");
  RocksdbLogOptions options;
  options.directory = incoming_;
  options.env = env_;
  auto log = open_rocksdb_log(options);
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  auto writer = log_->start_checkpoint(head.summary.checkpoint);
  if (!writer.ok()) return writer.status();
  checkpoint_ = std::move(*writer);
  return {};
}

Status CopyWriter::add_piece(uint32_t number, Bytes piece) {
  return checkpoint_->add_piece(number, piece);
}

Status CopyWriter::finish_checkpoint() {
  if (checkpoint_ == nullptr) return {};
  Status status = checkpoint_->finish(head_.summary);
  if (status.ok()) status = checkpoint_->commit();
  checkpoint_.reset();
  return status;
}

Status CopyWriter::add_commit(Lsn first_lsn, Bytes commit) {
  if (Status status = finish_checkpoint(); !status.ok()) return status;
  UnitCursor cursor(commit, commit.size());
  Lsn last = 0;
  while (cursor.next()) last = cursor.header().lsn;
  const bool is_last = last == head_.last_lsn && in_group_;
  return log_->append_commit(first_lsn, commit, false, is_last ? Bytes(head_.position) : Bytes());
}

Status CopyWriter::end() {
  Status status = finish_checkpoint();
  if (status.ok()) status = log_->sync();
  if (status.ok()) status = log_->set_mark(head_.last_lsn);
  log_.reset();
  if (status.ok()) status = sync_folder(incoming_ + "/log", env_);
  if (status.ok() && in_group_ && !head_.mark.empty()) {
    const Result<LogPosition> mark = decode_position(head_.mark);
    status = mark.ok() ? write_lead_mark(incoming_, *mark, env_) : mark.status();
  }
  return status.ok() ? sync_folder(incoming_, env_) : status;
}

// --- Putting it in place -------------------------------------------------------------------------

Status accept_copy(const std::string& directory, rocksdb::Env* env) {
  const std::string incoming = incoming_of(directory);
  if (Status status = sync_folder(directory, env); !status.ok()) return status;
  if (Status status = write_file(incoming + "/" + kAccepted, "\n", env); !status.ok())
    return status;
  return sync_folder(incoming, env);
}

Result<bool> install_copy(const std::string& directory, rocksdb::Env* env) {
  const std::string incoming = incoming_of(directory);
  if (fs::exists(incoming + "/" + kAccepted)) {
    if (Status status = set_old_aside(directory, env); !status.ok()) return status;
  }
  const bool installs = fs::exists(incoming + "/" + kInstall);
  if (installs) {
    if (Status status = move_parts(incoming, directory, env); !status.ok()) return status;
    if (Status status = forget_load_anew(directory, env); !status.ok()) return status;
    if (Status status = sync_folder(directory, env); !status.ok()) return status;
  }
  if (Status status = remove_folder(incoming); !status.ok()) return status;
  if (Status status = remove_folder(replaced_of(directory)); !status.ok()) return status;
  return installs;
}

Status finish_copy(const std::string& directory) {
  if (!fs::exists(incoming_of(directory)) && !fs::exists(replaced_of(directory))) return {};
  const Result<std::unique_ptr<DirectoryLock>> lock = DirectoryLock::take(directory);
  return lock.ok() ? install_copy(directory).status() : lock.status();
}

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::take(const std::string& directory) {
  rocksdb::Env* const env = rocksdb::Env::Default();
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return failed(error, "cannot create " + directory);
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status status = env->LockFile(directory + "/LOCK", &lock);
  if (status.ok()) return std::unique_ptr<DirectoryLock>(new DirectoryLock(lock));
  return Status(StatusCode::kLocked, "another server is using the data directory " + directory +
                                         " (" + status.ToString() + ")");
}

DirectoryLock::~DirectoryLock() {
  rocksdb::Env::Default()
      ->UnlockFile(static_cast<rocksdb::FileLock*>(lock_))
      .PermitUncheckedError();
}

bool is_to_load_anew(const std::string& directory) { return fs::exists(anew_of(directory)); }

std::string load_anew_cluster(const std::string& directory) {
  std::string id;
  std::ifstream file(anew_of(directory));
  std::getline(file, id);
  return id;
}

Status ask_to_load_anew(const std::string& directory, const std::string& cluster_id,
                        rocksdb::Env* env) {
  if (Status status = write_file(anew_of(directory), cluster_id + "\n", env); !status.ok())
    return status;
  return sync_folder(directory, env);
}

Status forget_load_anew(const std::string& directory, rocksdb::Env* env) {
  std::error_code error;
  if (!fs::remove(anew_of(directory), error) && !error) return {};
  if (error) return failed(error, "cannot remove " + anew_of(directory));
  return sync_folder(directory, env);
}

}  // namespace sluice
