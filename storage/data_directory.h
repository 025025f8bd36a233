// The directory that holds everything: its lock, its format, its high-water mark, and where the
// parts are.
//
//   LOCK              held while a server (or a writing tool) runs
//   FORMAT            version, and whether creation was finished
//   high-water-mark   see Log::set_mark
//   hash-seed         see hash_seed.h; a directory without it is complete
//   log/              RocksDB: the log of commits and the committed checkpoints
//   staging/          a checkpoint on its way; emptied at start
//
// FORMAT is written first and last: "creating" before RocksDB makes its files, "ready" after. So a
// directory whose creation was cut off can be told from one that lost files, and only the former is
// made anew. Goes through rocksdb::Env, so that faults can be put in. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/ports/journal.h"
#include "storage/log_sink.h"

namespace rocksdb {
class Env;
class FileLock;
class FSRandomRWFile;
class Status;
}  // namespace rocksdb

namespace sluice {

// Which file a name stands for: the same after a rename, another one after a removal.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t number = 0;
  bool operator==(const FileIdentity&) const = default;
};

// There is one at this path, whole or not.
bool holds_data(const std::string& path);

class DataDirectory {
 public:
  // Read-only: takes no lock, creates nothing, accepts a directory that a server has open.
  static Result<std::unique_ptr<DataDirectory>> open(rocksdb::Env* env, const std::string& path,
                                                     bool read_only);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  // True until finish_creation: RocksDB must make a new database.
  bool creating() const { return creating_; }
  Status finish_creation();

  std::string path(const char* name) const { return root_ + "/" + name; }
  const std::string& root() const { return root_; }

  // An error if the directory is no longer at its path: its mark is gone or another one, or the
  // file that `newest_log` names is gone. It names another one where RocksDB has begun a new log
  // meanwhile, which deletes the old one; an empty name is not looked for.
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

// A failed call of RocksDB's as ours, with what was tried in front.
Status from_rocksdb(const rocksdb::Status& status, const std::string& what);

}  // namespace sluice
