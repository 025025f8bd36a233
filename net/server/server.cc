#include "net/server/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <thread>

#include "engine/access/acl.h"
#include "engine/access/passwords.h"
#include "engine/commands/complete_engine.h"
#include "engine/script/script_engine.h"
#include "net/admin/otlp_exporter.h"
#include "net/admin/routes.h"
#include "net/process/clocks.h"
#include "net/process/memory_use.h"
#include "net/process/notify.h"
#include "net/server/server_settings.h"
#include "net/server/supervisor.h"

namespace sluice {

namespace {

// Replies of running commands must be sent within this time after a request to stop, so that the
// whole shutdown takes less than five seconds.
constexpr auto kEndOfSessions = std::chrono::milliseconds(2500);
constexpr auto kEndOfSessionsAfterFailure = std::chrono::milliseconds(500);
constexpr auto kEndOfThreads = std::chrono::milliseconds(1000);
constexpr auto kEndPoll = std::chrono::milliseconds(5);
constexpr auto kSampleInterval = std::chrono::seconds(1);

// This includes RocksDB's threads, whose failure names none.
std::string no_thread(const std::system_error& failure) {
  return std::string("cannot create a thread (") + failure.what() +
         "): the limit is too low, see ulimit -u and the control group's pids.max";
}

// If the server has no limit of its own, the system kills it without a message at the group's
// limit.
void tell_group_limit(const Settings& settings) {
  if (settings.maxmemory_bytes != 0) return;
  const std::optional<uint64_t> limit = group_memory_limit_bytes();
  if (!limit || *limit >= system_memory_bytes()) return;
  spdlog::warn(
      "The control group allows {} MB of memory and maxmemory is not set: at that limit the system "
      "kills the server. Set maxmemory to a lower value.",
      *limit >> 20);
}

}  // namespace

Server::Server(Config& config)
    : shared_(config),
      life_(shared_.state.stopping),
      loading_(shared_),
      connection_limit_(shared_),
      store_(shared_, life_, loading_, connection_limit_.spare_files()),
      copies_(store_),
      listeners_(shared_, connection_limit_),
      traffic_(shared_),
      info_(shared_, life_, loading_, listeners_, store_, traffic_),
      commands_(shared_, life_, store_, traffic_, info_) {
  shared_.engine = std::make_unique<CompleteEngine>(commands_, hash_seed(*config.settings()));
  shared_.state.engine = shared_.engine.get();
  shared_.state.wake_timer = [this] { due_timer_->wake(); };
}

Server::~Server() {
  request_stop();
  wait();
  due_timer_.reset();
  listeners_.leave_thread();
  shared_.io_threads.clear();
}

Status Server::start() {
  Status status = fit_connections(shared_.config);
  if (!status.ok()) return status;
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  status = prepare(*settings);
  if (status.ok()) status = listeners_.open(*settings);
  if (!status.ok()) return status;
  shared_.startup_bytes.store(allocator_facts().allocated);
  shared_.state.loading.store(true);
  loading_.begin();
  make_threads(*settings);
  Config& config = shared_.config;
  config.on_limit([this](const Settings& after) { return check_limits(after); });
  config.on_reload([this](const Settings& after) { return reload_tls(after); });
  config.on_listen([this](const Settings& after) { return listeners_.listen_anew(after); });
  config.on_change(
      [this](const Settings& before, const Settings& after) { settings_changed(before, after); });
  return start_threads();
}

// The steps that need no socket and no thread.
Status Server::prepare(const Settings& settings) {
  apply_settings(settings, shared_.state, *shared_.engine);
  tell_group_limit(settings);
  Status status = load_users(*shared_.engine, settings);
  if (!status.ok()) return status;
  if (settings.tls_port != 0 || settings.http_tls_port != 0) {
    shared_.tls = std::make_unique<TlsService>();
    shared_.state.tls = shared_.tls.get();
    status = shared_.tls->load(settings);
    if (!status.ok()) return status;
  }
  if (!settings.replication_token_file.empty()) {
    Result<std::string> token = read_token(settings.replication_token_file);
    if (!token.ok()) return token.status();
    replication_token_ = std::move(*token);
  }
  if (anew_ && settings.journal != JournalKind::kEtcd) {
    return invalid("--reinit needs another node to load the data from, so it needs `journal etcd`");
  }
  if (settings.journal == JournalKind::kEtcd) {
    group_ = std::make_unique<ServerGroup>(shared_, life_, loading_, store_, listeners_);
    shared_.group = group_.get();
    try {
      status = group_->open(settings);
    } catch (const std::system_error& failure) {
      status = io_error(no_thread(failure));
    }
    if (!status.ok()) return status;
  }
  auto tls = otlp_tls(settings);
  if (tls.ok()) otlp_tls_ = std::move(*tls);
  return tls.status();
}

void Server::make_threads(const Settings& settings) {
  const auto count = static_cast<unsigned>(settings.io_threads);
  for (unsigned i = 0; i < count; ++i) {
    shared_.io_threads.push_back(std::make_unique<IoThread>(shared_.state, i, count == 1));
  }
  add_guests(settings);
  due_timer_ = std::make_unique<DueTimer>(*shared_.io_threads[0]);
}

Status Server::start_threads() {
  try {
    if (shared_.history != nullptr) shared_.history->start();
    shared_.state.asio.start();
    for (const auto& thread : shared_.io_threads) thread->start();
    control_ = Thread("sluice-control", [this] { run_control(); });
  } catch (const std::system_error& failure) {
    shared_.state.stopping.store(true);
    for (const auto& thread : shared_.io_threads) thread->stop();
    join_threads();
    return io_error(no_thread(failure));
  }
  shared_.io_threads[0]->post([this] { listeners_.start(); });
  return {};
}

// Adds the guests of the I/O threads, before these start.
void Server::add_guests(const Settings& settings) {
  if (settings.http_port != 0 || settings.http_tls_port != 0) {
    shared_.http = std::make_unique<HttpService>(
        shared_.state, commands_, shared_.config, admin_routes(), copies_,
        replication_token_.empty() ? std::string() : hash_password(replication_token_));
    shared_.http->join_threads(shared_.io_threads);
    shared_.history = std::make_unique<HistoryKeeper>(shared_.state, settings.dir);
    shared_.state.history = &shared_.history->history();
    shared_.history->join(*shared_.io_threads[0]);
  }
  if (settings.sentinel_port != 0 && shared_.group != nullptr) {
    auto sentinel = std::make_unique<SentinelService>(
        *shared_.io_threads[0], *shared_.group,
        SentinelOptions{settings.sentinel_name, settings.failover_timeout_ms});
    shared_.sentinel = sentinel.get();
    shared_.io_threads[0]->post([raw = sentinel.get()] { raw->start(); });
    shared_.io_threads[0]->add_guest(std::move(sentinel));
  }
  if (!settings.otlp.endpoint) return;
  shared_.state.otlp.configured = true;
  const uint16_t port = listeners_.port() != 0 ? listeners_.port() : listeners_.tls_port();
  auto exporter = std::make_unique<OtlpExporter>(*shared_.io_threads[0],
                                                 otlp_target(settings, port, std::move(otlp_tls_)),
                                                 shared_.http.get());
  shared_.io_threads[0]->post([raw = exporter.get()] { raw->start(); });
  shared_.io_threads[0]->add_guest(std::move(exporter));
}

int Server::wait() {
  if (control_.joinable()) control_.join();
  return life_.exit_code();
}

// --- CONFIG SET, on the I/O thread that runs it ---

// With Redis's error.
Status Server::check_limits(const Settings& after) const {
  if (after.appendonly && store_.is_broken()) {
    return invalid("Unable to turn on AOF. Check server logs.");
  }
  return check_connections(after);
}

// Existing connections are not affected. Returns Redis's error; details are logged.
Status Server::reload_tls(const Settings& after) {
  if (shared_.tls == nullptr) return {};
  const Status status = shared_.tls->load(after);
  if (status.ok()) {
    spdlog::info("TLS: the certificate and the rules for new connections were read again");
    return {};
  }
  spdlog::warn("{}", status.message());
  return invalid("Unable to update TLS configuration. Check server logs.");
}

void Server::settings_changed(const Settings& before, const Settings& after) {
  apply_settings(after, shared_.state, *shared_.engine);
  if (before.requirepass != after.requirepass) {
    shared_.engine->acl().set_default_password(after.requirepass);
  }
  if (shared_.http != nullptr && before.http_tokens != after.http_tokens) {
    shared_.http->set_tokens(after.http_tokens);
  }
  if (before.timeout_s == 0 && after.timeout_s != 0) {
    for (const auto& thread : shared_.io_threads) {
      thread->post([&io_thread = *thread] { io_thread.housekeeping().need(); });
    }
  }
  store_.settings_changed(before, after);
  if (group_ != nullptr) group_->settings_changed(after);
}

// --- The control thread ---

void Server::run_control() {
  if (recover()) {
    serve();
    wait_for_end();
  }
  tell_supervisor(*shared_.config.settings(), "STOPPING=1");
  if (group_ != nullptr) group_->leave();
  shared_.state.stopping.store(true);
  end_sessions();
  if (shared_.history != nullptr) shared_.history->finish(!life_.journal_failed());
  if (group_ != nullptr) group_->stop();
  copies_.stop();
  store_.close();
  spdlog::info("Sluice is now ready to exit, bye bye...");
  life_.note_ended();
  if (on_end_) on_end_();
}

bool Server::recover() {
  try {
    if (group_ != nullptr && !group_->load_copy(anew_, replication_token_)) return false;
    if (!store_.load()) return false;
    shared_.state.clocks.start(shared_.engine->queue_clock);
    return group_ == nullptr || group_->start();
  } catch (const std::system_error& failure) {
    return life_.refuse_start(io_error(no_thread(failure)));
  }
}

void Server::serve() {
  // From here on requests run; set before the store reports that it is ready.
  shared_.state.loading.store(false, std::memory_order_release);
  due_timer_->wake();
  announce();
}

void Server::announce() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  const uint16_t port = listeners_.port();
  const uint16_t tls_port = listeners_.tls_port();
  const uint16_t http_port = listeners_.http_port();
  const uint16_t http_tls_port = listeners_.http_tls_port();
  const uint16_t sentinel_port = listeners_.sentinel_port();
  if (!settings->ready_file.empty()) {
    std::vector<std::pair<std::string, uint64_t>> ports = {{"port", port}};
    if (tls_port != 0) ports.emplace_back("tls-port", tls_port);
    if (http_port != 0) ports.emplace_back("http-port", http_port);
    if (http_tls_port != 0) ports.emplace_back("http-tls-port", http_tls_port);
    if (sentinel_port != 0) ports.emplace_back("sentinel-port", sentinel_port);
    const Status status = write_ready_file(settings->ready_file, ports);
    if (!status.ok()) {
      life_.finish(1, status.message());
      request_stop(ShutdownMode::kDefault);
      spdlog::error("{}", status.message());
      return;
    }
  }
  if (port != 0) spdlog::info("Ready to accept connections on port {}", port);
  if (tls_port != 0) spdlog::info("Ready to accept connections by TLS on port {}", tls_port);
  if (http_port != 0) spdlog::info("HTTP is served on port {}", http_port);
  if (http_tls_port != 0) spdlog::info("HTTPS is served on port {}", http_tls_port);
  if (sentinel_port != 0) spdlog::info("Clients of Sentinel are served on port {}", sentinel_port);
  if (!settings->unixsocket.empty()) {
    spdlog::info("The server is now ready to accept connections at {}", settings->unixsocket);
  }
  tell_supervisor(*settings, "READY=1\nSTATUS=Ready to accept connections");
  life_.note_ready();
}

