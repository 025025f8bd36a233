// The file system under RocksDB, with two rules more.
//
// A file that cannot be opened since there are too many is tried again in exchange for a spare
// descriptor, as long as there are some (storage/spare_files.h).
//
// Once a write or sync of the table of contents (MANIFEST, CURRENT, their directory) has failed, no
// file of the database is deleted any more. Why: a failed write is unknown, not absent. RocksDB 7.8
// takes a manifest record whose sync failed for absent and deletes the table that it had just
// ingested; but the record is in the kernel's cache, the next start reads it, misses the table, and
// cannot open. With the table kept, both outcomes open: either the record counts, or the table is
// an orphan that the next start removes. (tests/unit/storage/fault_test.cc finds this within
// seconds when the rule is taken out.)
//
// Thread-safe.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/mutex.h"
#include "storage/spare_files.h"

namespace sluice {

class CarefulFs final : public rocksdb::FileSystemWrapper {
 public:
  // `database`: the directory that the rule is about.
  // `spares` may be null.
  CarefulFs(const std::shared_ptr<rocksdb::FileSystem>& base, std::string database,
            std::shared_ptr<SpareFiles> spares)
      : FileSystemWrapper(base), database_(std::move(database)), spares_(std::move(spares)) {}

  const char* Name() const override { return "CarefulFs"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  // The write-ahead log that was begun last; empty: there was none yet. Its file is there as long
  // as the database is.
  std::string newest_log() const EXCLUDES(mutex_);

  // For the files that it hands out: passes the status on, and remembers a failure.
  rocksdb::IOStatus watch(rocksdb::IOStatus status) {
    if (!status.ok()) contents_unknown_.store(true, std::memory_order_release);
    return status;
  }

 private:
  bool in_database(const std::string& name) const {
    return name.compare(0, database_.size(), database_) == 0 && name.size() > database_.size() &&
           name[database_.size()] == '/';
  }

  rocksdb::IOStatus with_file(const std::function<rocksdb::IOStatus()>& open);

  const std::string database_;
  const std::shared_ptr<SpareFiles> spares_;
  std::atomic<bool> contents_unknown_{false};
  mutable Mutex mutex_;
  std::string newest_log_ GUARDED_BY(mutex_);
};

}  // namespace sluice
