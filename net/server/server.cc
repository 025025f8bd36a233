#include "net/server/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "engine/access/acl.h"
#include "engine/base/hash.h"
#include "engine/base/hex.h"
#include "engine/commands/complete_engine.h"
#include "engine/script/script_engine.h"
#include "net/admin/otlp_exporter.h"
#include "net/admin/routes.h"
#include "net/process/clocks.h"
#include "net/process/logging.h"
#include "net/process/memory_use.h"
#include "net/process/notify.h"

namespace sluice {

namespace {

// Replies of the work in hand must leave within this time of a request to stop, so that the whole
// end takes less than five seconds.
constexpr auto kEndOfSessions = std::chrono::milliseconds(2500);
constexpr auto kEndOfSessionsAfterFailure = std::chrono::milliseconds(500);
constexpr auto kEndOfThreads = std::chrono::milliseconds(1000);
constexpr auto kEndPoll = std::chrono::milliseconds(5);
constexpr auto kSampleInterval = std::chrono::seconds(1);
constexpr int64_t kProgressLogMs = 2000;

int64_t wall_ms() {
  using std::chrono::system_clock;
  const auto now = system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// RocksDB's threads are among them, whose failure names none.
std::string no_thread(const std::system_error& failure) {
  return std::string("no further thread could be created (") + failure.what() +
         "): the system allows too few, see ulimit -u and the control group's pids.max";
}

// A server without a limit of its own is ended by the system, without a word, at the group's.
void tell_group_limit(const Settings& settings) {
  if (settings.maxmemory_bytes != 0) return;
  const std::optional<uint64_t> limit = group_memory_limit_bytes();
  if (!limit || *limit >= system_memory_bytes()) return;
  spdlog::warn(
      "The control group allows {} MB of memory and maxmemory is not set: at that limit the system "
      "ends the server. Set maxmemory to less than that.",
      *limit >> 20);
}

std::string random_run_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 40; ++i) id += kHexDigits[device() % 16];
  return id;
}

}  // namespace

Server::Server(Config& config)
    : config_(config),
      engine_(std::make_unique<CompleteEngine>(*this, hash_seed(*config.settings()))),
      listener_(state_, resp_ready(), resp_refuse(), resp_adopt()),
      tls_listener_(state_, resp_ready(), resp_refuse(), resp_adopt()),
      http_listener_(state_, http_ready(), http_refuse(), http_adopt()),
      http_tls_listener_(state_, http_ready(), http_refuse(), http_adopt()),
      spare_files_(std::make_shared<SpareFiles>()),
      run_id_(random_run_id()),
      started_ms_(wall_ms()),
      started_steady_ms_(Clocks::steady_ms()) {
  state_.engine = engine_.get();
  state_.listener = &listener_;
  state_.started_ms = started_ms_;
  state_.wake_timer = [this] { due_timer_->wake(); };
}

Server::~Server() {
  request_stop();
  wait();
  due_timer_.reset();
  const auto every = listeners();
  for (Listener* listener : every) listener->leave_thread();
  io_threads_.clear();
}

std::string Server::start() {
  std::string error = fit_connections();
  if (!error.empty()) return error;
  const std::shared_ptr<const Settings> settings = config_.settings();
  apply_settings(*settings);
  tell_group_limit(*settings);
  error = load_users(*settings);
  if (!error.empty()) return error;
  if (settings->tls_port != 0 || settings->http_tls_port != 0) {
    tls_ = std::make_unique<TlsService>();
    state_.tls = tls_.get();
    error = tls_->load(*settings);
    if (!error.empty()) return error;
  }
  auto collector_tls = otlp_tls(*settings, error);
  if (!error.empty()) return error;
  error = open_listeners(*settings);
  if (!error.empty()) return error;
  startup_bytes_.store(allocator_facts().allocated);
  state_.loading.store(true);
  loading_started_s_.store(wall_ms() / 1000);
  const auto threads = static_cast<unsigned>(settings->io_threads);
  for (unsigned i = 0; i < threads; ++i) {
    io_threads_.push_back(std::make_unique<IoThread>(state_, i, threads == 1));
  }
  add_guests(*settings, std::move(collector_tls));
  due_timer_ = std::make_unique<DueTimer>(*io_threads_[0]);
  config_.on_limit([this](const Settings& after) { return check_limits(after); });
  config_.on_reload([this](const Settings& after) { return reload_tls(after); });
  config_.on_listen([this](const Settings& after) { return listen_anew(after); });
  config_.on_change(
      [this](const Settings& before, const Settings& after) { settings_changed(before, after); });
  return start_threads();
}

