#include "storage/checkpointer.h"

#include <algorithm>

#include "engine/base/kill_point.h"
#include "storage/format.h"
#include "storage/record_split.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};
constexpr uint64_t kMostDoublings = 6;  // of the delay after a failure
// Bytes that a checkpoint has written and the file system does not count yet: its files' buffers.
constexpr uint64_t kUncountedBytes = uint64_t{4} << 20;
// A checkpoint is not worth its space for less log than this, since the newest part stays anyway.
constexpr uint64_t kLeastLogToFree = uint64_t{16} << 20;
// The thread works this long before it rests: the longest wait of a request that shares its core. A
// shorter time would spend more on switching threads than on the work.
constexpr std::chrono::microseconds kWorkPerRest{100};

double seconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

Status stale() { return {StatusCode::kStale, "keys were moved during the walk"}; }
Status stopped() { return {StatusCode::kCancelled, "the server is stopping"}; }

}  // namespace

Checkpointer::Checkpointer(Log& log, GroupCommitJournal& journal, CheckpointerOptions options,
                           const std::optional<CheckpointSummary>& newest, uint64_t log_bytes)
    : log_(log),
      journal_(journal),
      options_(std::move(options)),
      save_rules_(options_.save_rules),
      log_bytes_limit_(options_.log_bytes),
      recovered_log_bytes_(log_bytes),
      last_end_(Clock::now()) {
  base_lsn_ = journal.last_lsn() - options_.earlier_changes;  // may wrap around
  {
    MutexLock lock(mutex_);
    base_kept_bytes_ = journal.kept_bytes();
    if (newest.has_value()) {
      status_.last = *newest;
      status_.last_success_ms = newest->finished_ms;
    }
  }
  thread_ = Thread("checkpoint", [this] { run(); });
}

Checkpointer::~Checkpointer() { stop(); }

uint64_t Checkpointer::request() {
  MutexLock lock(mutex_);
  // A running checkpoint began before this call, so the request needs the next one.
  requested_ = std::max(requested_, started_ + 1);
  wake_.notify_all();
  return requested_;
}

void Checkpointer::want(Lsn lsn) {
  MutexLock lock(mutex_);
  if (requested_ > finished_ || status_.last.begin_lsn < wanted_lsn_) return;
  wanted_lsn_ = lsn;
  wake_.notify_all();
}

Status Checkpointer::wait_until_done(uint64_t ticket) {
  MutexLock lock(mutex_);
  ++hurried_;
  wake_.notify_all();
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  while (finished_ < ticket && !stopping_) done_.wait(native);
  native.release();
  --hurried_;
  if (finished_ < ticket) return stopped();
  return status_.last_result;
}

void Checkpointer::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    done_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::set_save_rules(std::vector<SaveRule> rules) {
  MutexLock lock(mutex_);
  save_rules_ = std::move(rules);
}

void Checkpointer::set_log_bytes_limit(uint64_t bytes) {
  MutexLock lock(mutex_);
  log_bytes_limit_ = bytes;
}

CheckpointStatus Checkpointer::status() const {
  MutexLock lock(mutex_);
  CheckpointStatus status = status_;
  status.running = requested_ > finished_;
  status.finished = finished_;
  status.records = records_.load(std::memory_order_relaxed);
  status.bytes = bytes_.load(std::memory_order_relaxed);
  return status;
}

bool Checkpointer::due() {
  if (requested_ > finished_) return true;
  const Clock::time_point now = Clock::now();
  if (!may_try_again(now)) return false;
  if (journal_.attached() && !journal_.failed()) {
    if (status_.last.begin_lsn < wanted_lsn_) return true;
    if (log_bytes_limit_ != 0 && log_has_grown()) return true;
  }
  const uint64_t changed = changes();
  const bool failed = status_.failed_in_a_row != 0;  // its pause is over
  for (const SaveRule& rule : save_rules_) {
    if (changed >= std::max<uint64_t>(rule.changes, 1) &&
        (failed || now >= last_end_ + std::chrono::seconds(rule.seconds))) {
      return true;
    }
  }
  return false;
}

