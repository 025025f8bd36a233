#include "tests/support/fault_fs.h"

#include <utility>
#include <vector>

namespace sluice {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

std::string parent_of(const std::string& name) {
  std::string parent = name.substr(0, name.rfind('/'));
  while (!parent.empty() && parent.back() == '/') parent.pop_back();
  return parent;
}

class FaultWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultWritableFile(std::unique_ptr<rocksdb::FSWritableFile>&& target, std::string name,
                    uint64_t size, FaultFs& fs)
      : FSWritableFileOwnerWrapper(std::move(target)),
        name_(std::move(name)),
        size_(size),
        fs_(fs) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return write("append", data, [&](const Slice& part) {
      const IOStatus status = FSWritableFileWrapper::Append(part, options, debug);
      if (status.ok()) size_ += part.size();
      return status;
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    return write("append", data, [&](const Slice& part) {
      // Direct writes must stay aligned, so a short one writes nothing here.
      if (part.size() != data.size()) return IOStatus::OK();
      const IOStatus status = FSWritableFileWrapper::PositionedAppend(part, offset, options, debug);
      if (status.ok()) size_ = std::max(size_, offset + part.size());
      return status;
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    IOStatus error;
    if (fs_.next_operation("truncate", name_, error) != FaultFs::Verdict::kGo) return error;
    const IOStatus status = FSWritableFileWrapper::Truncate(size, options, debug);
    if (status.ok()) size_ = size;
    fs_.note_size(name_, size_);
    return status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return sync([&] { return FSWritableFileWrapper::Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return sync([&] { return FSWritableFileWrapper::Fsync(options, debug); });
  }

 private:
  template <typename Write>
  IOStatus write(const char* what, const Slice& data, Write do_write) {
    if (!fs_.has_room(data.size())) return IOStatus::NoSpace(name_, "the small disk is full");
    IOStatus error;
    switch (fs_.next_operation(what, name_, error)) {
      case FaultFs::Verdict::kGo: {
        const IOStatus status = do_write(data);
        fs_.note_size(name_, size_);
        return status;
      }
      case FaultFs::Verdict::kShort:
        do_write(Slice(data.data(), data.size() / 2)).PermitUncheckedError();
        fs_.note_size(name_, size_);
        return error;
      case FaultFs::Verdict::kFail:
        return error;
    }
    return error;
  }
  template <typename DoSync>
  IOStatus sync(DoSync do_sync) {
    IOStatus error;
    if (fs_.next_operation("sync", name_, error) != FaultFs::Verdict::kGo) {
      fs_.note_failed_sync(name_);
      return error;
    }
    const IOStatus status = do_sync();
    if (status.ok()) fs_.note_synced(name_);
    return status;
  }

  const std::string name_;
  uint64_t size_;
  FaultFs& fs_;
};

class FaultRandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  FaultRandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile>&& target, std::string name,
                    FaultFs& fs)
      : FSRandomRWFileOwnerWrapper(std::move(target)), name_(std::move(name)), fs_(fs) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    IOStatus error;
    if (fs_.next_operation("overwrite", name_, error) != FaultFs::Verdict::kGo) return error;
    return FSRandomRWFileWrapper::Write(offset, data, options, debug);
  }

 private:
  const std::string name_;
  FaultFs& fs_;
};

class FaultDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultDirectory(std::unique_ptr<rocksdb::FSDirectory>&& target, std::string name, FaultFs& fs)
      : FSDirectoryWrapper(std::move(target)), name_(std::move(name)), fs_(fs) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus error;
    if (fs_.next_operation("sync directory", name_, error) != FaultFs::Verdict::kGo) return error;
    const IOStatus status = FSDirectoryWrapper::Fsync(options, debug);
    if (status.ok()) fs_.note_directory_synced(name_);
    return status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  const std::string name_;
  FaultFs& fs_;
};

}  // namespace

FaultFs::FaultFs(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}

// --- faults --------------------------------------------------------------------------------------

void FaultFs::fail_at(uint64_t operation, FaultKind kind, bool stay_broken) {
  MutexLock lock(mutex_);
  operations_ = 0;
  fail_at_ = operation;
  kind_ = kind;
  stay_broken_ = stay_broken;
}

void FaultFs::freeze_at(uint64_t operation) {
  MutexLock lock(mutex_);
  operations_ = 0;
  freeze_at_ = operation;
}

void FaultFs::heal() {
  MutexLock lock(mutex_);
  operations_ = 0;
  fail_at_ = 0;
  freeze_at_ = 0;
  has_failed_ = false;
  failed_operation_.clear();
  only_in_.clear();
}