std::string Server::start_threads() {
  try {
    for (const auto& thread : io_threads_) thread->start();
    control_ = Thread("sluice-control", [this] { run_control(); });
  } catch (const std::system_error& failure) {
    state_.stopping.store(true);
    for (const auto& thread : io_threads_) thread->stop();
    for (const auto& thread : io_threads_) thread->join();
    return no_thread(failure);
  }
  io_threads_[0]->post([this] {
    const auto every = listeners();
    for (Listener* listener : every) listener->start(*io_threads_[0]);
  });
  return {};
}

// What lives on the I/O threads besides sessions. Before they start.
void Server::add_guests(const Settings& settings,
                        std::shared_ptr<const TlsClientContext> otlp_tls) {
  if (settings.http_port != 0 || settings.http_tls_port != 0) {
    http_ = std::make_unique<HttpService>(state_, *this, config_, admin_routes());
    http_->join_threads(io_threads_);
  }
  if (!settings.otlp.endpoint) return;
  state_.otlp.configured = true;
  const uint16_t port = listener_.port() != 0 ? listener_.port() : tls_listener_.port();
  auto exporter = std::make_unique<OtlpExporter>(
      *io_threads_[0], otlp_target(settings, port, std::move(otlp_tls)), http_.get());
  io_threads_[0]->post([raw = exporter.get()] { raw->start(); });
  io_threads_[0]->add_guest(std::move(exporter));
}

namespace {

ListenOptions tcp_options(const Settings& settings, const std::vector<std::string>& bind,
                          int64_t port, bool tls) {
  ListenOptions options;
  options.bind = bind;
  options.tcp = port != 0;
  options.port = port == Settings::kPortAuto ? uint16_t{0} : static_cast<uint16_t>(port);
  options.backlog = static_cast<int>(settings.tcp_backlog);
  options.tls = tls;
  return options;
}

}  // namespace

std::string Server::open_listeners(const Settings& settings) {
  const auto tcp = [&](const std::vector<std::string>& bind, int64_t port, bool tls) {
    return tcp_options(settings, bind, port, tls);
  };
  ListenOptions listen = tcp(settings.bind, settings.port, false);
  listen.unix_socket = settings.unixsocket;
  listen.unix_socket_mode = static_cast<unsigned>(settings.unixsocketperm);
  std::string error = listener_.open(listen);
  if (!error.empty()) return error;
  error = tls_listener_.open(tcp(settings.bind, settings.tls_port, true));
  if (!error.empty()) return error + " (tls-port)";
  error = http_listener_.open(tcp(settings.http_bind, settings.http_port, false));
  if (!error.empty()) return error + " (http-port; 0 turns HTTP off)";
  error = http_tls_listener_.open(tcp(settings.http_bind, settings.http_tls_port, true));
  return error.empty() ? error : error + " (http-tls-port)";
}

// Within CONFIG SET, on the I/O thread that runs it. Where that is another one than the listeners'
// own, the old port is closed a moment after the reply.
std::string Server::listen_anew(const Settings& after) {
  if (after.port == config_.settings()->port) return "";
  auto fresh = std::make_shared<Listener>(state_, resp_ready(), resp_refuse(), resp_adopt());
  const std::string error = fresh->open(tcp_options(after, after.bind, after.port, false));
  if (!error.empty()) {
    spdlog::warn("{}", error);
    return "Unable to listen on this port. Check server logs.";
  }
  spdlog::info("Connections are accepted on port {} from now on, and no more on port {}",
               fresh->port(), listener_.port());
  IoThread& owner = *io_threads_[0];
  const auto move = [this, fresh, &owner] { listener_.take_over(*fresh, owner); };
  IoThread::current() == &owner ? move() : owner.post(move);
  return "";
}

