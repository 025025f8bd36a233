// The journal: collects units in a buffer and writes each buffer to the log as one commit.
//
// Modes
//   kAlways       A commit thread writes and syncs; durable_lsn is what is on disk. flush() only
//                 wakes that thread.
//   kEverySecond  flush() writes to the kernel on the caller's thread; on return everything
//                 appended before is durable (in this mode: survives a killed process). A
//                 background thread syncs each second and flushes what nobody else has. It also
//                 writes large buffers itself, so that no caller waits for them: then flush() only
//                 wakes it, until it has caught up.
//   kNever        The same without the sync.
// Detached (`appendonly no`): append only counts, and durable_lsn follows at once. While a
// checkpoint runs, units are kept and written nevertheless, since the checkpoint needs those
// appended during its walk.
//
// Replicated (`journal etcd`): the replicated log decides, the local one follows. append collects
// units as above; ReplicatedCommit sends them, and durable_lsn is what the replicated log has. Only
// then the background thread writes them here, so that the local log is a prefix of the replicated
// one; with kAlways it syncs each commit, but no reply waits for that. A node that does not lead
// writes what it has read there (follow). group_commit_replicated.cc has all of it.
//
// Fail-stop: the first error of a write or sync while attached ends the journal. durable_lsn does
// not move any more, on_failed is called once, and nothing is retried. The server then answers
// -MISCONF to waiting clients and exits with kJournalFailedExitCode. While detached, memory is the
// only copy, so the server keeps running and only checkpoints fail from then on (broken()). The
// same holds between attach() and the first checkpoint: a failure detaches.
//
// Threads: append under shard locks, by any thread; everything else by any thread without shard
// locks. Lock order: write_mutex_, then sync_mutex_, then mutex_; append takes mutex_ only.
// Callbacks run on the thread that noticed the change, which may hold write_mutex_ or sync_mutex_:
// they must not call back into the journal, except for its lock-free readers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "engine/ports/journal.h"
#include "storage/commit_buffer.h"
#include "storage/free_disk.h"
#include "storage/journal_stats.h"
#include "storage/log.h"
#include "storage/log_tail.h"
#include "storage/record_split.h"
#include "storage/replicated_commit.h"

namespace sluice {

// EX_TEMPFAIL of sysexits.h: the disk failed; a later restart may succeed.
inline constexpr int kJournalFailedExitCode = 75;

enum class SyncMode : uint8_t { kAlways, kEverySecond, kNever };

struct JournalOptions {
  SyncMode mode = SyncMode::kAlways;
  bool attached = true;  // false: `appendonly no`
  Lsn last_lsn = 0;      // where recovery ended
  // durable_lsn has moved other than by flush(), whose callers know it already: by the background
  // thread, sync() (also a checkpoint's), a change of mode, or detach().
  std::function<void(Lsn)> on_durable;
  // kLocked: another node has taken the replicated log. All else is a failure here.
  std::function<void(const Status&)> on_failed;
  uint64_t min_free_disk_bytes = 0;  // 0: not checked
  // FreeDisk::below_min() has changed.
  std::function<void(bool)> on_min_free_disk;
  std::function<void(const FreeDisk&)> tell_free_disk;  // FreeDisk's `tell`
  std::chrono::milliseconds sync_interval{1000};
  // In kAlways a commit waits up to this fraction of a sync's mean time for the clients released by
  // the last commit, and at most 2 ms, so that they share one sync instead of using two. 0: never.
  double linger_fraction = 0.5;
  // Longer units are divided. They and what was appended before them become several values of the
  // log, written in one step. Tests use a smaller limit.
  size_t max_unit_bytes = kMaxUnitBytes;
  // Nothing may be appended before lead().
  bool replicated = false;
  // How long sync() waits for the replicated log: longer than its nodes elect a leader.
  std::chrono::milliseconds replication_patience{5000};
  // The same for settle(): less than the end of a server may take.
  std::chrono::milliseconds settle_patience{3000};
};

class GroupCommitJournal final : public Journal {
 public:
  // `log` may be null: in memory only, always detached.
  GroupCommitJournal(Log* log, JournalOptions options);
  // Stops the threads without flushing; close() flushes.
  ~GroupCommitJournal() override;

  // Records in `owned` are not copied: they stay a piece of their own (commit_buffer.h).
  Lsn append(Bytes records, uint32_t record_count, int64_t now_ms, bool moves = false,
             ByteBuffer* owned = nullptr) override;
  bool takes_moves() const override {
    return takes_moves_.load(std::memory_order_relaxed) &&
           !refuses_moves_.load(std::memory_order_relaxed);
  }
  Lsn last_lsn() const override { return last_lsn_.load(std::memory_order_acquire); }
  Lsn durable_lsn() const override { return durable_lsn_.load(std::memory_order_acquire); }

