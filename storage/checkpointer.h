// Runs fuzzy checkpoints in a thread of its own: on request, when the log since the last one has
// grown past a limit (and past the size of the last checkpoint, so that a large state is not
// written again for every small log), and by `save` rules.
//
// The rule (architecture.md): B = last lsn at the start; walk; E = last lsn at the end; commit only
// once the log is on the disk up to E; then drop older checkpoints and trim the log up to B. Where
// a unit between B and E moves keys by name alone (Journal::append_moves), it begins again with a
// new B: what was walked may hold the value at neither place, or half of it.
//
// Space: what is below `min_free_disk_bytes` of the journal belongs to the journal. A checkpoint
// that nobody asked for does not begin where it will not fit, and any one gives up before it takes
// from that. A failed one leaves the log as it was, so the journal goes on; it is tried again after
// a while, and when there is room. Only an error of the log itself (storage/log.h) is fail-stop.
//
// Pace: after each step it sleeps for `rest_ratio` times as long as the step took, so that requests
// meet it rarely. An explicit wait_until_done (SAVE, shutdown) makes it run without rests.
//
// Threads: all public functions by any thread that holds no shard lock (the walk takes them).
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
  // Starts a walk over the live state; called on the checkpointer's thread.
  std::function<std::unique_ptr<CheckpointWalk>()> begin_walk;
  std::function<int64_t()> now_ms;  // wall clock, for the summary and LASTSAVE
  // 0: the log's growth starts none.
  uint64_t log_bytes = uint64_t{256} << 20;
  std::vector<SaveRule> save_rules;
  size_t piece_bytes = size_t{192} << 10;
  // A step of the walk that brings more than this is divided.
  size_t max_piece_bytes = kMaxUnitBytes;
  double rest_ratio = 2.0;
  // About what the data take in memory, which a checkpoint of them does not exceed; null: unknown.
  std::function<uint64_t()> data_bytes;
  // After a failure; twice as long after each further one, up to 64 times as long.
  std::chrono::milliseconds retry_delay{5000};
  // Each one has ended, its result is in status(); on the checkpointer's thread.
  std::function<void()> on_finished;
  LogSink sink;
};

struct CheckpointStatus {
  bool running = false;   // or asked for
  uint64_t finished = 0;  // the greatest ticket that is served
  uint64_t records = 0;   // of the running one
  uint64_t bytes = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t failed_in_a_row = 0;
  Status last_result;           // of the last finished one
  int64_t last_success_ms = 0;  // LASTSAVE; at start, the recovered checkpoint's time
  double last_seconds = 0;
  CheckpointSummary last;  // the newest committed one
};

class Checkpointer {
 public:
  // `newest`: what recovery found; `log_bytes`: how much log there is since.
  Checkpointer(Log& log, GroupCommitJournal& journal, CheckpointerOptions options,
               const std::optional<CheckpointSummary>& newest, uint64_t log_bytes);
  ~Checkpointer();  // cancels a running one

  // Asks for a checkpoint that begins after this call; returns its ticket. Several requests share
  // one.
  uint64_t request();
  // Blocks until the checkpoint of `ticket` has ended; its result.
  Status wait_until_done(uint64_t ticket);
  // A running one is abandoned, no new one starts.
  void stop();

  void set_save_rules(std::vector<SaveRule> rules);
  void set_log_bytes_limit(uint64_t bytes);

  CheckpointStatus status() const;
  bool running() const { return running_.load(std::memory_order_relaxed); }
  // Units since the last successful one began: INFO's rdb_changes_since_last_save.
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
  // To the log; `delay`: before it is tried again.
  void report(const Status& result, const CheckpointSummary& summary, Clock::duration took,
              Clock::duration delay) const;

  Log& log_;
  GroupCommitJournal& journal_;
  const CheckpointerOptions options_;

  std::atomic<bool> running_{false};
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<Lsn> base_lsn_{0};
  uint64_t floor_bytes_ = 0;  // the running one leaves this free; of its thread

  mutable Mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  int hurried_ GUARDED_BY(mutex_) = 0;  // callers in wait_until_done
  uint64_t requested_ GUARDED_BY(mutex_) = 0;
  uint64_t started_ GUARDED_BY(mutex_) = 0;   // the greatest ticket that the running one serves
  uint64_t finished_ GUARDED_BY(mutex_) = 0;  // the greatest ticket that is served
  std::vector<SaveRule> save_rules_ GUARDED_BY(mutex_);
  uint64_t log_bytes_limit_ GUARDED_BY(mutex_);
  uint64_t base_kept_bytes_ GUARDED_BY(mutex_) = 0;  // kept_bytes() at the last one's start
  uint64_t recovered_log_bytes_ GUARDED_BY(mutex_);
  Clock::time_point last_end_ GUARDED_BY(mutex_);
  uint64_t needed_bytes_ GUARDED_BY(mutex_) = 0;  // more than what a failed one had written
  CheckpointStatus status_ GUARDED_BY(mutex_);

  Thread thread_;
};

}  // namespace sluice