std::array<Listener*, 4> Server::listeners() {
  return {&listener_, &tls_listener_, &http_listener_, &http_tls_listener_};
}

Listener::Ready Server::resp_ready() {
  return [this] { return may_accept(); };
}

Listener::Ready Server::http_ready() {
  return [this] { return may_accept_http(); };
}

Listener::Refuse Server::resp_refuse() {
  return [this](bool loopback) { return refuse(loopback); };
}

Listener::Refuse Server::http_refuse() {
  return [this](bool loopback) { return http_->refusal(loopback); };
}

Listener::Adopt Server::resp_adopt() {
  return [this](int fd, Endpoints endpoints) { adopt(fd, std::move(endpoints)); };
}

Listener::Adopt Server::http_adopt() {
  return [this](int fd, Endpoints endpoints) { http_->adopt(fd, std::move(endpoints)); };
}

// On I/O thread 0: the thread with the fewest connections takes the next one.
void Server::adopt(int fd, Endpoints endpoints) {
  IoThread* chosen = nullptr;
  for (size_t i = 0; i < io_threads_.size(); ++i) {
    IoThread* thread = io_threads_[(next_thread_ + i) % io_threads_.size()].get();
    if (chosen == nullptr || thread->sessions().count() < chosen->sessions().count())
      chosen = thread;
  }
  state_.connections_received.fetch_add(1, std::memory_order_relaxed);
  state_.connected_clients.fetch_add(1, std::memory_order_relaxed);
  // Counts follow late while a burst is accepted: so the search begins one further each time.
  next_thread_ = (next_thread_ + 1) % io_threads_.size();
  chosen->adopt(fd, std::move(endpoints));
}

void Server::request_stop(ShutdownMode mode) {
  MutexLock lock(mutex_);
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_mode_ = mode;
  state_.stopping.store(true);
  wake_.notify_all();
}

bool Server::wait_until_ready() NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex_.native());
  wake_.wait(lock, [this]() NO_THREAD_SAFETY_ANALYSIS { return ready_ || ended_; });
  return ready_;
}

int Server::wait() {
  if (control_.joinable()) control_.join();
  MutexLock lock(mutex_);
  return exit_code_;
}

std::string Server::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

// --- The control thread ---

void Server::run_control() {
  if (recover()) {
    serve();
    wait_for_end();
  }
  tell_supervisor("STOPPING=1");
  state_.stopping.store(true);
  end_sessions();
  end_storage();
  spdlog::info("Sluice is now ready to exit, bye bye...");
  {
    MutexLock lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }
  if (on_end_) on_end_();
}

// `auto` is `systemd` where there is a socket, and where there is none nobody hears either.
bool Server::is_supervised() const {
  return config_.settings()->supervised != Supervised::kNo && has_notify_socket();
}

void Server::tell_supervisor(const std::string& state) const {
  if (is_supervised()) notify_supervisor(state);
}

void Server::finish(int exit_code, std::string failure) {
  MutexLock lock(mutex_);
  if (exit_code_ != 0) return;
  exit_code_ = exit_code;
  failure_ = std::move(failure);
}

bool Server::recover() {
  try {
    return load_data();
  } catch (const std::system_error& failure) {
    const std::string text = no_thread(failure);
    spdlog::error("Fatal error: {}", text);
    finish(1, text);
    return false;
  }
}

