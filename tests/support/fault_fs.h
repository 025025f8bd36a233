// A file system for tests: real files underneath, but the n-th change fails, or power fails.
//
// Failing: the n-th operation that changes something (create, write, sync, rename, link, truncate,
// delete, sync of a directory) returns an error. A failed sync loses the unsynced bytes
// permanently: as on ext4, a later sync of the same file returns OK without restoring them. With
// `stay_broken` every later operation fails too.
//
// Power failure: freeze() makes every later change fail, so that a store can be closed;
// lose_unsynced() then reverts what was not synced: bytes after a file's last sync, and new names
// and renames whose directory was not synced. A seed decides how much of it the disk happened to
// keep.
//
// A small disk: set_capacity() counts the bytes of the files created since then; writes beyond it
// fail with kNoSpace, which does not count as a fault.
//
// Deletes are durable at once. All functions are thread-safe; lose_unsynced must be called while no
// file is open.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "engine/base/mutex.h"

namespace sluice {

enum class FaultKind : uint8_t { kIoError, kNoSpace, kShortWrite };

class FaultFs final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultFs(const std::shared_ptr<rocksdb::FileSystem>& base);

  const char* Name() const override { return "FaultFs"; }

  // Operations are counted from 1. 0: none fails.
  void fail_at(uint64_t operation, FaultKind kind, bool stay_broken);
  // Until heal(), only operations on files whose name contains `part` are counted and fail.
  void only_in(const std::string& part);
  void freeze_at(uint64_t operation);
  void freeze() { freeze_at(1); }
  // Ends all faults and restarts the count.
  void heal();
  uint64_t operations() const { return operations_.load(); }
  // 0: the machine's disk.
  void set_capacity(uint64_t bytes);
  // The minimum of free space since set_capacity().
  uint64_t least_free_bytes() const { return least_free_.load(); }
  bool has_failed() const { return has_failed_.load(); }
  // The failed operation and the preceding ones, for the test to examine.
  std::string failed_operation() const;

  // `keep_nothing`: the strictest disk; otherwise the seed decides what is kept.
  void lose_unsynced(uint64_t seed, bool keep_nothing);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 uint64_t* free_bytes, rocksdb::IODebugContext* debug) override;

  // Called by the file wrappers.
  enum class Verdict : uint8_t { kGo, kFail, kShort };
  Verdict next_operation(const char* what, const std::string& name, rocksdb::IOStatus& error);
  bool has_room(uint64_t bytes);
  void note_size(const std::string& name, uint64_t size);
  void note_synced(const std::string& name);
  void note_failed_sync(const std::string& name);
  void note_overwritten(const std::string& name);
  void note_directory_synced(const std::string& name);

 private:
  struct FileState {
    uint64_t size = 0;
    uint64_t synced = 0;
    bool lost_writes = false;  // a sync failed: later ones have no effect
    bool name_synced = false;
    // The previous file of this name, if a rename replaced it or it is written in place.
    std::optional<std::string> before;
    bool in_place = false;
    std::string link_of;  // a hard link to the same bytes, while that file exists
  };

  uint64_t used_bytes() const REQUIRES(mutex_);

  std::string contents(const std::string& name);
  void put_contents(const std::string& name, const std::string& bytes);

  std::atomic<uint64_t> operations_{0};
  std::atomic<bool> has_failed_{false};
  std::atomic<uint64_t> capacity_{0};
  std::atomic<uint64_t> least_free_{0};

  mutable Mutex mutex_;
  uint64_t fail_at_ GUARDED_BY(mutex_) = 0;
  uint64_t freeze_at_ GUARDED_BY(mutex_) = 0;
  FaultKind kind_ GUARDED_BY(mutex_) = FaultKind::kIoError;
  bool stay_broken_ GUARDED_BY(mutex_) = false;
  std::string only_in_ GUARDED_BY(mutex_);
  std::string failed_operation_ GUARDED_BY(mutex_);
  std::string last_operation_ GUARDED_BY(mutex_);
  std::map<std::string, FileState> files_ GUARDED_BY(mutex_);
};

}  // namespace sluice
