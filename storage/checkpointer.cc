#include "storage/checkpointer.h"

#include <algorithm>

#include "storage/format.h"
#include "storage/kill_point.h"
#include "storage/record_split.h"

#if defined(__linux__)
#include <pthread.h>
#include <sys/prctl.h>
#endif

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};
// As Redis: after a failure a save rule waits this long before it fires again.
constexpr std::chrono::seconds kRetryDelay{5};
// It works this long before it rests: what a request waits at most where both share a core. Shorter
// would spend more on switching threads than on the work.
constexpr std::chrono::microseconds kWorkPerRest{100};

double seconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

void prepare_this_thread() {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "checkpoint");
  // Not a lower priority: it holds shard locks, and whoever waits for one would inherit the wait
  // for a turn on a busy machine. Rests keep it out of the way instead; they should end when they
  // are due.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
#endif
}

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
  base_lsn_ = journal.last_lsn();
  {
    MutexLock lock(mutex_);
    base_kept_bytes_ = journal.kept_bytes();
    if (newest.has_value()) {
      status_.last = *newest;
      status_.last_success_ms = newest->finished_ms;
    }
  }
  thread_ = std::thread([this] { run(); });
}

Checkpointer::~Checkpointer() { stop(); }

uint64_t Checkpointer::request() {
  MutexLock lock(mutex_);
  // A running one has begun before this call, so the request needs the next.
  requested_ = std::max(requested_, started_ + 1);
  wake_.notify_all();
  return requested_;
}

Status Checkpointer::wait_until_done(uint64_t ticket) {
  MutexLock lock(mutex_);
  ++hurried_;
  wake_.notify_all();
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  while (finished_ < ticket && !stopping_) done_.wait(native);
  native.release();
  --hurried_;
  if (finished_ < ticket) return {StatusCode::kCancelled, "the server stops"};
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
  status.running = running();
  status.records = records_.load(std::memory_order_relaxed);
  status.bytes = bytes_.load(std::memory_order_relaxed);
  return status;
}

bool Checkpointer::due() {
  if (requested_ > finished_) return true;
  const Clock::time_point now = Clock::now();
  if (!status_.last_result.ok() && now < last_end_ + kRetryDelay) return false;
  if (log_bytes_limit_ != 0 && journal_.attached() && !journal_.failed()) {
    const uint64_t grown = journal_.kept_bytes() - base_kept_bytes_ + recovered_log_bytes_;
    if (grown >= std::max(log_bytes_limit_, status_.last.bytes)) return true;
  }
  const uint64_t changed = changes();
  for (const SaveRule& rule : save_rules_) {
    if (changed >= std::max<uint64_t>(rule.changes, 1) &&
        now >= last_end_ + std::chrono::seconds(rule.seconds)) {
      return true;
    }
  }
  return false;
}

void Checkpointer::run() {
  prepare_this_thread();
  while (true) {
    CheckpointSummary summary;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && !due()) {
        std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
        wake_.wait_for(native, kPollInterval);
        native.release();
      }
      if (stopping_) return;
      started_ = std::max(requested_, started_ + 1);
      requested_ = started_;
      summary.checkpoint = status_.last.checkpoint + 1;
    }
    const Clock::time_point start = Clock::now();
    records_ = 0;
    bytes_ = 0;
    running_ = true;
    const Status result = checkpoint(summary);
    running_ = false;
    finish(result, summary, Clock::now() - start);
  }
}

Status Checkpointer::checkpoint(CheckpointSummary& summary) {
  if (journal_.broken()) return journal_.failure();
  const uint64_t kept_before = journal_.kept_bytes();
  summary.started_ms = options_.now_ms();
  summary.begin_lsn = journal_.begin_checkpoint();
  std::optional<Lsn> committed_end;
  Status status;
  auto writer = log_.start_checkpoint(summary.checkpoint);
  status = writer.status();
  if (status.ok()) status = write_pieces(**writer, summary);
  if (status.ok()) {
    // Commit only what the log can carry on from: up to E it must be on the disk.
    const std::optional<Lsn> end = journal_.finish_walk();
    if (end.has_value()) {
      summary.end_lsn = *end;
      summary.finished_ms = options_.now_ms();
      kill_point("before_checkpoint_commit");
      status = (*writer)->commit(summary);
      if (status.ok()) committed_end = end;
    } else {
      status = journal_.failure();
    }
  }
  journal_.end_checkpoint(committed_end);
  if (!status.ok()) return status;

  kill_point("after_checkpoint_commit");
  base_lsn_ = summary.begin_lsn;
  {
    MutexLock lock(mutex_);
    base_kept_bytes_ = kept_before;
    recovered_log_bytes_ = 0;
    status_.last = summary;
  }
  status = log_.drop_checkpoints_before(summary.checkpoint);
  kill_point("before_trim");
  if (status.ok()) status = log_.trim_before(summary.begin_lsn + 1);
  kill_point("after_trim");
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

// One step of the walk may bring more than a piece can hold: a hash of enormous values.
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
  if (stopping_) return {StatusCode::kCancelled, "the server stops"};
  if (hurried_ != 0 || options_.rest_ratio <= 0) return {};
  const auto time = std::chrono::duration_cast<Clock::duration>(worked * options_.rest_ratio);
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  wake_.wait_for(native, time);
  native.release();
  return {};
}

void Checkpointer::finish(const Status& result, const CheckpointSummary& summary,
                          Clock::duration took) {
  // While attached this is fail-stop like any other write. Detached, memory is the only copy and
  // the server must live: the failure is reported, and a later checkpoint starts afresh with new
  // files.
  if (!result.ok() && result.code() != StatusCode::kCancelled && journal_.attached()) {
    journal_.fail(result);
  }
  if (options_.sink) {
    const std::string name = "checkpoint " + std::to_string(summary.checkpoint);
    if (result.ok()) {
      options_.sink(LogLevel::kInfo,
                    name + ": " + std::to_string(summary.records) + " records, " +
                        std::to_string(summary.bytes) + " bytes, lsn " +
                        std::to_string(summary.begin_lsn) + " to " +
                        std::to_string(summary.end_lsn) + ", " +
                        std::to_string(static_cast<uint64_t>(seconds_of(took) * 1000)) + " ms");
    } else {
      options_.sink(LogLevel::kWarning, name + " failed: " + result.message());
    }
  }
  MutexLock lock(mutex_);
  status_.last_result = result;
  status_.last_seconds = seconds_of(took);
  if (result.ok()) {
    ++status_.completed;
    status_.last_success_ms = summary.finished_ms;
  } else {
    ++status_.failed;
  }
  last_end_ = Clock::now();
  finished_ = started_;
  done_.notify_all();
}

}  // namespace sluice