bool Server::on_loading_progress(const RecoveryProgress& progress) {
  loading_bytes_.store(progress.bytes_done, std::memory_order_relaxed);
  loading_total_bytes_.store(progress.bytes_total, std::memory_order_relaxed);
  const int64_t now_ms = Clocks::steady_ms();
  if (now_ms - progress_logged_ms_ >= kProgressLogMs) {
    progress_logged_ms_ = now_ms;
    const uint64_t percent =
        progress.bytes_done * 100 / std::max<uint64_t>(progress.bytes_total, 1);
    if (progress.read_all) {
      spdlog::info("Loading: all {} MB are read; jobs and expiries are put in order",
                   progress.bytes_done >> 20);
    } else {
      spdlog::info("Loading: {} of about {} MB ({} %)", progress.bytes_done >> 20,
                   progress.bytes_total >> 20, std::min<uint64_t>(percent, 99));
    }
    // A large directory takes longer than a supervisor's patience.
    tell_supervisor("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=Loading, " + std::to_string(percent) +
                    " %");
  }
  return !state_.stopping.load(std::memory_order_relaxed);
}

void Server::log_recovery(double seconds) {
  const RecoveryResult& result = store_->recovered();
  uint64_t keys = 0;
  for (int database = 0; database < kDatabases; ++database) keys += engine_->key_count(database);
  recovered_keys_.store(keys);
  spdlog::info(
      "Recovered {} keys from {} ({} records) and {} units of the journal ({} records), up to lsn "
      "{}, in {:.3f} s",
      keys, result.checkpoint ? "a checkpoint" : "no checkpoint",
      result.checkpoint ? result.checkpoint->records : 0, result.units, result.unit_records,
      result.last_lsn, seconds);
}

void Server::serve() {
  state_.clocks.start(engine_->queue_clock);
  // From here on requests run; it happens before the store that tells them so.
  state_.loading.store(false, std::memory_order_release);
  due_timer_->wake();
  announce();
}

void Server::announce() {
  const std::shared_ptr<const Settings> settings = config_.settings();
  if (!settings->ready_file.empty()) {
    std::vector<std::pair<std::string, uint64_t>> ports = {{"port", listener_.port()}};
    if (tls_port() != 0) ports.emplace_back("tls-port", tls_port());
    if (http_port() != 0) ports.emplace_back("http-port", http_port());
    if (http_tls_port() != 0) ports.emplace_back("http-tls-port", http_tls_port());
    const std::string error = write_ready_file(settings->ready_file, ports);
    if (!error.empty()) {
      finish(1, error);
      request_stop(ShutdownMode::kDefault);
      spdlog::error("{}", error);
      return;
    }
  }
  if (port() != 0) spdlog::info("Ready to accept connections on port {}", port());
  if (tls_port() != 0) spdlog::info("Ready to accept connections by TLS on port {}", tls_port());
  if (http_port() != 0) spdlog::info("HTTP is served on port {}", http_port());
  if (http_tls_port() != 0) spdlog::info("HTTPS is served on port {}", http_tls_port());
  if (!settings->unixsocket.empty()) {
    spdlog::info("The server is now ready to accept connections at {}", settings->unixsocket);
  }
  tell_supervisor("READY=1\nSTATUS=Ready to accept connections");
  MutexLock lock(mutex_);
  ready_ = true;
  wake_.notify_all();
}

void Server::wait_for_end() {
  last_totals_ = totals();
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_.native());
      const auto ends = [this]() NO_THREAD_SAFETY_ANALYSIS {
        return stop_requested_ || journal_failed_.load();
      };
      wake_.wait_for(lock, kSampleInterval, [&] { return ends() || storage_wanted_.load(); });
      if (ends()) return;
    }
    if (storage_wanted_.exchange(false)) make_wanted_storage();
    relieve_files();
    sample();
  }
}

