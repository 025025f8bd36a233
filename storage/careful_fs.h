// The file system under RocksDB, with one rule more: once a write or sync of its table of contents
// (MANIFEST, CURRENT, their directory) has failed, no file of the database is deleted any more.
//
// Why: a failed write is unknown, not absent. RocksDB 7.8 takes a manifest record whose sync failed
// for absent and deletes the table that it had just ingested; but the record is in the kernel's
// cache, the next start reads it, misses the table, and cannot open. With the table kept, both
// outcomes open: either the record counts, or the table is an orphan that the next start removes.
// (tests/unit/fault_test.cc finds this within seconds when the rule is taken out.)
//
// Thread-safe.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

namespace sluice {

class CarefulFs final : public rocksdb::FileSystemWrapper {
 public:
  // `database`: the directory that the rule is about.
  CarefulFs(const std::shared_ptr<rocksdb::FileSystem>& base, std::string database)
      : FileSystemWrapper(base), database_(std::move(database)) {}

  const char* Name() const override { return "CarefulFs"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

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

  const std::string database_;
  std::atomic<bool> contents_unknown_{false};
};

}  // namespace sluice
