#include "storage/store.h"

#include "storage/group_mark.h"

namespace sluice {

namespace {

class NoReplay final : public Replay {
 public:
  bool apply(Bytes, uint64_t) override { return true; }
  void finish(const std::function<void()>&) override {}
};

// The log is damaged somewhere. After a power failure the damage may be in data that was never
// synced, since blocks reach the disk in any order; then the log before it is valid. To find out,
// it is read without changing a byte: if it ends at or above the mark, nothing synced is lost.
bool damage_is_in_unsynced_tail(RocksdbLogOptions options) {
  options.read_only = true;
  options.up_to_damage = true;
  options.sink = nullptr;
  const auto log = open_rocksdb_log(options);
  if (!log.ok()) return false;
  NoReplay replay;
  RecoveryOptions look;
  look.read_only = true;
  return recover(*log.value(), replay, look).ok();
}

Result<std::unique_ptr<Log>> open_log(const StoreOptions& options) {
  RocksdbLogOptions log_options;
  log_options.directory = options.directory;
  log_options.env = options.env;
  log_options.memtable_bytes = options.memtable_bytes;
  log_options.sink = options.sink;
  log_options.spare_files = options.spare_files;
  auto log = open_rocksdb_log(log_options);
  if (log.ok() || log.status().code() != StatusCode::kDamaged) return log;
  if (!damage_is_in_unsynced_tail(log_options)) return log;
  if (options.sink) {
    options.sink(LogLevel::kWarning,
                 log.status().message() +
                     ": after everything known to have been synced; the log ends there");
  }
  log_options.up_to_damage = true;
  return open_rocksdb_log(log_options);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(StoreOptions options, Replay& replay) {
  std::unique_ptr<Store> store(new Store());
  store->options_ = std::move(options);
  StoreOptions& own = store->options_;
  if (own.directory.empty()) {
    replay.finish();
  } else {
    auto log = open_log(own);
    if (!log.ok()) return log.status();
    store->log_ = std::move(*log);
    auto recovered = recover(*store->log_, replay, own.recovery);
    if (!recovered.ok()) {
      const Status& status = recovered.status();
      return Status(status.code(), "cannot recover " + own.directory + ": " + status.message());
    }
    store->recovered_ = *recovered;
    if (store->recovered_.dropped_tail && own.sink) {
      own.sink(LogLevel::kWarning,
               "the log had a gap after lsn " + std::to_string(store->recovered_.last_lsn) +
                   ", after everything known to have been synced; the units after it were dropped");
    }
  }
  own.journal.last_lsn = store->recovered_.last_lsn;
  store->journal_ = std::make_unique<GroupCommitJournal>(store->log_.get(), own.journal);
  return store;
}

Store::~Store() {
  if (!closed_) static_cast<void>(close(CloseMode::kFlush).ok());
}

void Store::start_checkpoints(std::function<std::unique_ptr<CheckpointWalk>()> begin_walk,
                              std::function<int64_t()> now_ms, uint64_t earlier_changes) {
  if (log_ == nullptr) return;
  CheckpointerOptions options;
  options.begin_walk = std::move(begin_walk);
  options.now_ms = std::move(now_ms);
  options.earlier_changes = earlier_changes;
  options.log_bytes = options_.checkpoint_log_bytes;
  options.save_rules = options_.save_rules;
  options.rest_ratio = options_.checkpoint_rest_ratio;
  options.max_piece_bytes = options_.journal.max_unit_bytes;
  options.retry_delay = options_.checkpoint_retry_delay;
  options.data_bytes = options_.data_bytes;
  options.on_finished = options_.on_checkpoint;
  options.sink = options_.sink;
  checkpointer_ = std::make_unique<Checkpointer>(*log_, *journal_, std::move(options),
                                                 recovered_.checkpoint, recovered_.log_bytes);
}

Result<std::unique_ptr<CopyReader>> Store::read_copy() {
  if (log_ == nullptr) return invalid("nothing is kept on disk");
  const Result<std::optional<LogPosition>> mark = read_lead_mark(options_.directory);
  if (!mark.ok()) return mark.status();
  return CopyReader::open(*log_, mark->has_value() ? encode_position(**mark) : std::string());
}

std::optional<uint64_t> Store::set_appendonly(bool on) {
  if (log_ == nullptr || checkpointer_ == nullptr) return std::nullopt;
  if (on == journal_->attached()) return 0;
  if (!on) {
    journal_->detach();
    return 0;
  }
  journal_->attach();
  return checkpointer_->request();
}

Status Store::close(CloseMode mode) {
  if (closed_) return {};
  closed_ = true;
  Status status;
  if (journal_ != nullptr && mode != CloseMode::kDiscard && !journal_->settle()) {
    mode = CloseMode::kDiscard;
    status = journal_->broken() ? journal_->failure()
                                : Status(StatusCode::kCancelled,
                                         "the replicated log was not waited for any longer: the "
                                         "directory ends at lsn " +
                                             std::to_string(journal_->written_lsn()));
  }
  if (journal_ != nullptr && mode == CloseMode::kDiscard) journal_->stop();
  if (checkpointer_ != nullptr) {
    if (mode == CloseMode::kCheckpoint && !journal_->broken()) {
      status = checkpointer_->wait_until_done(checkpointer_->request());
      if (journal_->attached()) status = {};  // the journal holds everything
    }
    checkpointer_->stop();
  }
  if (journal_ != nullptr && mode != CloseMode::kDiscard && !journal_->close() && status.ok()) {
    status = journal_->failure();
  }
  checkpointer_.reset();
  journal_.reset();
  log_.reset();
  return status;
}

}  // namespace sluice
