// GroupCommitJournal: the replicated log decides, the local one follows.
#include <algorithm>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/kill_point.h"
#include "storage/format.h"
#include "storage/group_commit.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

// How long units may stay buffered if nobody calls flush().
constexpr milliseconds kLongestPause{100};
// The size of a new buffer: append rarely has to grow it.
constexpr size_t kReservedBytes = size_t{64} << 10;

// The values of the log for the commit, as the node that made it divides it. REQUIRES: its
// checksums are right.
CommitBuffer::Divided divide(const TailCommit& commit, size_t max_unit_bytes) {
  CommitBuffer::Divided divided;
  std::vector<Lsn> firsts;
  const Bytes units = commit.units;
  size_t begin = 0;
  for (UnitCursor cursor(units, units.size()); cursor.next();) {
    const size_t end = cursor.offset() + kUnitHeaderBytes + cursor.records().size();
    if (firsts.empty() || end - begin > max_unit_bytes + kUnitHeaderBytes) {
      begin = cursor.offset();
      firsts.push_back(cursor.header().lsn);
      divided.parts.emplace_back();
    }
    divided.parts.back() = units.substr(begin, end - begin);
  }
  for (size_t i = 0; i < firsts.size(); ++i) {
    divided.commits.push_back({firsts[i], std::span(divided.parts).subspan(i, 1)});
  }
  return divided;
}

}  // namespace

void GroupCommitJournal::follow_begins(const TailCommit& commit) {
  CHECK(is_replicated() && replication() == nullptr);
  MutexLock lock(mutex_);
  applying_lsn_ = commit.position.lsn;
  if (commit.moves) moving_lsn_ = applying_lsn_;
  note_moves(commit.moves);
}

bool GroupCommitJournal::follow(const TailCommit& commit) {
  CHECK(is_replicated() && replication() == nullptr);
  MutexLock lock(write_mutex_);
  if (broken()) return false;
  CHECK(commit.first_lsn == last_lsn() + 1);
  const Lsn last = commit.position.lsn;
  {
    MutexLock filling(mutex_);
    CHECK(applying_lsn_ >= last);
    last_lsn_.store(last, std::memory_order_release);
    raise_durable(last);
    replicated_.notify_all();
  }
  const std::string position = encode_position(commit.position);
  Status status;
  if (commit.units.size() <= options_.max_unit_bytes + kUnitHeaderBytes) [[likely]] {
    status = log_->append_commit(commit.first_lsn, commit.units, false, position);
  } else {
    CommitBuffer::Divided divided = divide(commit, options_.max_unit_bytes);
    divided.commits.back().position = position;
    status = log_->append_commits(divided.commits, false);
  }
  if (!status.ok()) {
    fail(status);
    return false;
  }
  meter_.count_commit(commit.units.size(), last - commit.first_lsn + 1);
  publish_written(last);
  tell_durable();
  // The commits that come meanwhile share the next sync: no reply waits for it.
  if (mode() == SyncMode::kAlways) {
    MutexLock filling(mutex_);
    sync_wanted_ = true;
    wake_.notify_one();
  }
  return true;
}

void GroupCommitJournal::lead(RemoteLog& log, ReplicatedOptions options) {
  CHECK(is_replicated() && remote_ == nullptr && log_ != nullptr);
  CHECK(options.begin.lsn == last_lsn());
  ReplicatedCallbacks callbacks;
  callbacks.on_durable = [this](Lsn lsn) {
    publish_durable(lsn);
    tell_durable();
  };
  callbacks.on_change = [this] {
    MutexLock lock(mutex_);
    replicate_wanted_ = true;
    replicate_wake_.notify_one();
    committed_waits_ = true;
    wake_.notify_one();
    replicated_.notify_all();
  };
  callbacks.on_failed = [this](const Status& status) { fail(status); };
  remote_ = std::make_shared<ReplicatedCommit>(log, std::move(options), std::move(callbacks));
  leading_.store(remote_.get(), std::memory_order_release);
  try {
    replicating_ = Thread("replication", [this] { replicate(); });
  } catch (const std::system_error& failure) {
    fail(io_error(std::string("cannot create a thread (") + failure.what() + ")"));
  }
}

// The thread of the node that leads: takes the buffer, and sends.
void GroupCommitJournal::replicate() {
  while (true) {
    const auto now = Clock::now();
    if (remote_->wants(filling_bytes_.load(std::memory_order_relaxed), now)) {
      CommitBuffer units;
      units.reserve(kReservedBytes);
      {
        MutexLock lock(mutex_);
        std::swap(units, filling_);
        filling_bytes_.store(0, std::memory_order_relaxed);
        filling_largest_.store(0, std::memory_order_relaxed);
      }
      if (!units.empty()) {
        units.seal();
        remote_->add(std::move(units), now);
      }
    }
    remote_->pump(now);
    const auto next =
        remote_->next_pump(filling_bytes_.load(std::memory_order_relaxed), Clock::now());
    MutexLock lock(mutex_);
    if (stopping_ || broken()) return;
    if (!std::exchange(replicate_wanted_, false)) {
      std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
      replicate_wake_.wait_until(native, std::min(next, Clock::now() + kLongestPause));
      native.release();
      replicate_wanted_ = false;
    }
  }
}

// Writes to the local log what the replicated one has.
bool GroupCommitJournal::write_committed(bool synced) {
  ReplicatedCommit* const remote = leading_.load(std::memory_order_acquire);
  if (remote == nullptr) return !broken();
  while (std::optional<ReplicatedCommit::Committed> next = remote->take_committed()) {
    writing_ = std::move(next->buffer);
    writing_bytes_.store(writing_.size(), std::memory_order_relaxed);
    writing_largest_.store(writing_.largest(), std::memory_order_relaxed);
    kill_point("before_local_write");
    if (!write_writing(next->position.lsn, synced, encode_position(next->position))) return false;
  }
  return !broken();
}

// True if the replicated log has everything up to `lsn`. It may be out of reach, so this gives up.
bool GroupCommitJournal::wait_replicated(Lsn lsn, milliseconds patience) {
  flush();
  MutexLock lock(mutex_);
  return wait_to_reach(durable_lsn_, lsn, patience);
}

bool GroupCommitJournal::settle() {
  if (!is_replicated()) return true;
  {
    MutexLock lock(mutex_);
    if (applying_lsn_ > last_lsn()) return false;
  }
  return wait_replicated(last_lsn(), options_.settle_patience);
}

// False if it has given up.
bool GroupCommitJournal::wait_to_reach(const std::atomic<Lsn>& watermark, Lsn lsn,
                                       milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (watermark.load(std::memory_order_acquire) < lsn && !stopping_ && !broken() &&
         Clock::now() < end) {
    std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
    replicated_.wait_until(native, end);
    native.release();
  }
  return watermark.load(std::memory_order_acquire) >= lsn;
}

}  // namespace sluice