void Server::wait_for_end() {
  traffic_.begin_sampling();
  while (!life_.wait(kSampleInterval, [this] { return store_.is_wanted(); })) {
    store_.make_if_wanted();
    connection_limit_.relieve();
    used_memory_bytes();  // updates its peak
    traffic_.sample();
  }
}

// --- The end ---

namespace {

// Counts looks and not time: a process that was stopped meanwhile must not take its threads for
// stuck.
bool wait_for(const IoThread& thread, bool (IoThread::*done)() const, int64_t& looks) {
  for (; !(thread.*done)(); --looks) {
    if (looks <= 0) return false;
    std::this_thread::sleep_for(kEndPoll);
  }
  return true;
}

}  // namespace

bool Server::wait_for_threads(int64_t looks, bool (IoThread::*done)() const) {
  return std::all_of(shared_.io_threads.begin(), shared_.io_threads.end(),
                     [&](const auto& thread) { return wait_for(*thread, done, looks); });
}

// The first thread accepts connections for the others: those end after it, or its last ones would
// stay open and never be served.
bool Server::stop_threads() {
  int64_t looks = kEndOfThreads / kEndPoll;
  IoThread& first = *shared_.io_threads[0];
  first.stop();
  static_cast<void>(wait_for(first, &IoThread::ended, looks));
  for (const auto& thread : shared_.io_threads) thread->stop();
  return wait_for_threads(looks, &IoThread::ended);
}

void Server::end_sessions() {
  spdlog::info("Stopping: no new connections, finishing the work in hand");
  shared_.io_threads[0]->post([this] { listeners_.stop(); });
  for (const auto& thread : shared_.io_threads) thread->begin_stop();
  // What a fenced node knows must not be told any more.
  const bool fenced = life_.exit_code() == kFencedExitCode;
  const auto patience = fenced                   ? std::chrono::milliseconds(0)
                        : life_.journal_failed() ? kEndOfSessionsAfterFailure
                                                 : kEndOfSessions;
  wait_for_threads(patience / kEndPoll, &IoThread::idle);
  // A script that has only read ends here; one that has written cannot be stopped halfway.
  for (const bool functions : {false, true}) {
    static_cast<void>(script_engine(*shared_.engine).kill(functions));
  }
  if (!stop_threads() && exit_when_stuck_) exit_stuck();
  join_threads();
}

void Server::join_threads() {
  for (const auto& thread : shared_.io_threads) thread->join();
  shared_.state.asio.stop();
}

void Server::exit_stuck() {
  spdlog::warn("A command does not end: exiting without waiting for it");
  store_.sync_for_exit();
  spdlog::default_logger()->flush();
  std::_Exit(life_.exit_code());
}

}  // namespace sluice
