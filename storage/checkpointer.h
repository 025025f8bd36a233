// Runs fuzzy checkpoints on its own thread: on request, by `save` rules, when the log since the
// last checkpoint exceeds a limit and the size of that checkpoint (so that a large state is not
// rewritten for every small log), and when the replicated log cannot be trimmed without one.
//
// A checkpoint is made as follows (see ARCHITECTURE.md): B = last lsn at the start; walk the state;
// E = last lsn at the end; commit once the log is on disk up to E; then drop older checkpoints and
// trim the log up to B. If a unit between B and E moves keys by name alone (Journal::append),
// the checkpoint restarts with a new B, because the walk may have seen the value under neither
// name, or half of it.
//
// Disk space: the last `min_free_disk_bytes` of free space are reserved for the journal. A
// checkpoint that nobody requested does not start unless it is expected to fit, and every
// checkpoint stops before it would use the reserve. A failed checkpoint leaves the log unchanged,
// so the journal continues; it is retried after a delay, and when there is room. Only an error of
// the log itself (storage/log.h) is fail-stop.
//
// Pace: after each step the thread sleeps for `rest_ratio` times the step's duration, so that
// requests rarely run beside it. While someone is in wait_until_done (SAVE, shutdown) it runs
// without rests.
//
// Threads: every public function may be called by any thread that holds no shard lock (the walk
// takes them).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "engine/ports/journal.h"
#include "storage/group_commit.h"
#include "storage/log.h"
#include "storage/log_sink.h"

namespace sluice {

struct SaveRule {
  uint64_t seconds = 0;
  uint64_t changes = 0;
};

struct CheckpointerOptions {
  // Starts a walk over the live state. Called on the checkpointer's thread.
  std::function<std::unique_ptr<CheckpointWalk>()> begin_walk;
  std::function<int64_t()> now_ms;  // wall clock, for the summary and LASTSAVE
  // Log growth that starts a checkpoint. 0: never.
  uint64_t log_bytes = uint64_t{256} << 20;
  std::vector<SaveRule> save_rules;
  // Changes that were made in memory before there was a store. No checkpoint has them.
  uint64_t earlier_changes = 0;
  size_t piece_bytes = size_t{192} << 10;
  // A step of the walk that yields more bytes than this is divided into several pieces.
  size_t max_piece_bytes = kMaxUnitBytes;
  double rest_ratio = 2.0;
  // Approximate memory use of the data, an upper bound for a checkpoint's size. Null: unknown.
  std::function<uint64_t()> data_bytes;
  // Delay after a failure. It doubles with each further failure, up to 64 times.
  std::chrono::milliseconds retry_delay{5000};
  // Called on the checkpointer's thread when a checkpoint has ended; its result is in status().
  std::function<void()> on_finished;
  LogSink sink;
};

struct CheckpointStatus {
  bool running = false;   // or requested
  uint64_t finished = 0;  // the greatest ticket that has been served
  uint64_t records = 0;   // of the running checkpoint
  uint64_t bytes = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t failed_in_a_row = 0;
  Status last_result;           // of the last finished checkpoint
  int64_t last_success_ms = 0;  // for LASTSAVE; initially the time of the recovered checkpoint
  double last_seconds = 0;
  CheckpointSummary last;  // the newest committed checkpoint
};

class Checkpointer {
 public:
  // `newest` is the checkpoint that recovery found, `log_bytes` the size of the log since then.
  Checkpointer(Log& log, GroupCommitJournal& journal, CheckpointerOptions options,
               const std::optional<CheckpointSummary>& newest, uint64_t log_bytes);
  ~Checkpointer();  // cancels a running checkpoint

  // Requests a checkpoint that begins after this call and returns its ticket. Several requests may
  // share one checkpoint.
  uint64_t request();
  // One is due if the newest begins before `lsn`, as by the log's growth: after a failure it waits.
  // While one is due or running, this changes nothing.
  void want(Lsn lsn);
  // Blocks until the checkpoint of `ticket` has ended and returns its result.
  Status wait_until_done(uint64_t ticket);
  // Cancels a running checkpoint and starts no new one.
  void stop();

  void set_save_rules(std::vector<SaveRule> rules);
  void set_log_bytes_limit(uint64_t bytes);

  CheckpointStatus status() const;
  bool running() const { return running_.load(std::memory_order_relaxed); }
  // Units since the last successful checkpoint began, or earlier changes and all units if there is
  // none: rdb_changes_since_last_save in INFO.
  uint64_t changes() const {
    return journal_.last_lsn() - base_lsn_.load(std::memory_order_relaxed);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool due() REQUIRES(mutex_);
  bool log_has_grown() const REQUIRES(mutex_);
  bool may_try_again(Clock::time_point now) const REQUIRES(mutex_);
  Clock::duration retry_delay() const REQUIRES(mutex_);
  uint64_t expected_bytes() const REQUIRES(mutex_);
  Status checkpoint(CheckpointSummary& summary, uint64_t expected);
  Status checkpoint_once(CheckpointSummary& summary, uint64_t expected);
  Status write(CheckpointWriter& writer, CheckpointSummary& summary);
  void committed(const CheckpointSummary& summary, uint64_t kept_before);
  Status fail_log(Status status);
  uint64_t floor_bytes(uint64_t free) const;
  Status look_for_room(uint64_t bytes, uint64_t floor) const;
  Status write_pieces(CheckpointWriter& writer, CheckpointSummary& summary);
  Status add_piece(CheckpointWriter& writer, CheckpointSummary& summary, ByteBuffer& piece,
                   uint32_t count);
  Status add_divided(CheckpointWriter& writer, CheckpointSummary& summary, Bytes piece);
  Status rest(Clock::duration worked);
  void finish(const Status& result, const CheckpointSummary& summary, Clock::duration took);
  // Logs the outcome. `delay` is the time until the next attempt.
  void report(const Status& result, const CheckpointSummary& summary, Clock::duration took,
              Clock::duration delay) const;

  Log& log_;
  GroupCommitJournal& journal_;
  const CheckpointerOptions options_;

  std::atomic<bool> running_{false};
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<Lsn> base_lsn_{0};
  uint64_t floor_bytes_ = 0;  // kept free by the running checkpoint; used by its thread only

  mutable Mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  int hurried_ GUARDED_BY(mutex_) = 0;  // number of callers in wait_until_done
  uint64_t requested_ GUARDED_BY(mutex_) = 0;
  uint64_t started_ GUARDED_BY(mutex_) = 0;   // the greatest ticket that the running one serves
  uint64_t finished_ GUARDED_BY(mutex_) = 0;  // the greatest ticket that has been served
  Lsn wanted_lsn_ GUARDED_BY(mutex_) = 0;     // see want()
  std::vector<SaveRule> save_rules_ GUARDED_BY(mutex_);
  uint64_t log_bytes_limit_ GUARDED_BY(mutex_);
  uint64_t base_kept_bytes_ GUARDED_BY(mutex_) = 0;  // kept_bytes() when the last one began
  uint64_t recovered_log_bytes_ GUARDED_BY(mutex_);
  Clock::time_point last_end_ GUARDED_BY(mutex_);
  uint64_t needed_bytes_ GUARDED_BY(mutex_) = 0;  // more than a failed one had written
  CheckpointStatus status_ GUARDED_BY(mutex_);

  Thread thread_;
};

}  // namespace sluice