void FaultFs::only_in(const std::string& part) {
  MutexLock lock(mutex_);
  only_in_ = part;
}

void FaultFs::set_capacity(uint64_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = bytes;
  least_free_ = bytes;
}

uint64_t FaultFs::used_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, file] : files_) {
    if (file.link_of.empty() || !files_.contains(file.link_of)) bytes += file.size;
  }
  return bytes;
}

bool FaultFs::has_room(uint64_t bytes) {
  const uint64_t capacity = capacity_.load(std::memory_order_relaxed);
  if (capacity == 0) return true;
  MutexLock lock(mutex_);
  const uint64_t used = used_bytes() + bytes;
  if (used > capacity) return false;
  least_free_ = std::min(least_free_.load(), capacity - used);
  return true;
}

std::string FaultFs::failed_operation() const {
  MutexLock lock(mutex_);
  return failed_operation_;
}

FaultFs::Verdict FaultFs::next_operation(const char* what, const std::string& name,
                                         IOStatus& error) {
  MutexLock lock(mutex_);
  if (name.find(only_in_) == std::string::npos) return Verdict::kGo;
  const uint64_t number = ++operations_;
  const bool frozen = freeze_at_ != 0 && number >= freeze_at_;
  const bool fails = fail_at_ != 0 && (stay_broken_ ? number >= fail_at_ : number == fail_at_);
  if (!frozen && !fails) {
    last_operation_ = std::string(what) + " " + name;
    return Verdict::kGo;
  }
  if (failed_operation_.empty()) {
    failed_operation_ = "operation " + std::to_string(number) + ", " + what + " " + name +
                        " after " + last_operation_;
  }
  has_failed_ = true;
  if (frozen) {
    error = IOStatus::IOError(name, "the power is off");
    return Verdict::kFail;
  }
  error = kind_ == FaultKind::kNoSpace ? IOStatus::NoSpace(name, "injected")
                                       : IOStatus::IOError(name, "injected");
  return kind_ == FaultKind::kShortWrite ? Verdict::kShort : Verdict::kFail;
}

// --- what is on the disk -------------------------------------------------------------------------

void FaultFs::note_size(const std::string& name, uint64_t size) {
  MutexLock lock(mutex_);
  FileState& file = files_[name];
  file.size = size;
  file.synced = std::min(file.synced, size);
}

void FaultFs::note_synced(const std::string& name) {
  MutexLock lock(mutex_);
  FileState& file = files_[name];
  if (!file.lost_writes) file.synced = file.size;
}

void FaultFs::note_failed_sync(const std::string& name) {
  MutexLock lock(mutex_);
  files_[name].lost_writes = true;
}

void FaultFs::note_overwritten(const std::string& name) {
  std::string before = contents(name);
  MutexLock lock(mutex_);
  FileState& file = files_[name];
  if (file.size > file.synced) before.resize(file.synced);
  if (!file.in_place) file.before = before;
  file.in_place = true;
}

void FaultFs::note_directory_synced(const std::string& name) {
  std::string directory = name;
  while (!directory.empty() && directory.back() == '/') directory.pop_back();
  MutexLock lock(mutex_);
  for (auto& [path, file] : files_) {
    if (parent_of(path) != directory) continue;
    file.name_synced = true;
    if (!file.in_place) file.before.reset();
  }
}

std::string FaultFs::contents(const std::string& name) {
  std::string bytes;
  rocksdb::ReadFileToString(target(), name, &bytes).PermitUncheckedError();
  return bytes;
}

void FaultFs::put_contents(const std::string& name, const std::string& bytes) {
  rocksdb::WriteStringToFile(target(), bytes, name, false).PermitUncheckedError();
}

void FaultFs::lose_unsynced(uint64_t seed, bool keep_nothing) {
  std::mt19937_64 random(seed);
  MutexLock lock(mutex_);
  for (auto& [name, file] : files_) {
    const bool keeps = !keep_nothing && random() % 2 == 0;
    if (!target()->FileExists(name, IOOptions(), nullptr).ok()) continue;
    if (file.in_place) {
      if (!keeps && file.before.has_value()) put_contents(name, *file.before);
      continue;
    }
    if (!file.name_synced && !keeps) {
      if (file.before.has_value()) {
        put_contents(name, *file.before);
      } else {
        target()->DeleteFile(name, IOOptions(), nullptr).PermitUncheckedError();
      }
      continue;
    }
    const uint64_t unsynced = file.size - file.synced;
    if (unsynced == 0) continue;
    const uint64_t kept = keep_nothing ? 0 : random() % (unsynced + 1);
    std::string bytes = contents(name);
    bytes.resize(std::min<size_t>(bytes.size(), file.synced + kept));
    // Blocks reach the disk in any order: sometimes there is a hole before the kept data.
    if (!keep_nothing && kept > 1 && random() % 4 == 0) {
      bytes[file.synced + random() % kept] ^= 0x20;
    }
    put_contents(name, bytes);
  }
  files_.clear();
}

