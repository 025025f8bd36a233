// The narrow interface between the journal and the disk: an ordered log of commits, checkpoints
// beside it, and the high-water mark. RocksdbLog is the real one; a simulator puts a faulty one in
// its place.
//
// A *commit* is the bytes of one or more units with consecutive lsns, stored under its first lsn. A
// *checkpoint* is a numbered sequence of pieces and a summary; it appears whole or not at all.
//
// Threads: append_commits, trim, truncate and the readers each by one thread at a time, but beside
// each other; everything else by any thread. After an error of append_commits, sync or set_mark the
// caller must not try again: what was written is unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/ports/journal.h"
#include "storage/format.h"

namespace sluice {

// Commits in the order of their lsns. The bytes are valid until the next call.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // False at the end or at damage; status() tells which.
  virtual bool next(Lsn& first_lsn, Bytes& commit) = 0;
  virtual Status status() const = 0;
};

// The pieces of one checkpoint in order, without its summary. The bytes are valid until the next
// call.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  virtual bool next(uint32_t& number, Bytes& piece) = 0;
  virtual Status status() const = 0;
};

// One checkpoint on its way to disk; destroyed without commit() it leaves nothing.
class CheckpointWriter {
 public:
  virtual ~CheckpointWriter() = default;
  // Pieces come in ascending order from 0; each is sealed (format.h). This and finish() write
  // beside the log: after an error of theirs it is as it was.
  virtual Status add_piece(uint32_t number, Bytes piece) = 0;
  // The last of it; afterwards all of it is on the disk.
  virtual Status finish(const CheckpointSummary& summary) = 0;
  // Makes it the newest checkpoint, in one step, once it is finished. After an error nobody knows
  // whether it is: that is an error of the log.
  virtual Status commit() = 0;
};

struct Commit {
  Lsn first_lsn = 0;
  // One after the other, together less than 4 GiB: what RocksDB keeps under one key.
  std::span<const Bytes> parts;
};

class Log {
 public:
  virtual ~Log() = default;

  // Hands the commits to the kernel, and with `sync` to the disk, before it returns. After a crash
  // all of them are there or none.
  virtual Status append_commits(std::span<const Commit> commits, bool sync) = 0;
  Status append_commit(Lsn first_lsn, Bytes bytes, bool sync) {
    const Commit commit{first_lsn, {&bytes, 1}};
    return append_commits({&commit, 1}, sync);
  }
  // What append_commits returned before this call is on the disk afterwards. Runs beside it.
  virtual Status sync() = 0;

  // Starts with the commit that contains `lsn` (or the first one after it).
  virtual std::unique_ptr<LogReader> read_from(Lsn lsn) = 0;
  // Gives back space of commits that lie wholly before `lsn`; some of them may stay for a while.
  virtual Status trim_before(Lsn lsn) = 0;
  // Removes every commit that begins after `lsn`: the tail that recovery did not accept.
  virtual Status truncate_after(Lsn lsn) = 0;

  virtual Result<std::optional<CheckpointSummary>> newest_checkpoint() = 0;
  virtual std::unique_ptr<PieceReader> read_checkpoint(uint64_t checkpoint) = 0;
  virtual Result<std::unique_ptr<CheckpointWriter>> start_checkpoint(uint64_t checkpoint) = 0;
  virtual Status drop_checkpoints_before(uint64_t checkpoint) = 0;

  // The high-water mark: an lsn that was on the disk once, so a history that ends below it has lost
  // something. Written after a sync, never synced itself.
  virtual Status set_mark(Lsn lsn) = 0;
  // An error if the files have been taken away underneath: what is written then goes nowhere. Also
  // by set_mark.
  virtual Status check_presence() { return {}; }
  virtual Result<Lsn> mark() = 0;
  virtual std::string mark_name() const = 0;

  // Called (from a thread of the log's) when work in the background failed. At most once.
  virtual void on_failure(std::function<void(const Status&)> listener) = 0;

  virtual uint64_t disk_bytes() const = 0;
  virtual uint64_t memory_bytes() const = 0;  // about; what the log keeps beside what we hand it
  virtual Result<uint64_t> free_disk_bytes() const = 0;
};

}  // namespace sluice
