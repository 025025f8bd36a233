// The log on RocksDB: commits are values keyed by their first lsn; checkpoints are SST files that
// are written beside it and ingested behind them in the order of keys.
//
// Why these options (architecture.md has the measurements):
//  - Keys only grow, so memtables flush to files that do not overlap, and "compaction" moves them
//    from level 0 to level 1 by name. Level 1 has no size limit, and trimming deletes whole files
//    there.
//  - Values are large, written once and read at a start, so: no compression, no filter, no block
//    cache, few memtables, and no page cache where the file system lets tables go around it.
//  - kTolerateCorruptedTailRecords: a torn tail opens. Of damage before the tail Store::open finds
//    out, without changing anything, whether it lies above the mark, and only then takes what is
//    before it.
//  - One column family: with two, each flush would first sync a log that it makes obsolete.
//  - RocksDB's own info log is replaced, since its writer aborts the process on EIO.
//  - After an error nothing is tried again: no automatic resumption.
#pragma once

#include <cstdint>
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
  rocksdb::Env* env = nullptr;  // null: the machine's; tests pass one over a FaultFs
  bool read_only = false;
  // Take a damaged write-ahead log up to the damage. Only for who checks the end against the mark.
  bool up_to_damage = false;
  LogSink sink;
  std::shared_ptr<SpareFiles> spare_files;  // null: there are none
  // Up to memtables + 1 of these are in memory at a time, about 32 MB.
  size_t memtable_bytes = size_t{8} << 20;
  int memtables = 4;
};

// Opens or makes the data directory. The directory is locked until the log is destroyed.
Result<std::unique_ptr<Log>> open_rocksdb_log(const RocksdbLogOptions& options);

}  // namespace sluice
