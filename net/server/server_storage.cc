// The store of a server: opened at the start where anything is kept or was kept, else when
// something is to be kept for the first time; and the change from `appendonly no` to `yes`.
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <random>
#include <utility>

#include "net/process/clocks.h"
#include "net/process/logging.h"
#include "net/process/memory_ahead.h"
#include "net/process/memory_use.h"
#include "net/server/server.h"
#include "storage/data_directory.h"
#include "storage/event_file.h"
#include "storage/hash_seed.h"

namespace sluice {

namespace {

int64_t wall_ms() {
  using std::chrono::system_clock;
  const auto now = system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

constexpr const char* kCannotSwitchOn = "Unable to turn on AOF. Check server logs.";

// Of a directory in which there was nothing at the start.
class NothingToReplay final : public Replay {
 public:
  bool apply(Bytes, uint64_t) override { return false; }
  void finish(const std::function<void()>&) override {}
};

}  // namespace

uint64_t Server::hash_seed(const Settings& settings) {
  // One for all engines of the process, as the hash function's state is global: that of the first
  // one's data directory.
  static const uint64_t seed = [&] {
    if (const auto kept = read_hash_seed(settings.dir)) return *kept;
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

void Server::keep_seed(const Settings& settings) const {
  const Status kept = keep_hash_seed(settings.dir, hash_seed(settings));
  if (!kept.ok()) spdlog::warn("the next start will be slower: {}", kept.message());
}

bool Server::keeps_data(const Settings& settings) {
  return settings.appendonly || !settings.save.empty();
}

StoreOptions Server::store_options(const Settings& settings) {
  StoreOptions options;
  options.directory = settings.dir;
  options.journal.attached = settings.appendonly;
  options.journal.mode = sync_mode(settings.appendfsync);
  options.journal.min_free_disk_bytes = settings.min_free_disk_bytes;
  options.journal.on_durable = [this](Lsn) {
    for (const auto& thread : io_threads_) thread->durable_moved();
  };
  options.journal.on_min_free_disk = [this](bool below) {
    engine_->options().disk_nearly_full.store(below, std::memory_order_relaxed);
  };
  options.journal.on_failed = [this](const Status& status) { on_journal_failed(status); };
  options.recovery.on_progress = [this](const RecoveryProgress& progress) {
    return on_loading_progress(progress);
  };
  options.checkpoint_log_bytes = settings.checkpoint_log_bytes;
  options.save_rules = save_rules(settings);
  options.data_bytes = [this] {
    const uint64_t used = sluice::used_memory_bytes();
    const uint64_t events = event_file_ != nullptr ? event_file_->disk_bytes() : 0;
    return used - std::min(used, startup_bytes_.load()) + events;
  };
  options.on_checkpoint = [this] { on_checkpoint(); };
  options.sink = storage_log_sink();
  options.spare_files = spare_files_;
  return options;
}

// What is wrong with the directory itself, Store::open says.
void Server::open_event_file(const Settings& settings) {
  ::mkdir(settings.dir.c_str(), 0755);
  EventFileOptions options;
  options.directory = settings.dir;
  options.min_free_bytes = [this] { return config_.settings()->min_free_disk_bytes; };
  options.sink = storage_log_sink();
  auto opened = EventFile::open(std::move(options));
  if (!opened.ok()) {
    spdlog::warn("events of queues stay in memory: {}", opened.status().message());
    return;
  }
  event_file_ = *opened;
  engine_->spill_events_to(event_file_);
}

Result<std::unique_ptr<Store>> Server::open_store(const Settings& settings, Replay& replay) {
  const MemoryAhead memory_ahead;
  return Store::open(store_options(settings), replay);
}

bool Server::load_data() {
  const std::shared_ptr<const Settings> settings = config_.settings();
  if (!keeps_data(*settings)) {
    spdlog::warn(
        "appendonly is no and there are no save rules: nothing is kept on disk but by SAVE and "
        "BGSAVE");
    if (keeps_nothing_ || !holds_data(settings->dir)) return true;
  }
  const int64_t begin_ms = Clocks::steady_ms();
  progress_logged_ms_ = begin_ms;
  open_event_file(*settings);
  const std::unique_ptr<Replay> replay = engine_->begin_replay();
  Result<std::unique_ptr<Store>> store = open_store(*settings, *replay);
  if (!store.ok()) {
    if (store.status().code() == StatusCode::kCancelled) return false;
    spdlog::error("Fatal error: {}", store.status().message());
    finish(1, store.status().message());
    return false;
  }
  store_ = std::move(*store);
  keep_seed(*settings);
  engine_->attach_journal(&store_->journal());
  state_.journal.store(&store_->journal());
  store_->start_checkpoints([this] { return engine_->begin_walk(); }, wall_ms);
  store_ready_.store(true, std::memory_order_release);
  log_recovery(static_cast<double>(Clocks::steady_ms() - begin_ms) / 1000);
  return true;
}

CloseMode Server::close_mode() const {
  if (journal_failed_.load()) return CloseMode::kDiscard;
  MutexLock lock(mutex_);
  if (stop_mode_ == ShutdownMode::kSave) return CloseMode::kCheckpoint;
  const std::shared_ptr<const Settings> settings = config_.settings();
  const bool by_rules = !settings->appendonly && !settings->save.empty();
  return stop_mode_ == ShutdownMode::kDefault && by_rules ? CloseMode::kCheckpoint
                                                          : CloseMode::kFlush;
}

// --- Where nothing was kept at the start ---

std::string Server::make_store() {
  MutexLock lock(making_store_);
  if (store_ready_.load(std::memory_order_acquire)) return "";
  if (keeps_nothing_) return "this server is in memory only: it was given no directory";
  const std::shared_ptr<const Settings> settings = config_.settings();
  if (holds_data(settings->dir)) {
    return "the directory " + settings->dir + " holds data that this server has not loaded";
  }
  StoreOptions options = store_options(*settings);
  // Until there is a checkpoint of what is in memory already, no journal counts.
  options.journal.attached = false;
  NothingToReplay nothing;
  Result<std::unique_ptr<Store>> store = Store::open(std::move(options), nothing);
  if (!store.ok()) return store.status().message();
  keep_seed(*settings);
  if (!attach_store(**store)) return "a script keeps the server busy";
  store_ = std::move(*store);
  store_->start_checkpoints([this] { return engine_->begin_walk(); }, wall_ms);
  store_ready_.store(true, std::memory_order_release);
  spdlog::info("Data are kept in {} from now on", settings->dir);
  return "";
}

// Under all locks: what a hold changes is counted as a whole or not at all.
bool Server::attach_store(Store& store) NO_THREAD_SAFETY_ANALYSIS {
  Shards& shards = engine_->shards();
  size_t locked = 0;
  while (locked < shards.size() && engine_->lock_patiently(shards[locked])) ++locked;
  const bool all = locked == shards.size();
  if (all) {
    engine_->attach_journal(&store.journal());
    state_.journal.store(&store.journal());
  }
  while (locked != 0) shards[--locked].mutex.unlock();
  return all;
}

// On the control thread.
void Server::make_wanted_storage() {
  const std::string error = make_store();
  storage_failed_.store(!error.empty());
  if (!error.empty()) spdlog::warn("The data cannot be kept: {}", error);
  if (error.empty() && save_wanted_.load()) store_->checkpointer()->request();
  save_wanted_.store(false);
  if (!error.empty()) {
    end_switch(kCannotSwitchOn, true);
  } else if (config_.settings()->appendonly) {
    begin_switch();
  }
}

void Server::want_storage() {
  MutexLock lock(mutex_);
  storage_wanted_.store(true);
  wake_.notify_all();
}

// --- BGSAVE and BGREWRITEAOF ---

bool Server::checkpoint_runs() const {
  if (save_wanted_.load()) return true;
  return store_ready_.load(std::memory_order_acquire) && store_->checkpointer()->status().running;
}

// What nobody has asked for is a rewrite where there is a journal, as in Redis.
PersistencePort::Kind Server::running_kind() const {
  if (const auto asked = asked_kind_.load()) return static_cast<Kind>(asked - 1);
  return is_journaling() ? Kind::kRewrite : Kind::kSave;
}

PersistencePort::Start Server::start_checkpoint(Kind kind, bool may_wait) {
  if (keeps_nothing_) return Start::kNowhere;
  const bool runs = checkpoint_runs();
  if (runs && running_kind() == kind) return Start::kSameRuns;
  if (runs && kind == Kind::kSave && !may_wait) return Start::kOtherRuns;
  if (!runs) asked_kind_.store(static_cast<uint8_t>(kind) + 1);
  if (store_ready_.load(std::memory_order_acquire)) {
    store_->checkpointer()->request();
  } else {
    save_wanted_.store(true);
    want_storage();
  }
  return runs ? Start::kBehind : Start::kNow;
}

// On the checkpointer's thread, after each checkpoint.
void Server::on_checkpoint() {
  if (!checkpoint_runs()) asked_kind_.store(0);
  look_at_switch();
}

// --- appendonly ---

// Attaches the journal, and asks for the checkpoint with which it begins to count.
void Server::begin_switch() {
  {
    MutexLock lock(switch_mutex_);
    if (!switching_ || switch_ticket_) return;
    switch_ticket_ = store_->set_appendonly(true);
  }
  look_at_switch();  // it may have ended before its ticket was known
}

void Server::look_at_switch() {
  if (!store_ready_.load(std::memory_order_acquire)) return;
  bool good = false;
  {
    MutexLock lock(switch_mutex_);
    if (!switch_ticket_) return;
    const CheckpointStatus status = store_->checkpointer()->status();
    if (status.finished < *switch_ticket_) return;
    good = status.last_result.ok() && store_->journal().attached();
  }
  end_switch(good ? "" : kCannotSwitchOn, !good);
}

void Server::end_switch(const std::string& reason, bool back) {
  const std::string error =
      reason.empty()
          ? ""
          : "ERR CONFIG SET failed (possibly related to argument 'appendonly') - " + reason;
  std::vector<std::function<void(const std::string&)>> listeners;
  {
    MutexLock lock(switch_mutex_);
    if (!switching_) return;
    switching_ = false;
    switch_ticket_.reset();
    listeners.swap(switch_listeners_);
    if (listeners.empty()) switch_error_ = error;
  }
  if (back) {
    spdlog::warn("appendonly stays no: there is no checkpoint from which the journal could go on");
    static_cast<void>(config_.set({{"appendonly", "no"}}));
  }
  for (const auto& listener : listeners) listener(error);
}

bool Server::when_kept(std::function<void(const std::string& error)> then) {
  std::string error;
  {
    MutexLock lock(switch_mutex_);
    if (switching_) {
      switch_listeners_.push_back(std::move(then));
      return true;
    }
    error = std::exchange(switch_error_, "");
  }
  if (error.empty()) return false;
  then(error);
  return true;
}

// --- WAITAOF ---

bool Server::is_journaling() const {
  return store_ready_.load(std::memory_order_acquire) && store_->journal().attached();
}

bool Server::is_synced() const { return is_journaling() && store_->journal().is_synced(); }

void Server::when_synced(std::function<void(bool synced)> then) {
  if (!is_journaling()) return then(false);
  store_->journal().when_synced(std::move(then));
}

// Within CONFIG SET.
void Server::appendonly_changed(bool on) {
  const bool ready = store_ready_.load(std::memory_order_acquire);
  if (!on) {
    end_switch("it was set to no again", false);
    if (ready) static_cast<void>(store_->set_appendonly(false));
    return;
  }
  {
    MutexLock lock(switch_mutex_);
    switching_ = true;
    switch_error_.clear();
  }
  ready ? begin_switch() : want_storage();
}

}  // namespace sluice