bool Checkpointer::log_has_grown() const {
  const uint64_t grown = journal_.kept_bytes() - base_kept_bytes_ + recovered_log_bytes_;
  if (grown >= std::max(log_bytes_limit_, status_.last.bytes)) return true;
  // Writes that grow the data are refused now, and only a checkpoint frees the log's space.
  return journal_.disk().below_min() && grown > kLeastLogToFree + 2 * expected_bytes();
}

Checkpointer::Clock::duration Checkpointer::retry_delay() const {
  if (status_.failed_in_a_row == 0) return {};
  return options_.retry_delay * (1U << std::min(status_.failed_in_a_row - 1, kMostDoublings));
}

bool Checkpointer::may_try_again(Clock::time_point now) const {
  if (now >= last_end_ + retry_delay()) return true;
  if (status_.last_result.code() != StatusCode::kNoSpace) return false;
  if (now < last_end_ + options_.retry_delay) return false;
  const uint64_t free = journal_.disk().bytes();
  return free >= floor_bytes(free) + expected_bytes() + kUncountedBytes;
}

// The size of the last checkpoint; more if a larger one has failed, less if the data have shrunk.
uint64_t Checkpointer::expected_bytes() const {
  const uint64_t bytes = std::max(status_.last.bytes, needed_bytes_);
  return options_.data_bytes ? std::min(bytes, options_.data_bytes()) : bytes;
}

// While detached, only checkpoints are written, so nothing is reserved. If the reserve is in use
// already, half of what is left stays free: a small checkpoint frees more than it takes.
uint64_t Checkpointer::floor_bytes(uint64_t free) const {
  if (!journal_.attached()) return 0;
  const uint64_t reserve = journal_.disk().min_bytes();
  return free < reserve ? reserve / 2 : reserve;
}

Status Checkpointer::look_for_room(uint64_t bytes, uint64_t floor) const {
  const Result<uint64_t> free = log_.free_disk_bytes();
  if (!free.ok()) return {};  // unknown free space is no reason to refuse
  if (free.value() >= floor + bytes + kUncountedBytes) return {};
  const auto mb = [](uint64_t count) { return std::to_string((count >> 20) + 1) + " MB"; };
  return {StatusCode::kNoSpace, "not enough disk space for " + mb(bytes) + ": " + mb(free.value()) +
                                    " free, of which " + mb(floor) + " reserved for the journal"};
}

void Checkpointer::run() {
  // The thread's priority is not lowered: it holds shard locks, so a thread that waits for one
  // would also wait for the checkpointer to be scheduled on a busy machine. It rests instead, and
  // the rests end on time.
  Thread::wake_on_time();
  while (true) {
    CheckpointSummary summary;
    uint64_t expected = 0;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !due()) {
        std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
        wake_.wait_for(native, kPollInterval);
        native.release();
      }
      if (stopping_) return;
      // A requested checkpoint ignores the estimate, but must not use the reserve.
      if (requested_ <= finished_ || journal_.disk().below_min()) expected = expected_bytes();
      started_ = std::max(requested_, started_ + 1);
      requested_ = started_;
      summary.checkpoint = status_.last.checkpoint + 1;
    }
    const Clock::time_point start = Clock::now();
    records_ = 0;
    bytes_ = 0;
    running_ = true;
    const Status result = checkpoint(summary, expected);
    running_ = false;
    finish(result, summary, Clock::now() - start);
  }
}

// Ends, because the journal, or that of the primary, stops accepting moves after a few stale walks.
Status Checkpointer::checkpoint(CheckpointSummary& summary, uint64_t expected) {
  for (;;) {
    CheckpointSummary once = summary;
    const Status status = checkpoint_once(once, expected);
    if (status.code() != StatusCode::kStale) {
      summary = once;
      return status;
    }
    // A standby that ends may never apply the moves that it has written: each walk would be stale.
    {
      MutexLock lock(mutex_);
      if (stopping_) return stopped();
    }
    records_ = 0;
    bytes_ = 0;
    if (options_.sink) {
      options_.sink(LogLevel::kInfo, "checkpoint " + std::to_string(summary.checkpoint) +
                                         " restarts: large keys were renamed during the walk");
    }
  }
}

