#include "storage/careful_fs.h"

namespace sluice {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class WatchedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<rocksdb::FSWritableFile>&& target, CarefulFs& fs)
      : FSWritableFileOwnerWrapper(std::move(target)), fs_(fs) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return fs_.watch(FSWritableFileWrapper::Append(data, options, debug));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  IODebugContext* debug) override {
    return fs_.watch(FSWritableFileWrapper::Append(data, options, verification, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return fs_.watch(FSWritableFileWrapper::Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return fs_.watch(FSWritableFileWrapper::Fsync(options, debug));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return fs_.watch(FSWritableFileWrapper::Close(options, debug));
  }

 private:
  CarefulFs& fs_;
};

class WatchedDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  WatchedDirectory(std::unique_ptr<rocksdb::FSDirectory>&& target, CarefulFs& fs)
      : FSDirectoryWrapper(std::move(target)), fs_(fs) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return fs_.watch(FSDirectoryWrapper::Fsync(options, debug));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& what) override {
    return fs_.watch(FSDirectoryWrapper::FsyncWithDirOptions(options, debug, what));
  }

 private:
  CarefulFs& fs_;
};

bool is_table_of_contents(const std::string& name) {
  const std::string file = name.substr(name.rfind('/') + 1);
  return file.starts_with("MANIFEST") || file.starts_with("CURRENT") || file.ends_with(".dbtmp");
}

// True for EMFILE and ENFILE. RocksDB has no code for them, hence the comparison of texts.
bool is_out_of_files(const IOStatus& status) {
  return !status.ok() && status.ToString().find("Too many open files") != std::string::npos;
}

}  // namespace

IOStatus CarefulFs::with_file(const std::function<IOStatus()>& open) {
  IOStatus status = open();
  // Another thread may take the descriptor that was freed; then the next spare one is closed.
  while (is_out_of_files(status) && spares_ != nullptr && spares_->give_one()) status = open();
  return status;
}

std::string CarefulFs::newest_log() const {
  MutexLock lock(mutex_);
  return newest_log_;
}

IOStatus CarefulFs::NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    IODebugContext* debug) {
  const bool watched = in_database(name) && is_table_of_contents(name);
  const IOStatus status =
      with_file([&] { return target()->NewWritableFile(name, options, file, debug); });
  if (status.ok() && in_database(name) && name.ends_with(".log")) {
    MutexLock lock(mutex_);
    newest_log_ = name;
  }
  if (!watched) return status;
  if (status.ok()) *file = std::make_unique<WatchedFile>(std::move(*file), *this);
  return watch(status);
}

IOStatus CarefulFs::NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      IODebugContext* debug) {
  return with_file([&] { return target()->NewSequentialFile(name, options, file, debug); });
}

IOStatus CarefulFs::NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        IODebugContext* debug) {
  return with_file([&] { return target()->NewRandomAccessFile(name, options, file, debug); });
}

IOStatus CarefulFs::NewDirectory(const std::string& name, const IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 IODebugContext* debug) {
  const IOStatus status =
      with_file([&] { return target()->NewDirectory(name, options, directory, debug); });
  if (status.ok() && in_database(name + "/")) {
    *directory = std::make_unique<WatchedDirectory>(std::move(*directory), *this);
  }
  return status;
}

IOStatus CarefulFs::RenameFile(const std::string& from, const std::string& to,
                               const IOOptions& options, IODebugContext* debug) {
  const IOStatus status = target()->RenameFile(from, to, options, debug);
  return in_database(to) ? watch(status) : status;
}

IOStatus CarefulFs::DeleteFile(const std::string& name, const IOOptions& options,
                               IODebugContext* debug) {
  if (in_database(name) && contents_unknown_.load(std::memory_order_acquire)) {
    return IOStatus::IOError(name, "kept: the database may still refer to it");
  }
  return target()->DeleteFile(name, options, debug);
}

}  // namespace sluice