void Server::sample() {
  used_memory_bytes();  // for its peak
  const Totals now = totals();
  const auto elapsed_ms =
      static_cast<uint64_t>(std::max<int64_t>(now.at_ms - last_totals_.at_ms, 1));
  const auto rate = [&](uint64_t after, uint64_t before) {
    return (after - before) * 1000 / elapsed_ms;
  };
  rates_.operations.store(rate(now.operations, last_totals_.operations));
  rates_.input_bytes.store(rate(now.input_bytes, last_totals_.input_bytes));
  rates_.output_bytes.store(rate(now.output_bytes, last_totals_.output_bytes));
  last_totals_ = now;
}

void Server::on_journal_failed(const Status& status) {
  spdlog::error(
      "The journal failed: {}. Nothing more is acknowledged; the server stops, since memory holds "
      "changes that the disk does not.",
      status.message());
  finish(kJournalFailedExitCode, status.message());
  for (const auto& thread : io_threads_) thread->journal_failed();
  MutexLock lock(mutex_);
  journal_failed_.store(true);
  state_.stopping.store(true);
  wake_.notify_all();
}

// --- The end ---

bool Server::wait_for_threads(std::chrono::milliseconds patience, bool (IoThread::*done)() const) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const auto& thread : io_threads_) {
    while (!(thread.get()->*done)()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kEndPoll);
    }
  }
  return true;
}

void Server::end_sessions() {
  spdlog::info("Stopping: no new connections, finishing the work in hand");
  io_threads_[0]->post([this] {
    const auto every = listeners();
    for (Listener* listener : every) listener->stop();
  });
  for (const auto& thread : io_threads_) thread->begin_stop();
  wait_for_threads(journal_failed_.load() ? kEndOfSessionsAfterFailure : kEndOfSessions,
                   &IoThread::idle);
  // A script that has only read ends here; one that has written cannot be cut off halfway.
  script_engine(*engine_).kill(false);
  script_engine(*engine_).kill(true);
  for (const auto& thread : io_threads_) thread->stop();
  if (!wait_for_threads(kEndOfThreads, &IoThread::ended) && exit_when_stuck_) exit_stuck();
  for (const auto& thread : io_threads_) thread->join();
}

void Server::exit_stuck() {
  spdlog::warn("A command does not end: exiting without it");
  int exit_code = journal_failed_.load() ? kJournalFailedExitCode : 0;
  if (store_ != nullptr && !journal_failed_.load()) {
    // It holds the shards that a checkpoint would read.
    const uint64_t changes = unsaved_changes();
    if (changes != 0) {
      spdlog::error(
          "The last checkpoint could not be written: {} changes since the one before it are lost "
          "(appendonly is no)",
          changes);
      exit_code = kCheckpointLostExitCode;
    }
    if (!store_->journal().sync()) exit_code = kJournalFailedExitCode;
  }
  spdlog::default_logger()->flush();
  std::_Exit(exit_code);
}

// Of the journal's changes those that only the last checkpoint would keep.
uint64_t Server::changes_without_checkpoint() const {
  if (!store_ready_.load(std::memory_order_acquire) || store_->journal().attached()) return 0;
  return store_->checkpointer()->changes();
}

uint64_t Server::unsaved_changes() const {
  if (close_mode() != CloseMode::kCheckpoint) return 0;
  MutexLock lock(mutex_);
  return closing_storage_ ? unsaved_at_end_ : changes_without_checkpoint();
}

void Server::end_storage() {
  if (event_file_ != nullptr) event_file_->stop();
  if (store_ == nullptr) return;
  const CloseMode close = close_mode();
  {
    MutexLock lock(mutex_);
    unsaved_at_end_ = changes_without_checkpoint();
    closing_storage_ = true;
  }
  if (close == CloseMode::kCheckpoint) spdlog::info("Writing the last checkpoint before exiting");
  store_ready_.store(false);
  state_.journal.store(nullptr);
  const Status status = store_->close(close);
  if (status.ok()) {
    MutexLock lock(mutex_);
    unsaved_at_end_ = 0;
  }
  if (!status.ok() && !journal_failed_.load()) {
    spdlog::error("The data could not be written completely: {}", status.message());
    finish(kJournalFailedExitCode, status.message());
  }
}

}  // namespace sluice