Status Checkpointer::checkpoint_once(CheckpointSummary& summary, uint64_t expected) {
  if (journal_.broken()) return journal_.failure();
  const Result<uint64_t> free = log_.free_disk_bytes();
  floor_bytes_ = free.ok() ? floor_bytes(free.value()) : 0;
  if (Status status = look_for_room(expected, floor_bytes_); !status.ok()) return status;
  const uint64_t kept_before = journal_.kept_bytes();
  summary.started_ms = options_.now_ms();
  summary.begin_lsn = journal_.begin_checkpoint();
  auto writer = log_.start_checkpoint(summary.checkpoint);
  Status status = writer.status();
  if (status.ok()) status = write(**writer, summary);
  std::optional<Lsn> committed_end;
  if (status.ok()) {
    kill_point("before_checkpoint_commit");
    status = fail_log((*writer)->commit());
    if (status.ok()) committed_end = summary.end_lsn;
  }
  journal_.end_checkpoint(committed_end);
  if (!status.ok()) return status;

  kill_point("after_checkpoint_commit");
  committed(summary, kept_before);
  status = fail_log(log_.drop_checkpoints_before(summary.checkpoint));
  kill_point("before_trim");
  if (status.ok()) status = fail_log(log_.trim_before(summary.begin_lsn + 1));
  kill_point("after_trim");
  return status;
}

// Everything that is written beside the log.
Status Checkpointer::write(CheckpointWriter& writer, CheckpointSummary& summary) {
  if (Status status = write_pieces(writer, summary); !status.ok()) return status;
  // Commit only if recovery can continue from here: the log must be on disk up to E.
  const std::optional<Lsn> end = journal_.finish_walk();
  if (!end.has_value()) {
    if (journal_.walk_is_stale()) return stale();
    return journal_.broken() ? journal_.failure()
                             : io_error("the replicated log could not be reached");
  }
  summary.end_lsn = *end;
  summary.finished_ms = options_.now_ms();
  return writer.finish(summary);
}

void Checkpointer::committed(const CheckpointSummary& summary, uint64_t kept_before) {
  base_lsn_ = summary.begin_lsn;
  MutexLock lock(mutex_);
  base_kept_bytes_ = kept_before;
  recovered_log_bytes_ = 0;
  needed_bytes_ = 0;
  status_.last = summary;
}

// While attached, an error of the log is fail-stop, like that of any other write. While detached,
// memory is the only copy and the server must keep running: the failure is reported, and a later
// checkpoint starts again with new files.
Status Checkpointer::fail_log(Status status) {
  if (!status.ok() && journal_.attached()) journal_.fail(status);
  return status;
}

Status Checkpointer::write_pieces(CheckpointWriter& writer, CheckpointSummary& summary) {
  const std::unique_ptr<CheckpointWalk> walk = options_.begin_walk();
  ByteBuffer piece;
  Clock::duration worked{};
  bool more = true;
  while (more) {
    piece.clear();
    piece.resize(kPieceHeaderBytes);
    uint64_t count = 0;
    while (more && piece.size() < kPieceHeaderBytes + options_.piece_bytes) {
      if (journal_.walk_is_stale()) return stale();
      const Clock::time_point start = Clock::now();
      more = walk->step(piece, count);
      worked += Clock::now() - start;
      if (worked < kWorkPerRest) continue;
      if (Status status = rest(worked); !status.ok()) return status;
      worked = {};
    }
    if (piece.size() == kPieceHeaderBytes) break;
    kill_point("inside_checkpoint");
    const Clock::time_point start = Clock::now();
    CHECK(count <= UINT32_MAX);
    const Status status = piece.size() - kPieceHeaderBytes > options_.max_piece_bytes
                              ? add_divided(writer, summary, piece.view())
                              : add_piece(writer, summary, piece, static_cast<uint32_t>(count));
    if (!status.ok()) return status;
    worked += Clock::now() - start;
    piece.shrink(4 * options_.piece_bytes);
  }
  return {};
}

