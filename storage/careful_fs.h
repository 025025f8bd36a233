// A rocksdb::FileSystem that adds two rules to the one it wraps.
//
// 1. When a file cannot be opened because the process or the system is out of descriptors, the open
// is retried after closing a spare descriptor, as long as spare ones are left
// (storage/spare_files.h).
//
// 2. After a failed write or sync of MANIFEST, CURRENT or their directory, no file of the database
// is deleted any more. Reason: the outcome of a failed write is unknown. RocksDB 7.8 assumes that a
// manifest record whose sync failed was not written, and deletes the table it has just ingested.
// The record may still be in the kernel's cache; the next start reads it, misses the table and
// cannot open the database. If the table is kept, the database opens in both cases: either the
// record is valid, or the table is an orphan that the next start removes. (Without this rule
// tests/unit/storage/fault_test.cc fails within seconds.)
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
  // `database` is the directory that rule 2 applies to. `spares` may be null.
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

  // Name of the newest write-ahead log; empty if none was created yet. The file exists as long as
  // the database does.
  std::string newest_log() const EXCLUDES(mutex_);

  // Called by the file wrappers with each status: returns it unchanged and remembers a failure.
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
