// The interface between the journal and the disk: an ordered log of commits, checkpoints beside it,
// and the high-water mark. RocksdbLog implements it; the simulator in tests has a faulty
// implementation.
//
// A *commit* is the bytes of one or more units with consecutive lsns, stored under its first lsn. A
// *checkpoint* is a numbered sequence of pieces and a summary; it appears as a whole or not at all.
//
// Threads: append_commits, trim, truncate and the readers are each used by one thread at a time,
// but may run concurrently with each other; everything else by any thread. After an error of
// append_commits, sync or set_mark the caller must not retry, because it is unknown what was
// written.
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

// Reads commits in the order of their lsns. The bytes are valid until the next call.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // Returns false at the end or at damage; status() tells which.
  virtual bool next(Lsn& first_lsn, Bytes& commit) = 0;
  virtual Status status() const = 0;
};

// Reads the pieces of one checkpoint in order, without its summary. The bytes are valid until the
// next call.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  virtual bool next(uint32_t& number, Bytes& piece) = 0;
  virtual Status status() const = 0;
};

// Writes one checkpoint. Destroyed without commit(), it leaves nothing behind.
class CheckpointWriter {
 public:
  virtual ~CheckpointWriter() = default;
  // Pieces come in ascending order from 0, each sealed (format.h). This and finish() do not touch
  // the log: after their errors the log is unchanged.
  virtual Status add_piece(uint32_t number, Bytes piece) = 0;
  // Writes the summary; on return the whole checkpoint is on disk.
  virtual Status finish(const CheckpointSummary& summary) = 0;
  // Makes the finished checkpoint the newest one, atomically. After an error it is unknown whether
  // that happened, so the error is one of the log.
  virtual Status commit() = 0;
};

struct Commit {
  Lsn first_lsn = 0;
  // Concatenated, together less than 4 GiB: RocksDB stores them under one key.
  std::span<const Bytes> parts;
  // Kept beside it, in the same step: the place in the replicated log (group_keys.h). Empty: none.
  Bytes position = {};
};

class Log {
 public:
  virtual ~Log() = default;

  // Hands the commits to the kernel, and with `sync` to the disk, before it returns. After a crash
  // all of them exist or none.
  virtual Status append_commits(std::span<const Commit> commits, bool sync) = 0;
  Status append_commit(Lsn first_lsn, Bytes bytes, bool sync, Bytes position = {}) {
    const Commit commit{first_lsn, {&bytes, 1}, position};
    return append_commits({&commit, 1}, sync);
  }
  // On return, what earlier append_commits calls wrote is on disk. May run beside append_commits.
  virtual Status sync() = 0;

  // Starts with the commit that contains `lsn`, or the first one after it.
  virtual std::unique_ptr<LogReader> read_from(Lsn lsn) = 0;
  // The position beside the commit that ends with `last`. Empty: it has none.
  virtual Result<std::string> position_at(Lsn) { return std::string(); }
  // Frees space of commits that lie wholly before `lsn`; some of them may stay for a while.
  virtual Status trim_before(Lsn lsn) = 0;
  // Removes every commit that begins after `lsn`: the tail that recovery rejected.
  virtual Status truncate_after(Lsn lsn) = 0;

  virtual Result<std::optional<CheckpointSummary>> newest_checkpoint() = 0;
  virtual std::unique_ptr<PieceReader> read_checkpoint(uint64_t checkpoint) = 0;
  virtual Result<std::unique_ptr<CheckpointWriter>> start_checkpoint(uint64_t checkpoint) = 0;
  virtual Status drop_checkpoints_before(uint64_t checkpoint) = 0;

  // The high-water mark: an lsn that was once on disk. A log that ends below it has lost data.
  // Written after a sync, never synced itself.
  virtual Status set_mark(Lsn lsn) = 0;
  // Returns an error if the files were removed while open, so that writes would be lost. set_mark
  // checks it too.
  virtual Status check_presence() { return {}; }
  virtual Result<Lsn> mark() = 0;
  virtual std::string mark_name() const = 0;

  // The listener is called at most once, from a thread of the log, when background work has failed.
  virtual void on_failure(std::function<void(const Status&)> listener) = 0;

  virtual uint64_t disk_bytes() const = 0;
  virtual uint64_t memory_bytes()
      const = 0;  // approximate; what the log keeps besides what we hand it
  virtual Result<uint64_t> free_disk_bytes() const = 0;
};

}  // namespace sluice