  // See the modes above. Returns false after a failure.
  bool flush();
  // On return everything appended before is on disk, in every mode. While detached: those units
  // that were kept.
  bool sync();
  // True if everything appended is on disk and recovery would find it.
  bool is_synced() const {
    return solid_.load(std::memory_order_acquire) && synced_lsn() >= last_lsn();
  }
  // Requests a sync from the background thread. `then` is called once without locks, perhaps before
  // this returns: with true when is_synced() holds for everything appended before, with false when
  // detached. It is dropped at the end and after a failure.
  void when_synced(std::function<void(bool)> then);
  // Flushes, syncs and stops the threads. Nothing may be appended afterwards.
  bool close();
  // Stops the threads without a flush. Callers that wait for the replicated log give up.
  void stop();
  // Before the end. Replicated: waits for the replicated log to have everything. False if it has
  // given up, or a part of a commit was applied.
  bool settle();

  // Replicated: to be called before any of the commit is applied, and then follow() after it,
  // perhaps on another thread and after the next call. In between memory is ahead of last_lsn(), so
  // no walk ends. Not after lead().
  void follow_begins(const TailCommit& commit);
  // Replicated: writes a commit of another node, which follows last_lsn() and was applied. By one
  // thread at a time.
  bool follow(const TailCommit& commit);
  // Replicated, once: this node leads from now on, and the replicated log ends at last_lsn(). `log`
  // must outlive the journal.
  void lead(RemoteLog& log, ReplicatedOptions options);
  // Null unless this node leads.
  const ReplicatedCommit* replication() const { return leading_.load(std::memory_order_acquire); }

  Lsn written_lsn() const { return written_lsn_.load(std::memory_order_acquire); }
  Lsn synced_lsn() const { return synced_lsn_.load(std::memory_order_acquire); }
  // Bytes appended that have not been passed to the kernel; replicated: also those on their way to
  // the replicated log and back.
  size_t unwritten_bytes() const {
    const ReplicatedCommit* const remote = replication();
    return filling_bytes_.load(std::memory_order_relaxed) +
           writing_bytes_.load(std::memory_order_relaxed) +
           (remote != nullptr ? remote->bytes() : 0);
  }
  // The part of unwritten_bytes that counts for back-pressure, which stops reading sockets above a
  // limit. The largest unit is excluded; otherwise no client could send anything while it is
  // written.
  size_t pressing_bytes() const {
    const size_t largest = std::max(filling_largest_.load(std::memory_order_relaxed),
                                    writing_largest_.load(std::memory_order_relaxed));
    const ReplicatedCommit* const remote = replication();
    const size_t sent = remote != nullptr ? remote->largest() : 0;
    const size_t all = unwritten_bytes();
    return all - std::min(all, std::max(largest, sent));
  }
  // Bytes of all units kept since the start. Decides when a checkpoint is due.
  uint64_t kept_bytes() const { return meter_.bytes(); }

  // Fail-stop has happened, see above.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The log must not be written any more. Implied by failed().
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  Status failure() const;
  // Reports a failure from outside: of the log's own threads, or of a checkpoint while attached.
  // Only the first one counts.
  void fail(const Status& reason);

  SyncMode mode() const { return mode_.load(std::memory_order_relaxed); }
  bool set_mode(SyncMode mode);
  bool attached() const { return attached_.load(std::memory_order_relaxed); }
  // From now on units are kept. Recovery uses them only after a checkpoint that ends after this
  // call has been committed; the caller runs one.
  void attach();
  void detach();

  // Bounds of a fuzzy checkpoint. From begin_checkpoint (returns B) to end_checkpoint units are
  // kept in any mode. finish_walk makes the log reach E on disk and returns E; it returns nothing
  // after a failure or if the walk is stale.
  Lsn begin_checkpoint();
  std::optional<Lsn> finish_walk();
  // A unit after B has moved keys by name alone, so the walk may not show one moment. After
  // kStaleWalks such checkpoints in a row takes_moves() is false until one commits, so that one
  // can. A journal that follows cannot keep the moves away: it wants_values() then, and that of the
  // primary is told to refuse_moves().
  bool walk_is_stale() const { return walk_is_stale_.load(std::memory_order_relaxed); }
  static constexpr int kStaleWalks = 2;
  bool wants_values() const { return !takes_moves_.load(std::memory_order_relaxed); }
  void refuse_moves(bool refuse) { refuses_moves_.store(refuse, std::memory_order_relaxed); }
  // `committed_end`: E of the checkpoint if it was committed.
  void end_checkpoint(std::optional<Lsn> committed_end);

