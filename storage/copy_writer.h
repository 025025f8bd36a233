// CopyWriter makes a data directory of a copy (copy_stream.h), and install_copy() puts that in the
// place of another one, whose data are kept until the new ones are in place.
//
// A copy is loaded into the folder `incoming-copy` of the directory itself, which may be a mount
// point. When it is accepted, the parts that hold data change places by renames; install_copy()
// does what is left of them, so that a crash at any time leaves the old data or the new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "storage/copy_stream.h"
#include "storage/log.h"

namespace rocksdb {
class Env;
}

namespace sluice {

// An `env` here: as of RocksdbLogOptions.

// Into `<directory>/incoming-copy`, which must not exist. Used by one thread.
class CopyWriter final : public CopySink {
 public:
  // `in_group`: the new directory continues in the replicated log where the copy ends. Otherwise it
  // belongs to no group. `keep_free_bytes`: a copy that would leave less of the disk is refused
  // before its first byte is written (kNoSpace); nothing: as long as there is room.
  CopyWriter(std::string directory, bool in_group, rocksdb::Env* env = nullptr,
             std::optional<uint64_t> keep_free_bytes = std::nullopt);
  ~CopyWriter() override;

  Status begin(const CopyHead& head) override;
  Status add_piece(uint32_t number, Bytes piece) override;
  Status add_commit(Lsn first_lsn, Bytes commit) override;
  // On return the copy is on the disk. accept_copy() follows, or it is removed.
  Status end() override;

 private:
  Status look_for_room(uint64_t bytes) const;
  Status finish_checkpoint();

  const std::string directory_;
  const std::string incoming_;
  const bool in_group_;
  rocksdb::Env* const env_;
  const std::optional<uint64_t> keep_free_bytes_;
  CopyHead head_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<CheckpointWriter> checkpoint_;
};

// The copy in `<directory>/incoming-copy` is whole and wanted: install_copy() puts it in place from
// here on, also after a crash. REQUIRES: CopyWriter::end() was called.
Status accept_copy(const std::string& directory, rocksdb::Env* env = nullptr);

// Completes or removes what a copy has left. REQUIRES: the caller has the directory's lock, and it
// is not open. Puts an accepted copy in place of the data, and removes any other. Returns whether a
// copy was put in place.
Result<bool> install_copy(const std::string& directory, rocksdb::Env* env = nullptr);

// install_copy() with the lock, if there is anything to do.
Status finish_copy(const std::string& directory);

// The lock of a data directory, for as long as this lives.
class DirectoryLock {
 public:
  // Creates the directory if it is missing. kLocked: a process uses it.
  static Result<std::unique_ptr<DirectoryLock>> take(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(void* lock) : lock_(lock) {}
  void* lock_;
};

// The file `load-anew` of a directory: its data are to be replaced by a copy of another node's. It
// names the cluster id of the group that gives them; empty: whatever group it is. A start outside
// of a group removes it, since what is written there is not to be replaced.
bool is_to_load_anew(const std::string& directory);
std::string load_anew_cluster(const std::string& directory);
// On return it is on disk.
Status ask_to_load_anew(const std::string& directory, const std::string& cluster_id,
                        rocksdb::Env* env = nullptr);
Status forget_load_anew(const std::string& directory, rocksdb::Env* env = nullptr);

}  // namespace sluice
