#include "storage/group_commit.h"

#include "storage/format.h"

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kFirstBufferBytes = size_t{256} << 10;
// How long units may stay buffered if nobody calls flush().
constexpr milliseconds kBackgroundInterval{100};
constexpr milliseconds kDiskProbeInterval{1000};
// While lingering: after a pause this long no more clients are expected.
constexpr microseconds kQuiet{60};
constexpr microseconds kLongestLinger{2000};

CommitBuffer::Stamp stamp_of(int64_t now_ms, bool moves) {
  return {0, now_ms, moves ? kUnitMoves : uint8_t{0}};
}

}  // namespace

GroupCommitJournal::GroupCommitJournal(Log* log, JournalOptions options)
    : log_(log),
      options_(std::move(options)),
      last_lsn_(options_.last_lsn),
      durable_lsn_(options_.last_lsn),
      written_lsn_(options_.last_lsn),
      synced_lsn_(options_.last_lsn),
      told_lsn_(options_.last_lsn),
      mode_(options_.mode),
      attached_(options_.attached && log != nullptr),
      solid_(true),
      disk_(log, options_.min_free_disk_bytes, options_.on_min_free_disk, options_.tell_free_disk) {
  {
    MutexLock lock(mutex_);
    filling_.reserve(kFirstBufferBytes);
    set_keeping();
    // The first unit after recovery follows the last recovered one.
    next_follows_gap_ = false;
  }
  if (log_ == nullptr) return;
  {
    MutexLock lock(write_mutex_);
    disk_.probe(kept_bytes(), Clock::now());
  }
  thread_ = Thread("journal", [this] { run(); });
  // Must be last: if the thread cannot be created, nothing would unregister the listener.
  log_->on_failure([this](const Status& status) { fail(status); });
}

GroupCommitJournal::~GroupCommitJournal() {
  stop();
  if (log_ != nullptr) log_->on_failure(nullptr);
}

Lsn GroupCommitJournal::append(Bytes records, uint32_t record_count, int64_t now_ms, bool moves,
                               ByteBuffer* owned) {
  if (records.size() > options_.max_unit_bytes) [[unlikely]] {
    return append_divided(records, now_ms, moves);
  }
  // The checksum of the records is computed outside the lock. `keeping_` is only a hint here; it is
  // read again under the lock. Records that are taken over are checksummed when written.
  const bool taken = owned != nullptr;
  const bool likely_kept = keeping_.load(std::memory_order_relaxed);
  uint32_t records_crc = likely_kept && !taken ? crc32c(records) : 0;
  MutexLock lock(mutex_);
  if (!likely_kept && !taken && keeping_.load(std::memory_order_relaxed)) {
    records_crc = crc32c(records);
  }
  const Lsn lsn = append_part({records, record_count}, records_crc, stamp_of(now_ms, moves), owned);
  note_moves(moves);
  last_lsn_.store(lsn, std::memory_order_release);
  if (!attached_.load(std::memory_order_relaxed)) raise_durable(lsn);
  return lsn;
}

// Returns the lsn; the caller publishes it.
Lsn GroupCommitJournal::append_part(RecordRun part, uint32_t records_crc, CommitBuffer::Stamp stamp,
                                    ByteBuffer* owned) {
  stamp.lsn = last_lsn_.load(std::memory_order_relaxed) + 1;
  if (!keeping_.load(std::memory_order_relaxed)) return stamp.lsn;
  if (next_follows_gap_) stamp.flags |= kUnitFollowsGap;
  next_follows_gap_ = false;
  filling_.append(part, records_crc, stamp, owned, options_.max_unit_bytes);
  filling_bytes_.store(filling_.size(), std::memory_order_relaxed);
  if (owned != nullptr) filling_largest_.store(filling_.largest(), std::memory_order_relaxed);
  return stamp.lsn;
}

// Divides a unit that is too long for the log into several with consecutive lsns. To everything
// else they remain one: no checkpoint begins between them, since all are appended under one lock,
// and they are written in one step (Log::append_commits).
Lsn GroupCommitJournal::append_divided(Bytes records, int64_t now_ms, bool moves) {
  const std::vector<RecordRun> parts = split_records(records, options_.max_unit_bytes);
  MutexLock lock(mutex_);
  note_moves(moves);
  Lsn lsn = 0;
  for (const RecordRun& part : parts) {
    const bool kept = keeping_.load(std::memory_order_relaxed);
    lsn = append_part(part, kept ? crc32c(part.records) : 0, stamp_of(now_ms, moves), nullptr);
    last_lsn_.store(lsn, std::memory_order_release);
  }
  if (!attached_.load(std::memory_order_relaxed)) raise_durable(lsn);
  return lsn;
}

// Runs under the lock that assigns the unit's lsn, as do B and E.
void GroupCommitJournal::note_moves(bool moves) {
  if (moves && walk_is_open_) walk_is_stale_.store(true, std::memory_order_relaxed);
}

// --- From outside ---

