// Owns the parts of storage/ that a server needs, created in the right order: the log, the result
// of recovery, the journal, the checkpointer.
//
//   auto store = Store::open(options, replay);          // any thread; blocks while it loads
//   engine.set_journal(&store.value()->journal());
//   store.value()->start_checkpoints(walks);            // once the engine can be walked
//   ...
//   store.value()->close(CloseMode::kCheckpoint);       // on SIGTERM: no appends from here on
//
// Threads: as each part says; open, start_checkpoints and close are called by one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ports/journal.h"
#include "storage/checkpointer.h"
#include "storage/copy_stream.h"
#include "storage/group_commit.h"
#include "storage/log.h"
#include "storage/log_sink.h"
#include "storage/recovery.h"
#include "storage/rocksdb_log.h"

namespace sluice {

struct StoreOptions {
  // Empty: in memory only. Nothing is read or written, and no checkpoint can be made.
  std::string directory;
  rocksdb::Env* env = nullptr;  // null: the default
  size_t memtable_bytes = RocksdbLogOptions().memtable_bytes;
  std::shared_ptr<SpareFiles> spare_files;  // RocksdbLogOptions::spare_files
  JournalOptions journal;                   // recovery overwrites its last_lsn
  RecoveryOptions recovery;
  // The checkpointer's limits and rules; the others are passed to start_checkpoints.
  uint64_t checkpoint_log_bytes = uint64_t{256} << 20;
  std::vector<SaveRule> save_rules;
  double checkpoint_rest_ratio = 2.0;
  std::chrono::milliseconds checkpoint_retry_delay = CheckpointerOptions().retry_delay;
  std::function<uint64_t()> data_bytes;  // CheckpointerOptions::data_bytes
  std::function<void()> on_checkpoint;   // CheckpointerOptions::on_finished
  LogSink sink;
};

enum class CloseMode { kFlush, kCheckpoint, kDiscard };

class Store {
 public:
  // Errors: the directory is in use (kLocked), has an unknown version (kUnsupported) or is damaged
  // (kDamaged, naming the place), or the disk failed. After an error the state of `replay` is
  // unusable.
  static Result<std::unique_ptr<Store>> open(StoreOptions options, Replay& replay);
  ~Store();  // close(kFlush) unless closed already

  GroupCommitJournal& journal() { return *journal_; }
  const RecoveryResult& recovered() const { return recovered_; }
  bool in_memory() const { return log_ == nullptr; }

  void start_checkpoints(std::function<std::unique_ptr<CheckpointWalk>()> begin_walk,
                         std::function<int64_t()> now_ms, uint64_t earlier_changes = 0);
  // Null in memory and before start_checkpoints.
  Checkpointer* checkpointer() { return checkpointer_.get(); }

  // What another machine makes a directory of. Close it before the store. Errors: kInvalid, in
  // memory and before the first checkpoint; as of the log. Any thread.
  Result<std::unique_ptr<CopyReader>> read_copy();

  // CONFIG SET appendonly. Yes: attaches the journal and requests the checkpoint that makes it
  // valid; returns the ticket for wait_until_done, else 0. Nothing if in memory or before
  // start_checkpoints.
  std::optional<uint64_t> set_appendonly(bool on);

  // If this returns ok, everything appended before is on disk and the directory is unlocked.
  // kCheckpoint makes a checkpoint first, so that the next start is quick; while detached the
  // checkpoint is all that remains, so its failure is the result. kDiscard stops at once, like a
  // crash; for failed journals. Replicated: if GroupCommitJournal::settle() gives up, the end is
  // that of kDiscard and the result kCancelled. The directory is a prefix of the replicated log in
  // any case, which has all that was acknowledged.
  Status close(CloseMode mode);

  uint64_t disk_bytes() const { return log_ != nullptr ? log_->disk_bytes() : 0; }
  uint64_t memory_bytes() const { return log_ != nullptr ? log_->memory_bytes() : 0; }

 private:
  Store() = default;

  StoreOptions options_;
  std::unique_ptr<Log> log_;
  RecoveryResult recovered_;
  std::unique_ptr<GroupCommitJournal> journal_;
  std::unique_ptr<Checkpointer> checkpointer_;
  bool closed_ = false;
};

}  // namespace sluice
