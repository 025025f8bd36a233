// GroupCommitJournal: writing the buffer to the log.
#include "engine/base/kill_point.h"
#include "storage/group_commit.h"

namespace sluice {
namespace {

// A buffer that a burst has made larger than this frees its memory.
constexpr size_t kKeptBufferBytes = size_t{2} << 20;
// Buffers larger than this are written by the background thread: the caller of flush() has clients
// that wait.
constexpr size_t kHandedOverBytes = size_t{2} << 20;

void raise_to(std::atomic<Lsn>& watermark, Lsn lsn) {
  Lsn now = watermark.load(std::memory_order_relaxed);
  while (now < lsn && !watermark.compare_exchange_weak(now, lsn, std::memory_order_release,
                                                       std::memory_order_relaxed)) {
  }
}

}  // namespace

// Returns the last lsn that is in it or was not kept.
Lsn GroupCommitJournal::take_buffer() {
  MutexLock lock(mutex_);
  std::swap(filling_, writing_);
  writing_bytes_.store(writing_.size(), std::memory_order_relaxed);
  filling_bytes_.store(0, std::memory_order_relaxed);
  writing_largest_.store(writing_.largest(), std::memory_order_relaxed);
  filling_largest_.store(0, std::memory_order_relaxed);
  return last_lsn_.load(std::memory_order_relaxed);
}

Status GroupCommitJournal::write_taken(bool synced, Bytes position) {
  if (writing_.is_plain()) [[likely]] {
    return log_->append_commit(writing_.first_lsn(), writing_.plain(), synced, position);
  }
  writing_.seal();
  CommitBuffer::Divided divided = writing_.divide();
  divided.commits.back().position = position;
  return log_->append_commits(divided.commits, synced);
}

// If this returns true, everything appended before the call has been passed to the kernel
// (`synced`: is on disk).
bool GroupCommitJournal::write_buffered(bool synced) {
  if (broken()) return false;
  if (is_replicated()) return write_committed(synced);
  const Lsn last = take_buffer();
  return write_writing(last, synced, {});
}

bool GroupCommitJournal::write_writing(Lsn last, bool synced, Bytes position) {
  const uint64_t units = writing_.units();
  const uint64_t records = writing_.records();
  Status status;
  if (!writing_.empty()) {
    kill_point("before_journal_write");
    const Clock::time_point start = Clock::now();
    status = write_taken(synced, position);
    if (synced) meter_.count_sync(Clock::now() - start);
    kill_point("after_journal_write");
    meter_.count_commit(writing_.size(), units);
    if (disk_.is_due(kept_bytes())) disk_.probe(kept_bytes(), Clock::now());
  }
  writing_.clear();
  writing_.shrink(kKeptBufferBytes);
  writing_bytes_.store(0, std::memory_order_relaxed);
  writing_largest_.store(0, std::memory_order_relaxed);
  if (!status.ok()) {
    fail(status);
    return false;
  }
  if (broken()) return false;  // the log's own threads have failed meanwhile
  publish_written(last);
  if (synced && units != 0 && !publish_synced(last)) return false;
  MutexLock lock(mutex_);
  round_records_ = records + filling_.records();
  return true;
}

bool GroupCommitJournal::sync_written() {
  MutexLock lock(sync_mutex_);
  const Lsn target = written_lsn();
  if (synced_lsn() >= target) return !broken();
  if (broken()) return false;
  kill_point("before_journal_sync");
  const Clock::time_point start = Clock::now();
  const Status status = log_->sync();
  meter_.count_sync(Clock::now() - start);
  if (!status.ok()) {
    fail(status);
    return false;
  }
  return publish_synced(target);
}

// durable_lsn first: flush() treats everything written as durable.
void GroupCommitJournal::publish_written(Lsn lsn) {
  if (mode() != SyncMode::kAlways) publish_durable(lsn);
  raise_to(written_lsn_, lsn);
}

bool GroupCommitJournal::publish_synced(Lsn lsn) {
  kill_point("after_journal_sync");
  // Before the acknowledgement, so that the mark covers everything a client has been told.
  if (solid_.load(std::memory_order_acquire) && attached()) {
    if (const Status status = log_->set_mark(lsn); !status.ok()) {
      fail(status);
      return false;
    }
  }
  if (broken()) return false;
  raise_to(synced_lsn_, lsn);
  publish_durable(lsn);
  return true;
}

// Under the lock, so that nothing is acknowledged after fail() has returned.
void GroupCommitJournal::raise_durable(Lsn lsn) {
  if (!failed()) raise_to(durable_lsn_, lsn);
}

void GroupCommitJournal::publish_durable(Lsn lsn) {
  MutexLock lock(mutex_);
  raise_durable(lsn);
}

bool GroupCommitJournal::flush() {
  if (!keeping_.load(std::memory_order_relaxed)) return !failed();
  if (is_replicated()) {
    MutexLock lock(mutex_);
    if (!filling_.empty() && !std::exchange(replicate_wanted_, true)) replicate_wake_.notify_one();
    return !failed();
  }
  if (mode() == SyncMode::kAlways) {
    MutexLock lock(mutex_);
    if (thread_waits_ && !filling_.empty()) {
      thread_waits_ = false;
      wake_.notify_one();
    }
    return !failed();
  }
  const Lsn target = last_lsn();
  if (written_lsn() >= target || hand_over()) return !failed();
  MutexLock lock(write_mutex_);
  if (written_lsn() >= target) return !failed();
  return write_buffered(false);
}

// Returns true if the background thread will write what has been appended so far.
bool GroupCommitJournal::hand_over() {
  const auto wanted = [this] {
    return handed_over_.load(std::memory_order_relaxed) ||
           filling_bytes_.load(std::memory_order_relaxed) > kHandedOverBytes;
  };
  if (!wanted()) [[likely]]
    return false;
  MutexLock lock(mutex_);
  if (!wanted()) return false;
  handed_over_.store(true, std::memory_order_relaxed);
  wake_.notify_one();
  return true;
}

// Runs on the background thread. If the hand-over has ended, there is nothing left to write.
bool GroupCommitJournal::write_handed_over() {
  while (handed_over_.load(std::memory_order_relaxed)) {
    {
      MutexLock lock(write_mutex_);
      if (!write_buffered(false)) return false;
    }
    tell_durable();
    MutexLock lock(mutex_);
    if (filling_.empty()) handed_over_.store(false, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace sluice