// --- the file system -----------------------------------------------------------------------------

IOStatus FaultFs::NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                  std::unique_ptr<rocksdb::FSWritableFile>* file,
                                  IODebugContext* debug) {
  IOStatus error;
  if (next_operation("create", name, error) != Verdict::kGo) return error;
  const IOStatus status = target()->NewWritableFile(name, options, file, debug);
  if (!status.ok()) return status;
  {
    MutexLock lock(mutex_);
    FileState state;
    // An existing name remains; its file is truncated.
    const auto known = files_.find(name);
    state.name_synced = known != files_.end() && known->second.name_synced;
    files_[name] = state;
  }
  *file = std::make_unique<FaultWritableFile>(std::move(*file), name, 0, *this);
  return status;
}

IOStatus FaultFs::ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSWritableFile>* file,
                                     IODebugContext* debug) {
  IOStatus error;
  if (next_operation("reopen", name, error) != Verdict::kGo) return error;
  const IOStatus status = target()->ReopenWritableFile(name, options, file, debug);
  if (!status.ok()) return status;
  uint64_t size = 0;
  target()->GetFileSize(name, IOOptions(), &size, nullptr).PermitUncheckedError();
  *file = std::make_unique<FaultWritableFile>(std::move(*file), name, size, *this);
  return status;
}

IOStatus FaultFs::NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                  std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                  IODebugContext* debug) {
  const IOStatus status = target()->NewRandomRWFile(name, options, file, debug);
  if (!status.ok()) return status;
  note_overwritten(name);
  *file = std::make_unique<FaultRandomRWFile>(std::move(*file), name, *this);
  return status;
}

IOStatus FaultFs::NewDirectory(const std::string& name, const IOOptions& options,
                               std::unique_ptr<rocksdb::FSDirectory>* directory,
                               IODebugContext* debug) {
  const IOStatus status = target()->NewDirectory(name, options, directory, debug);
  if (!status.ok()) return status;
  *directory = std::make_unique<FaultDirectory>(std::move(*directory), name, *this);
  return status;
}

IOStatus FaultFs::DeleteFile(const std::string& name, const IOOptions& options,
                             IODebugContext* debug) {
  IOStatus error;
  if (next_operation("delete", name, error) != Verdict::kGo) return error;
  const IOStatus status = target()->DeleteFile(name, options, debug);
  MutexLock lock(mutex_);
  if (status.ok()) files_.erase(name);
  return status;
}

IOStatus FaultFs::RenameFile(const std::string& from, const std::string& to,
                             const IOOptions& options, IODebugContext* debug) {
  IOStatus error;
  if (next_operation("rename", from, error) != Verdict::kGo) return error;
  std::optional<std::string> before;
  if (target()->FileExists(to, IOOptions(), nullptr).ok()) before = contents(to);
  const IOStatus status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  const auto known = files_.find(from);
  FileState state = known != files_.end() ? known->second : FileState();
  if (known != files_.end()) files_.erase(known);
  // A second rename onto a name whose first rename is not on disk still falls back to the original.
  const auto replaced = files_.find(to);
  if (replaced != files_.end() && replaced->second.before.has_value()) {
    before = replaced->second.before;
  }
  state.before = std::move(before);
  state.name_synced = false;
  files_[to] = std::move(state);
  return status;
}

IOStatus FaultFs::LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                           IODebugContext* debug) {
  IOStatus error;
  if (next_operation("link", from, error) != Verdict::kGo) return error;
  const IOStatus status = target()->LinkFile(from, to, options, debug);
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  const auto known = files_.find(from);
  FileState state = known != files_.end() ? known->second : FileState();
  state.name_synced = false;
  state.link_of = from;
  files_[to] = std::move(state);
  return status;
}

IOStatus FaultFs::GetFreeSpace(const std::string& path, const IOOptions& options,
                               uint64_t* free_bytes, IODebugContext* debug) {
  const uint64_t capacity = capacity_.load(std::memory_order_relaxed);
  if (capacity == 0) return target()->GetFreeSpace(path, options, free_bytes, debug);
  MutexLock lock(mutex_);
  *free_bytes = capacity - std::min(capacity, used_bytes());
  return IOStatus::OK();
}

}  // namespace sluice
