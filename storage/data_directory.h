// The data directory: its lock, its format, its high-water mark and the paths of its parts.
//
//   LOCK              held while a server (or a tool that writes) runs
//   FORMAT            version, and whether creation was finished
//   high-water-mark   see Log::set_mark
//   hash-seed         see hash_seed.h; optional
//   group-base        see group_mark.h; optional
//   log/              RocksDB: the log of commits and the committed checkpoints
//   staging/          a checkpoint being written; emptied at start
//   incoming-copy/, replaced-data/, load-anew
//                     while another node's copy takes the place of the data: see copy_writer.h
//
// FORMAT is written first and last: "creating" before RocksDB creates its files, "ready"
// afterwards. So a directory whose creation was interrupted can be told from one that has lost
// files, and only the former is created again. All access goes through rocksdb::Env, so that tests
// can inject faults. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/ports/journal.h"

namespace rocksdb {
class Env;
class FileLock;
class FSRandomRWFile;
class Status;
}  // namespace rocksdb

namespace sluice {

// Identifies the file behind a name: unchanged by a rename, different after remove and create.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t number = 0;
  bool operator==(const FileIdentity&) const = default;
};

// True if there is a data directory at this path, whole or damaged. One whose creation was
// interrupted has no data.
bool holds_data(const std::string& path);

class DataDirectory {
 public:
  // Read-only: takes no lock, creates nothing, and accepts a directory that a server has open.
  static Result<std::unique_ptr<DataDirectory>> open(rocksdb::Env* env, const std::string& path,
                                                     bool read_only);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  // True until finish_creation: RocksDB must create a new database.
  bool creating() const { return creating_; }
  Status finish_creation();

  std::string path(const char* name) const { return root_ + "/" + name; }
  const std::string& root() const { return root_; }

  // Returns an error if the directory is no longer at its path: its mark is missing or a different
  // file, or the file named by `newest_log` is missing. `newest_log` is called again then, since
  // RocksDB may have begun a new log and deleted the old one. An empty name is not checked.
  Status check_presence(const std::function<std::string()>& newest_log) const;

  Result<Lsn> read_mark() const;
  Status write_mark(Lsn lsn);

 private:
  DataDirectory(rocksdb::Env* env, std::string root);
  Status lock();
  Status check_format(bool read_only);
  Status begin_creation();
  Status sync_parent();
  Status write_format(const char* state);
  Status open_mark();
  Status removed(const std::string& name, const char* what) const;

  rocksdb::Env* env_;
  std::string root_;
  bool creating_ = false;
  rocksdb::FileLock* lock_ = nullptr;
  std::unique_ptr<rocksdb::FSRandomRWFile> mark_file_;
  FileIdentity mark_identity_;
};

// Converts a failed call of RocksDB; `what`, which was being tried, is put in front.
Status from_rocksdb(const rocksdb::Status& status, const std::string& what);

}  // namespace sluice