bool GroupCommitJournal::sync() {
  if (log_ == nullptr) return true;
  const Lsn target = last_lsn();
  if (is_replicated() && !wait_replicated(target, options_.replication_patience)) return false;
  {
    MutexLock lock(write_mutex_);
    if (synced_lsn() >= target) return !broken();
    if (!write_buffered(mode() == SyncMode::kAlways)) return false;
  }
  const bool synced = synced_lsn() >= target || sync_written();
  // It may have written units that the background thread was about to write.
  tell_durable();
  return synced;
}

bool GroupCommitJournal::close() {
  const bool synced = sync();
  stop();
  return synced;
}

void GroupCommitJournal::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    replicate_wake_.notify_all();
    replicated_.notify_all();
  }
  if (replicating_.joinable()) replicating_.join();
  if (remote_ != nullptr) remote_->stop();
  if (thread_.joinable()) thread_.join();
}

// --- failure -------------------------------------------------------------------------------------

void GroupCommitJournal::fail(const Status& reason) {
  bool tell = false;
  bool detached = false;
  {
    MutexLock lock(mutex_);
    if (!broken_.load(std::memory_order_relaxed)) failure_ = reason;
    broken_.store(true, std::memory_order_release);
    // Before the first checkpoint memory is the only copy: the server continues without the
    // journal.
    detached = attached_.load(std::memory_order_relaxed) && !solid_.load(std::memory_order_relaxed);
    if (detached) {
      attached_.store(false, std::memory_order_relaxed);
      raise_durable(last_lsn_.load(std::memory_order_relaxed));
    }
    if (attached_.load(std::memory_order_relaxed) && !failed_.load(std::memory_order_relaxed)) {
      failed_.store(true, std::memory_order_release);
      tell = true;
    }
    set_keeping();
    wake_.notify_all();
    replicate_wake_.notify_all();
    replicated_.notify_all();
  }
  if (tell && options_.on_failed) options_.on_failed(reason);
  if (detached) tell_durable();
}

Status GroupCommitJournal::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

// --- modes and checkpoints -----------------------------------------------------------------------

void GroupCommitJournal::set_keeping() {
  const bool before = keeping_.load(std::memory_order_relaxed);
  const bool now = (attached_.load(std::memory_order_relaxed) || in_checkpoint_) &&
                   !broken_.load(std::memory_order_relaxed);
  if (now && !before) next_follows_gap_ = true;
  if (!now) {
    filling_.clear();
    filling_bytes_.store(0, std::memory_order_relaxed);
    filling_largest_.store(0, std::memory_order_relaxed);
    handed_over_.store(false, std::memory_order_relaxed);
  }
  keeping_.store(now, std::memory_order_relaxed);
}

bool GroupCommitJournal::set_mode(SyncMode mode) {
  if (mode == this->mode()) return !failed();
  if (is_replicated()) {
    mode_.store(mode, std::memory_order_relaxed);  // no reply waits for the local log
    return !failed();
  }
  if (mode == SyncMode::kAlways) {
    // What was acknowledged under the weaker mode must reach the stronger one first.
    const bool synced = sync();
    mode_.store(mode, std::memory_order_relaxed);
    return synced && sync();
  }
  mode_.store(mode, std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    thread_waits_ = false;
    wake_.notify_all();
  }
  bool written = true;
  {
    MutexLock lock(write_mutex_);
    if (keeping_.load(std::memory_order_relaxed)) written = write_buffered(false);
  }
  tell_durable();
  return written;
}

void GroupCommitJournal::attach() {
  if (log_ == nullptr) return;
  Status failed_before;
  {
    MutexLock write_lock(write_mutex_);
    MutexLock lock(mutex_);
    if (attached_.load(std::memory_order_relaxed)) return;
    attached_.store(true, std::memory_order_relaxed);
    solid_.store(false, std::memory_order_release);
    set_keeping();
    if (broken_.load(std::memory_order_relaxed)) failed_before = failure_;
  }
  if (!failed_before.ok()) fail(failed_before);
}

void GroupCommitJournal::detach() {
  if (!attached()) return;
  sync();
  {
    MutexLock write_lock(write_mutex_);
    MutexLock lock(mutex_);
    if (failed()) return;
    attached_.store(false, std::memory_order_relaxed);
    set_keeping();
    // Releases callers that wait for a commit that will not happen.
    raise_durable(last_lsn_.load(std::memory_order_relaxed));
  }
  tell_durable();
}

Lsn GroupCommitJournal::begin_checkpoint() {
  MutexLock lock(mutex_);
  CHECK(!in_checkpoint_);
  const bool moved = wait_to_reach(last_lsn_, moving_lsn_, options_.replication_patience);
  in_checkpoint_ = true;
  walk_is_open_ = true;
  walk_is_stale_.store(!moved, std::memory_order_relaxed);
  set_keeping();
  return last_lsn_.load(std::memory_order_relaxed);
}

