#include "net/server/server_store.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <random>
#include <utility>

#include "net/group/group_node.h"
#include "net/process/logging.h"
#include "net/process/memory_ahead.h"
#include "net/process/memory_use.h"
#include "net/process/wall_clock.h"
#include "net/server/server_settings.h"
#include "storage/copy_writer.h"
#include "storage/data_directory.h"
#include "storage/hash_seed.h"

namespace sluice {

namespace {

Status no_journal(const std::string& reason = "Unable to turn on AOF. Check server logs.") {
  return refusal("ERR CONFIG SET failed (possibly related to argument 'appendonly') - " + reason);
}

// For a directory that was empty at the start.
class NothingToReplay final : public Replay {
 public:
  bool apply(Bytes, uint64_t) override { return false; }
  void finish(const std::function<void()>&) override {}
};

void keep_seed(const Settings& settings) {
  const Status kept = keep_hash_seed(settings.dir, hash_seed(settings));
  if (!kept.ok())
    spdlog::warn("cannot keep the hash seed, the next start will be slower: {}", kept.message());
}

// The longest delay between two attempts to create the store.
constexpr auto kMaxRetryDelay = std::chrono::minutes(5);

void follow(Store& store, const Settings& settings) {
  store.journal().set_mode(sync_mode(settings.appendfsync));
  store.journal().disk().set_min_bytes(settings.min_free_disk_bytes);
  store.checkpointer()->set_save_rules(save_rules(settings));
  store.checkpointer()->set_log_bytes_limit(settings.checkpoint_log_bytes);
}

// A standby has nothing to refuse: it follows until its disk is full.
void warn_of_free_disk(const FreeDisk& disk, bool in_group) {
  spdlog::warn(
      "The disk of the data directory has {} MB free, {} min-free-disk ({} MB): commands that "
      "grow the data are {}{}",
      disk.bytes() >> 20, disk.below_min() ? "less than" : "again at least", disk.min_bytes() >> 20,
      disk.below_min() ? "refused until there is more" : "accepted again",
      in_group ? " if this server leads its group" : "");
}

bool keeps_data(const Settings& settings) { return settings.appendonly || !settings.save.empty(); }

}  // namespace

uint64_t hash_seed(const Settings& settings) {
  static const uint64_t seed = [&] {
    if (const auto kept = read_hash_seed(settings.dir)) return *kept;
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

ServerStore::ServerStore(ServerShared& shared, ServerLife& life, LoadingProgress& loading,
                         std::shared_ptr<SpareFiles> spare_files)
    : shared_(shared), life_(life), loading_(loading), spare_files_(std::move(spare_files)) {}

ServerStore::~ServerStore() = default;

// --- Recovery ---

StoreOptions ServerStore::options(const Settings& settings) {
  StoreOptions options;
  options.directory = settings.dir;
  options.journal.attached = settings.appendonly;
  options.journal.mode = sync_mode(settings.appendfsync);
  options.journal.replicated = settings.journal == JournalKind::kEtcd;
  options.journal.min_free_disk_bytes = settings.min_free_disk_bytes;
  options.journal.on_durable = [this](Lsn) {
    for (const auto& thread : shared_.io_threads) thread->durable_moved();
  };
  options.journal.on_min_free_disk = [this](bool below) {
    shared_.engine->options().disk_nearly_full.store(below, std::memory_order_relaxed);
  };
  options.journal.tell_free_disk = [in_group = options.journal.replicated](const FreeDisk& disk) {
    warn_of_free_disk(disk, in_group);
  };
  options.journal.on_failed = [this](const Status& status) { on_journal_failed(status); };
  options.recovery.on_progress = [this](const RecoveryProgress& progress) {
    return loading_.update(progress);
  };
  options.checkpoint_log_bytes = settings.checkpoint_log_bytes;
  options.save_rules = save_rules(settings);
  options.data_bytes = [this] {
    const uint64_t used = used_memory_bytes();
    return used - std::min(used, shared_.startup_bytes.load()) + event_bytes();
  };
  options.on_checkpoint = [this] { on_checkpoint(); };
  options.sink = storage_log_sink();
  options.spare_files = spare_files_;
  return options;
}

// Errors of the directory itself are reported by Store::open.
void ServerStore::open_event_file(const Settings& settings) {
  ::mkdir(settings.dir.c_str(), 0755);
  EventFileOptions options;
  options.directory = settings.dir;
  options.min_free_bytes = [this] { return shared_.config.settings()->min_free_disk_bytes; };
  options.sink = storage_log_sink();
  auto opened = EventFile::open(std::move(options));
  if (!opened.ok()) {
    spdlog::warn("events of queues stay in memory: {}", opened.status().message());
    return;
  }
  event_file_ = *opened;
  shared_.engine->spill_events_to(event_file_);
}

bool ServerStore::load() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  if (const Status status = keeps_nothing_ ? Status() : finish_copy(settings->dir); !status.ok()) {
    return life_.refuse_start(status);
  }
  if (!keeps_data(*settings)) {
    spdlog::warn(
        "appendonly is no and there are no save rules: nothing is kept on disk but by SAVE and "
        "BGSAVE");
    makes_later_.store(!keeps_nothing_ && !holds_data(settings->dir));
    if (keeps_nothing_ || makes_later_.load()) return true;
  }
  loading_.begin_reading();
  open_event_file(*settings);
  const std::unique_ptr<Replay> replay = shared_.engine->begin_replay();
  Result<std::unique_ptr<Store>> store = [&] {
    const MemoryAhead memory_ahead;
    return Store::open(options(*settings), *replay);
  }();
  if (!store.ok()) {
    if (store.status().code() == StatusCode::kCancelled) return false;
    return life_.refuse_start(store.status());
  }
  store_ = std::move(*store);
  if (settings->journal == JournalKind::kLocal) {
    const Status status = forget_load_anew(settings->dir);
    if (!status.ok()) return life_.refuse_start(status);
  }
  keep_seed(*settings);
  shared_.engine->attach_journal(&store_->journal());
  shared_.state.journal.store(&store_->journal());
  begin_serving();
  loading_.note_done(store_->recovered());
  return true;
}

void ServerStore::begin_serving() {
  store_->start_checkpoints([this] { return shared_.engine->begin_walk(); }, wall_ms,
                            shared_.engine->changes.load());
  ready_.store(true, std::memory_order_release);
}

// --- The end ---

void ServerStore::on_journal_failed(const Status& status) {
  if (status.code() == StatusCode::kLocked) return on_fenced(status);
  spdlog::error(
      "The journal failed: {}. Nothing more is acknowledged; the server stops, since memory holds "
      "changes that the disk does not.",
      status.message());
  life_.finish(kJournalFailedExitCode, status.message());
  for (const auto& thread : shared_.io_threads) thread->journal_failed();
  life_.fail_journal();
}

// Another node leads the group. What it has of this node's last changes is unknown, so replies that
// wait are not sent.
void ServerStore::on_fenced(const Status& status) {
  spdlog::error("{}", status.message());
  life_.finish(kFencedExitCode, status.message());
  life_.fail_journal();
}

CloseMode ServerStore::close_mode() const {
  if (life_.journal_failed()) return CloseMode::kDiscard;
  const ShutdownMode stop_mode = life_.stop_mode();
  if (stop_mode == ShutdownMode::kSave) return CloseMode::kCheckpoint;
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  const bool by_rules = !settings->appendonly && !settings->save.empty();
  return stop_mode == ShutdownMode::kDefault && by_rules ? CloseMode::kCheckpoint
                                                         : CloseMode::kFlush;
}

// The changes that only the last checkpoint would keep.
uint64_t ServerStore::changes_without_checkpoint() const {
  if (is_journaling()) return 0;
  if (is_ready()) return store_->checkpointer()->changes();
  return makes_later_.load() ? shared_.engine->changes.load() : 0;
}

uint64_t ServerStore::unsaved_changes() const {
  if (close_mode() != CloseMode::kCheckpoint) return 0;
  MutexLock lock(close_mutex_);
  return closing_ ? unsaved_at_end_ : changes_without_checkpoint();
}

void ServerStore::close() {
  if (event_file_ != nullptr) event_file_->stop();
  const CloseMode mode = close_mode();
  if (mode == CloseMode::kCheckpoint && makes_later_.load()) {
    const Status made = make();
    if (!made.ok()) {
      spdlog::error("Cannot keep the data: {}", made.message());
      tell_lost_changes();
    }
  }
  if (!is_ready()) return;
  {
    MutexLock lock(close_mutex_);
    unsaved_at_end_ = changes_without_checkpoint();
    closing_ = true;
  }
  if (mode == CloseMode::kCheckpoint) spdlog::info("Writing the last checkpoint before exiting");
  ready_.store(false);
  shared_.state.journal.store(nullptr);
  const Status status = store_->close(mode);
  if (status.ok()) {
    MutexLock lock(close_mutex_);
    unsaved_at_end_ = 0;
  } else if (status.code() == StatusCode::kCancelled) {
    spdlog::warn("The end: {}", status.message());
  } else if (!life_.journal_failed()) {
    spdlog::error("Could not write all data: {}", status.message());
    life_.finish(kJournalFailedExitCode, status.message());
  }
}

void ServerStore::sync_for_exit() {
  if (life_.journal_failed()) return;
  // What the replicated log does not have was not acknowledged.
  if (is_ready() && store_->journal().settle() && !store_->journal().sync()) {
    life_.finish(kJournalFailedExitCode, store_->journal().failure().message());
  }
  // A command that does not end holds the shards that a checkpoint would have to read.
  tell_lost_changes();
}

void ServerStore::tell_lost_changes() {
  const uint64_t changes = unsaved_changes();
  if (changes == 0) return;
  const std::string lost = "Could not write the last checkpoint: " + std::to_string(changes) +
                           " changes since the previous one are lost (appendonly is no)";
  spdlog::error("{}", lost);
  life_.finish(kCheckpointLostExitCode, lost);
}

// --- If nothing was kept at the start ---

Status ServerStore::make() {
  MutexLock lock(making_);
  if (is_ready()) return {};
  if (keeps_nothing_) return invalid("this server is in memory only: it has no directory");
  Status status = open_and_attach();
  failed_.store(!status.ok());
  return status;
}

Status ServerStore::open_and_attach() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  // An attempt that could not attach its store has left it.
  if (store_ == nullptr) {
    if (holds_data(settings->dir)) {
      return invalid("the directory " + settings->dir +
                     " holds data that this server has not loaded");
    }
    StoreOptions options = this->options(*settings);
    // The journal is not valid until there is a checkpoint of what is in memory already.
    options.journal.attached = false;
    options.recovery.on_progress = nullptr;  // a server that is stopping cancels by it
    NothingToReplay nothing;
    Result<std::unique_ptr<Store>> store = Store::open(std::move(options), nothing);
    if (!store.ok()) return store.status();
    store_ = std::move(*store);
    keep_seed(*settings);
  }
  if (!attach(*store_)) return invalid("the server is busy running a script");
  begin_serving();
  follow(*store_, *shared_.config.settings());  // they may have changed since the store was opened
  spdlog::info("Data is now kept in {}", settings->dir);
  return {};
}

// Under all locks: the changes of one hold are counted completely or not at all.
bool ServerStore::attach(Store& store) NO_THREAD_SAFETY_ANALYSIS {
  Shards& shards = shared_.engine->shards();
  size_t locked = 0;
  while (locked < shards.size() && shared_.engine->lock_patiently(shards[locked])) ++locked;
  const bool all = locked == shards.size();
  if (all) {
    shared_.engine->attach_journal(&store.journal());
    shared_.state.journal.store(&store.journal());
  }
  while (locked != 0) shards[--locked].mutex.unlock();
  return all;
}

// Without a store no save rule fires.
bool ServerStore::is_time_to_retry() const {
  return failed_.load() && std::chrono::steady_clock::now() >= retry_at_ &&
         !shared_.config.settings()->save.empty();
}

void ServerStore::make_if_wanted() {
  if (!wanted_.exchange(false) && !is_time_to_retry()) return;
  const Status status = make();
  if (!status.ok()) {
    retry_at_ = std::chrono::steady_clock::now() + retry_delay_;
    retry_delay_ = std::min<std::chrono::milliseconds>(2 * retry_delay_, kMaxRetryDelay);
    spdlog::warn("Cannot keep the data: {}", status.message());
  } else if (save_wanted_.load() || !shared_.config.settings()->save.empty()) {
    // The rules do not count the time before there was a store.
    store_->checkpointer()->request();
  }
  save_wanted_.store(false);
  if (!status.ok()) {
    end_switch(no_journal(), true);
  } else if (shared_.config.settings()->appendonly) {
    begin_switch();
  }
}

void ServerStore::want() {
  wanted_.store(true);
  life_.wake();
}

// --- BGSAVE and BGREWRITEAOF ---

bool ServerStore::checkpoint_runs() const {
  if (save_wanted_.load()) return true;
  return is_ready() && store_->checkpointer()->status().running;
}

// As in Redis, a checkpoint that nobody requested counts as a rewrite if there is a journal.
PersistencePort::Kind ServerStore::running_kind() const {
  if (const auto asked = asked_kind_.load()) return static_cast<Kind>(asked - 1);
  return is_journaling() ? Kind::kRewrite : Kind::kSave;
}

PersistencePort::Start ServerStore::start_checkpoint(Kind kind, bool may_wait) {
  if (keeps_nothing_) return Start::kNowhere;
  const bool runs = checkpoint_runs();
  if (runs && running_kind() == kind) return Start::kSameRuns;
  if (runs && kind == Kind::kSave && !may_wait) return Start::kOtherRuns;
  if (!runs) asked_kind_.store(static_cast<uint8_t>(kind) + 1);
  if (is_ready()) {
    store_->checkpointer()->request();
  } else {
    save_wanted_.store(true);
    want();
  }
  return runs ? Start::kBehind : Start::kNow;
}

// Called on the checkpointer's thread, after each checkpoint.
void ServerStore::on_checkpoint() {
  if (!checkpoint_runs()) asked_kind_.store(0);
  look_at_switch();
}

// --- appendonly ---

// Attaches the journal, and requests the checkpoint that makes it valid.
void ServerStore::begin_switch() {
  {
    MutexLock lock(switch_mutex_);
    if (!switching_ || switch_ticket_) return;
    switch_ticket_ = store_->set_appendonly(true);
  }
  look_at_switch();  // it may have ended before its ticket was known
}

void ServerStore::look_at_switch() {
  if (!is_ready()) return;
  bool good = false;
  {
    MutexLock lock(switch_mutex_);
    if (!switch_ticket_) return;
    const CheckpointStatus status = store_->checkpointer()->status();
    if (status.finished < *switch_ticket_) return;
    good = status.last_result.ok() && store_->journal().attached();
  }
  end_switch(good ? Status() : no_journal(), !good);
}

void ServerStore::end_switch(const Status& status, bool back) {
  std::vector<std::function<void(const Status&)>> listeners;
  {
    MutexLock lock(switch_mutex_);
    if (!switching_) return;
    switching_ = false;
    switch_ticket_.reset();
    listeners.swap(switch_listeners_);
    if (listeners.empty()) switch_failure_ = status;
  }
  if (back) {
    spdlog::warn(
        "appendonly stays no: the checkpoint that makes the journal valid could not be written");
    static_cast<void>(shared_.config.set({{"appendonly", "no"}}));
  }
  for (const auto& listener : listeners) listener(status);
}

bool ServerStore::when_kept(std::function<void(const Status& status)> then) {
  Status failure;
  {
    MutexLock lock(switch_mutex_);
    if (switching_) {
      switch_listeners_.push_back(std::move(then));
      return true;
    }
    failure = std::exchange(switch_failure_, {});
  }
  if (failure.ok()) return false;
  then(failure);
  return true;
}

// --- WAITAOF ---

bool ServerStore::is_journaling() const { return is_ready() && store_->journal().attached(); }

bool ServerStore::is_synced() const { return is_journaling() && store_->journal().is_synced(); }

void ServerStore::when_synced(std::function<void(bool synced)> then) {
  if (!is_journaling()) return then(false);
  store_->journal().when_synced(std::move(then));
}

void ServerStore::settings_changed(const Settings& before, const Settings& after) {
  if (before.appendonly != after.appendonly) appendonly_changed(after.appendonly);
  if (!is_ready()) {
    if (before.save.empty() && !after.save.empty()) want();
    return;
  }
  follow(*store_, after);
}

void ServerStore::appendonly_changed(bool on) {
  const bool ready = is_ready();
  if (!on) {
    end_switch(no_journal("it was set to no again"), false);
    if (ready) static_cast<void>(store_->set_appendonly(false));
    return;
  }
  {
    MutexLock lock(switch_mutex_);
    switching_ = true;
    switch_failure_ = {};
  }
  ready ? begin_switch() : want();
}

}  // namespace sluice