  FreeDisk& disk() { return disk_; }
  const FreeDisk& disk() const { return disk_; }
  JournalStats stats() const { return meter_.stats(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct SyncRequest {
    Lsn lsn;
    std::function<void(bool)> then;
  };

  Lsn append_divided(Bytes records, int64_t now_ms, bool moves);
  void note_moves(bool moves) REQUIRES(mutex_);
  Lsn append_part(RecordRun part, uint32_t records_crc, CommitBuffer::Stamp stamp,
                  ByteBuffer* owned) REQUIRES(mutex_);
  void run();
  void wait_for_units();
  void linger() REQUIRES(mutex_);
  void sleep_for(Clock::duration time) REQUIRES(mutex_);
  Lsn take_buffer() REQUIRES(write_mutex_);
  Status write_taken(bool synced, Bytes position) REQUIRES(write_mutex_);
  bool hand_over();
  bool write_handed_over();
  bool write_buffered(bool synced) REQUIRES(write_mutex_);
  bool write_writing(Lsn last, bool synced, Bytes position) REQUIRES(write_mutex_);
  bool write_committed(bool synced) REQUIRES(write_mutex_);
  void replicate();
  bool wait_replicated(Lsn lsn, std::chrono::milliseconds patience);
  bool wait_to_reach(const std::atomic<Lsn>& watermark, Lsn lsn, std::chrono::milliseconds patience)
      REQUIRES(mutex_);
  bool is_replicated() const { return options_.replicated; }
  bool sync_written();
  bool sync_now() { return is_replicated() ? sync_written() : sync(); }
  void publish_written(Lsn lsn);
  bool publish_synced(Lsn lsn);
  void raise_durable(Lsn lsn) REQUIRES(mutex_);
  void publish_durable(Lsn lsn);
  void set_keeping() REQUIRES(mutex_);
  void tell_durable();
  void answer_sync_requests();

  Log* const log_;
  const JournalOptions options_;

  // Each of these only grows.
  std::atomic<Lsn> last_lsn_;
  std::atomic<Lsn> durable_lsn_;
  std::atomic<Lsn> written_lsn_;  // every kept unit up to it has been written
  std::atomic<Lsn> synced_lsn_;
  std::atomic<Lsn> told_lsn_;  // the last argument of on_durable
  // The sizes of filling_ and writing_, for other threads.
  std::atomic<size_t> filling_bytes_{0};
  std::atomic<size_t> writing_bytes_{0};
  std::atomic<size_t> filling_largest_{0};  // the largest piece
  std::atomic<size_t> writing_largest_{0};
  // The background thread writes until it has caught up; not in kAlways. Changed under mutex_.
  std::atomic<bool> handed_over_{false};
  std::atomic<SyncMode> mode_;
  std::atomic<bool> attached_;
  std::atomic<bool> keeping_{false};  // attached, or a checkpoint is running
  // Recovery would find every kept unit. False from attach() until a checkpoint commits; meanwhile
  // the mark must not move.
  std::atomic<bool> solid_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> failed_{false};
  FreeDisk disk_;  // probed under write_mutex_
  JournalMeter meter_;
  std::atomic<bool> takes_moves_{true};     // as far as its own walks are concerned
  std::atomic<bool> refuses_moves_{false};  // another node's walks do not end otherwise
  std::atomic<bool> walk_is_stale_{false};  // written under mutex_

  mutable Mutex mutex_;
  CommitBuffer filling_ GUARDED_BY(mutex_);
  // Records released by the last commit plus those that arrived while it ran: about what one round
  // of all clients appends.
  uint64_t round_records_ GUARDED_BY(mutex_) = 0;
  bool in_checkpoint_ GUARDED_BY(mutex_) = false;
  bool walk_is_open_ GUARDED_BY(mutex_) = false;  // from B to E
  int stale_walks_ GUARDED_BY(mutex_) = 0;        // since the last committed checkpoint
  bool next_follows_gap_ GUARDED_BY(mutex_) = false;
  bool thread_waits_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  // Ordered by lsn.
  std::deque<SyncRequest> sync_requests_ GUARDED_BY(mutex_);
  bool sync_wanted_ GUARDED_BY(mutex_) = false;
  Status failure_ GUARDED_BY(mutex_);
  std::condition_variable wake_;

  // Held while a commit is written; a second flush() waits here and then finds nothing to do.
  Mutex write_mutex_;
  CommitBuffer writing_ GUARDED_BY(write_mutex_);

  // Held while syncing beside the writer (not in kAlways).
  Mutex sync_mutex_;

  // Set on the node that leads.
  std::shared_ptr<ReplicatedCommit> remote_;
  std::atomic<ReplicatedCommit*> leading_{nullptr};
  bool replicate_wanted_ GUARDED_BY(mutex_) = false;  // there is something to send
  bool committed_waits_ GUARDED_BY(mutex_) = false;   // there is something to write here
  std::condition_variable replicate_wake_;
  // On the others.
  Lsn applying_lsn_ GUARDED_BY(mutex_) = 0;  // of the last follow_begins()
  Lsn moving_lsn_ GUARDED_BY(mutex_) = 0;    // of the last one with moves
  std::condition_variable replicated_;       // durable_lsn or last_lsn has moved, or never will

  Thread thread_;
  Thread replicating_;
};

}  // namespace sluice