std::optional<Lsn> GroupCommitJournal::finish_walk() {
  Lsn end = 0;
  {
    MutexLock lock(mutex_);
    walk_is_open_ = false;
    if (walk_is_stale()) return std::nullopt;
    // The walk may have seen a part of a commit that is being applied.
    end = std::max(last_lsn(), applying_lsn_);
    if (!wait_to_reach(last_lsn_, end, options_.replication_patience)) return std::nullopt;
  }
  if (!sync() || synced_lsn() < end) return std::nullopt;
  return end;
}

void GroupCommitJournal::end_checkpoint(std::optional<Lsn> committed_end) {
  if (committed_end.has_value() && !broken()) {
    MutexLock lock(sync_mutex_);
    // Recovery reaches E from now on. If the log was solid, the mark is already further.
    if (!solid_.load(std::memory_order_acquire) || !attached()) {
      const Status status = log_->set_mark(*committed_end);
      if (!status.ok()) fail(status);
    }
    solid_.store(true, std::memory_order_release);
  }
  MutexLock write_lock(write_mutex_);
  MutexLock lock(mutex_);
  in_checkpoint_ = false;
  walk_is_open_ = false;
  if (committed_end.has_value()) {
    stale_walks_ = 0;
    takes_moves_.store(true, std::memory_order_relaxed);
  } else if (walk_is_stale() && ++stale_walks_ >= kStaleWalks) {
    takes_moves_.store(false, std::memory_order_relaxed);
  }
  set_keeping();
}

// --- the background thread -----------------------------------------------------------------------

void GroupCommitJournal::sleep_for(Clock::duration time) {
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  wake_.wait_for(native, time);
  native.release();
}

void GroupCommitJournal::wait_for_units() {
  MutexLock lock(mutex_);
  if (filling_.empty() && !stopping_ && !sync_wanted_) {
    thread_waits_ = true;
    sleep_for(kBackgroundInterval);
    thread_waits_ = false;
  }
  if (!filling_.empty() && options_.linger_fraction > 0) linger();
}

// Clients released by the last commit send their next commands within some ten microseconds.
// Starting at the first of them would split the clients into two halves, each with a sync of its
// own.
void GroupCommitJournal::linger() {
  const auto mean = static_cast<double>(meter_.mean_sync_us());
  const microseconds longest =
      std::min(kLongestLinger, microseconds(static_cast<int64_t>(mean * options_.linger_fraction)));
  const Clock::time_point end = Clock::now() + longest;
  while (filling_.records() < round_records_ && !stopping_) {
    const Clock::duration left = end - Clock::now();
    if (left <= Clock::duration::zero()) return;
    const uint64_t before = filling_.records();
    thread_waits_ = true;
    sleep_for(std::min<Clock::duration>(left, kQuiet));
    thread_waits_ = false;
    if (filling_.records() == before) return;
  }
}

void GroupCommitJournal::run() {
  Thread::wake_on_time();
  Clock::time_point next_probe = Clock::now() + kDiskProbeInterval;
  Clock::time_point next_sync = Clock::now() + options_.sync_interval;
  while (true) {
    const bool always =
        mode() == SyncMode::kAlways && !is_replicated() && keeping_.load(std::memory_order_relaxed);
    if (always) {
      wait_for_units();
    } else {
      MutexLock lock(mutex_);
      if (!stopping_ && !sync_wanted_ && !std::exchange(committed_waits_, false) &&
          !handed_over_.load(std::memory_order_relaxed)) {
        sleep_for(kBackgroundInterval);
      }
    }
    bool wanted = false;
    bool asked = false;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      wanted = std::exchange(sync_wanted_, false);
      asked = !sync_requests_.empty();
      wanted |= asked && is_replicated();  // until the replicated log has the units
    }
    if (always && filling_bytes_.load(std::memory_order_relaxed) != 0) {
      MutexLock lock(write_mutex_);
      write_buffered(true);
    } else if (is_replicated()) {
      MutexLock lock(write_mutex_);
      write_buffered(mode() == SyncMode::kAlways);
    } else if (!always && keeping_.load(std::memory_order_relaxed)) {
      if (write_handed_over()) flush();
    }
    tell_durable();
    const Clock::time_point now = Clock::now();
    if (wanted) sync_now();
    if (mode() == SyncMode::kEverySecond && now >= next_sync) {
      sync_written();
      next_sync = now + options_.sync_interval;
    }
    if (asked) answer_sync_requests();
    if (now >= next_probe) {
      MutexLock lock(write_mutex_);
      disk_.probe(kept_bytes(), now);
      // In other modes the next sync detects it.
      if (mode() == SyncMode::kNever && attached() && written_lsn() != synced_lsn()) {
        if (const Status status = log_->check_presence(); !status.ok()) fail(status);
      }
      next_probe = now + kDiskProbeInterval;
    }
  }
}

void GroupCommitJournal::tell_durable() {
  const Lsn now = durable_lsn();
  if (told_lsn_.exchange(now, std::memory_order_acq_rel) != now && options_.on_durable) {
    options_.on_durable(now);
  }
}

}  // namespace sluice