Status Checkpointer::add_piece(CheckpointWriter& writer, CheckpointSummary& summary,
                               ByteBuffer& piece, uint32_t count) {
  CHECK(summary.pieces < kSummaryNumber);
  if (Status status = look_for_room(piece.size(), floor_bytes_); !status.ok()) return status;
  const auto number = static_cast<uint32_t>(summary.pieces);
  seal_piece(piece.data(), piece.size(), {summary.checkpoint, number, count});
  if (Status status = writer.add_piece(number, piece.view()); !status.ok()) return status;
  ++summary.pieces;
  summary.records += count;
  summary.bytes += piece.size();
  records_.store(summary.records, std::memory_order_relaxed);
  bytes_.store(summary.bytes, std::memory_order_relaxed);
  return {};
}

// A step of the walk may yield more than one piece can hold, e.g. a hash with enormous values.
Status Checkpointer::add_divided(CheckpointWriter& writer, CheckpointSummary& summary,
                                 Bytes piece) {
  for (const RecordRun& run :
       split_records(piece.substr(kPieceHeaderBytes), options_.max_piece_bytes)) {
    ByteBuffer part;
    part.resize(kPieceHeaderBytes);
    part.append(run.records);
    if (Status status = add_piece(writer, summary, part, run.count); !status.ok()) return status;
  }
  return {};
}

Status Checkpointer::rest(Clock::duration worked) {
  MutexLock lock(mutex_);
  if (stopping_) return stopped();
  if (hurried_ != 0 || options_.rest_ratio <= 0) return {};
  const auto time = std::chrono::duration_cast<Clock::duration>(worked * options_.rest_ratio);
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  wake_.wait_for(native, time);
  native.release();
  return {};
}

void Checkpointer::finish(const Status& result, const CheckpointSummary& summary,
                          Clock::duration took) {
  Clock::duration delay{};
  {
    MutexLock lock(mutex_);
    status_.last_result = result;
    status_.last_seconds = seconds_of(took);
    if (result.ok()) {
      ++status_.completed;
      status_.failed_in_a_row = 0;
      status_.last_success_ms = summary.finished_ms;
    } else {
      ++status_.failed;
      ++status_.failed_in_a_row;
      needed_bytes_ = std::max(needed_bytes_, summary.bytes + summary.bytes / 4);
    }
    delay = retry_delay();
  }
  if (options_.sink) report(result, summary, took, delay);
  {
    MutexLock lock(mutex_);
    last_end_ = Clock::now();
    finished_ = started_;
    done_.notify_all();
  }
  if (options_.on_finished) options_.on_finished();
}

void Checkpointer::report(const Status& result, const CheckpointSummary& summary,
                          Clock::duration took, Clock::duration delay) const {
  const std::string name = "checkpoint " + std::to_string(summary.checkpoint);
  if (result.ok()) {
    options_.sink(LogLevel::kInfo,
                  name + ": " + std::to_string(summary.records) + " records, " +
                      std::to_string(summary.bytes) + " bytes, lsn " +
                      std::to_string(summary.begin_lsn) + " to " + std::to_string(summary.end_lsn) +
                      ", " + std::to_string(static_cast<uint64_t>(seconds_of(took) * 1000)) +
                      " ms");
    return;
  }
  std::string text = name + " failed: " + result.message();
  if (!journal_.broken() && result.code() != StatusCode::kCancelled) {
    const auto delay_s = std::chrono::duration_cast<std::chrono::seconds>(delay).count();
    text +=
        ". It was removed and the journal continues; if a checkpoint is due, the next attempt is "
        "in " +
        std::to_string(delay_s) + " s" +
        (result.code() == StatusCode::kNoSpace ? ", or when there is room" : "");
  }
  options_.sink(LogLevel::kWarning, text);
}

}  // namespace sluice
