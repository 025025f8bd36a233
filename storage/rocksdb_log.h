// The log on RocksDB: commits are values keyed by their first lsn. Checkpoints are SST files that
// are written beside the log and ingested behind it in key order.
//
// Reasons for the options (measurements are in ARCHITECTURE.md):
// - Keys only grow, so memtables are flushed to files that do not overlap, and "compaction" moves
//   them from level 0 to level 1 by name. Level 1 has no size limit; trimming deletes whole files
//   there.
// - Values are large, written once and read at a start. So there is no compression, no filter, no
//   block cache, few memtables, and no page cache where the file system supports direct I/O for
//   tables.
// - kTolerateCorruptedTailRecords: a log with a torn tail opens. If the damage is not in the tail,
//   Store::open first determines, without changing anything, whether it lies above the mark, and
//   only then accepts what precedes it.
// - One column family: with two, each flush would first sync a log that it makes obsolete.
// - RocksDB's own info log is replaced, because its writer aborts the process on EIO.
// - Nothing is retried after an error: automatic resumption is off.
#pragma once

#include <memory>
#include <string>

#include "storage/log.h"
#include "storage/log_sink.h"

namespace rocksdb {
class Env;
}

namespace sluice {

class SpareFiles;

struct RocksdbLogOptions {
  std::string directory;
  rocksdb::Env* env = nullptr;  // null: the default; tests pass one over a FaultFs
  bool read_only = false;
  // Accept a damaged write-ahead log up to the damage. The caller must check the end against the
  // mark.
  bool up_to_damage = false;
  LogSink sink;
  std::shared_ptr<SpareFiles> spare_files;  // null: none
  // Up to memtables + 1 of these are in memory at a time, about 32 MB.
  size_t memtable_bytes = size_t{8} << 20;
  int memtables = 4;
};

// Opens or creates the data directory, which is locked until the log is destroyed.
Result<std::unique_ptr<Log>> open_rocksdb_log(const RocksdbLogOptions& options);

}  // namespace sluice
