// Server: the whole of it in one object: listening sockets, I/O threads, engine, storage. The
// program (tools/server_main.cc) and EmbeddedServer make one.
//
// Life: start() opens the sockets and starts the threads; a control thread of its own recovers the
// data (clients are told -LOADING meanwhile), then waits for request_stop() or a failure of
// storage, and ends everything in order. wait() joins it and says with which exit code a program
// should end.
//
// Threads: start, wait and the destructor by one thread; the rest by any. As ServerPort it serves
// the commands of all I/O threads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/log_pace.h"
#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "engine/execution/engine.h"
#include "engine/ports/persistence_port.h"
#include "engine/ports/server_port.h"
#include "net/config/config.h"
#include "net/http/http_service.h"
#include "net/io/due_timer.h"
#include "net/io/io_thread.h"
#include "net/io/listener.h"
#include "net/io/server_state.h"
#include "net/io/strangers.h"
#include "net/tls/tls_client.h"
#include "net/tls/tls_service.h"
#include "storage/event_file.h"
#include "storage/spare_files.h"
#include "storage/store.h"

namespace sluice {

// Of the configuration's values as storage wants them.
SyncMode sync_mode(AppendFsync appendfsync);
std::vector<SaveRule> save_rules(const Settings& settings);

// EX_SOFTWARE of sysexits.h: with `appendonly no`, a command that did not end kept the last
// checkpoint from being written.
inline constexpr int kCheckpointLostExitCode = 70;

class Server final : public ServerPort, public PersistencePort {
 public:
  // `config` is loaded, and outlives the server.
  explicit Server(Config& config);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Empty, or why it cannot start.
  std::string start();
  // Blocks until it serves (true) or has ended (false).
  bool wait_until_ready();
  // Begins the orderly end; the second call changes nothing.
  void request_stop(ShutdownMode mode = ShutdownMode::kDefault);
  // Blocks until the end; the exit code: 0, 1 (cannot recover), 75 (the disk failed). A program
  // that has called exit_when_stuck() may end without it, with 70.
  int wait();
  // Why it ended by itself; empty if it was asked to.
  std::string failure() const;
  // How many changes would be lost if the process ended now: with `appendonly no` those since the
  // last checkpoint, where the end would make one.
  uint64_t unsaved_changes() const;
  // Called once by the control thread when all is over.
  void on_end(std::function<void()> listener) { on_end_ = std::move(listener); }
  // For a program that owns the process: a script that cannot be ended must not hold up its end.
  // What the script did is not in the journal, so nothing of it comes back.
  void exit_when_stuck() { exit_when_stuck_ = true; }
  // For a server without a directory; before start(). `dir` means nothing then.
  void keep_nothing() { keeps_nothing_ = true; }
  // 0: there is none.
  uint16_t port() const { return listener_.port(); }
  uint16_t tls_port() const { return tls_listener_.port(); }
  uint16_t http_port() const { return http_listener_.port(); }
  uint16_t http_tls_port() const { return http_tls_listener_.port(); }
  bool loading() const { return state_.loading.load(std::memory_order_acquire); }
  Engine& engine() { return *engine_; }

  // --- ServerPort ---
  void info(Bytes section, InfoWriter& out) override;
  std::vector<std::pair<std::string, std::string>> config_get(
      const std::vector<std::string>& patterns) override;
  std::string config_set(
      const std::vector<std::pair<std::string, std::string>>& parameters) override;
  std::string config_rewrite() override;
  bool is_secret(Bytes parameter) const override;
  std::string load_users() override;
  std::string save_users() override;
  void reset_stats() override;
  std::vector<ClientFacts> clients(const Client& asking) override;
  ClientFacts client(const Client& asking) override;
  size_t kill_clients(Client& asking,
                      const std::function<bool(const ClientFacts&)>& matches) override;
  bool unblock_client(uint64_t id, bool with_error) override;
  std::shared_ptr<ClientPort> client_port(uint64_t id) override;
  void pause_changed() override;
  void scripts_flushed() override;
  void users_changed() override;
  std::string checkpoint(bool wait) override;
  int64_t last_checkpoint_s() override;
  std::string shutdown(ShutdownMode mode, bool now, bool force, bool abort) override;
  int64_t unix_time_us() override;
  int64_t steady_time_us() override;
  void sleep_ms(int64_t duration_ms) override;
  uint64_t used_memory_bytes() override;
  bool purge_memory() override;
  std::string allocator_report() override;
  void poll_events() override;
  void log_warning(const std::string& message) override;

  // --- PersistencePort (net/server/server_storage.cc) ---
  Start start_checkpoint(Kind kind, bool may_wait) override;
  bool when_kept(std::function<void(const std::string& error)> then) override;
  bool is_journaling() const override;
  bool is_synced() const override;
  void when_synced(std::function<void(bool synced)> then) override;

 private:
  // --- Life (net/server/server.cc) ---
  std::string start_threads();
  void run_control();
  bool recover();
  void serve();
  void wait_for_end();
  void end_sessions();
  bool wait_for_threads(std::chrono::milliseconds patience, bool (IoThread::*done)() const);
  [[noreturn]] void exit_stuck();
  uint64_t changes_without_checkpoint() const;
  void end_storage();
  void on_journal_failed(const Status& status);
  void announce();
  bool is_supervised() const;
  void tell_supervisor(const std::string& state) const;
  void log_recovery(double seconds);
  bool on_loading_progress(const RecoveryProgress& progress);
  void sample();
  void adopt(int fd, Endpoints endpoints);
  std::string open_listeners(const Settings& settings);
  // Of CONFIG SET port: empty, or Redis's text.
  std::string listen_anew(const Settings& after);
  void add_guests(const Settings& settings, std::shared_ptr<const TlsClientContext> otlp_tls);
  std::array<Listener*, 4> listeners();
  Listener::Ready resp_ready();
  Listener::Ready http_ready();
  Listener::Refuse resp_refuse();
  Listener::Refuse http_refuse();
  Listener::Adopt resp_adopt();
  Listener::Adopt http_adopt();
  void finish(int exit_code, std::string failure);

  // --- Storage (net/server/server_storage.cc) ---
  static uint64_t hash_seed(const Settings& settings);
  void keep_seed(const Settings& settings) const;
  static bool keeps_data(const Settings& settings);
  bool load_data();
  CloseMode close_mode() const EXCLUDES(mutex_);
  StoreOptions store_options(const Settings& settings);
  void open_event_file(const Settings& settings);
  Result<std::unique_ptr<Store>> open_store(const Settings& settings, Replay& replay);
  // Where nothing was kept at the start: makes the store; by whoever may wait for it. Empty, or why
  // not.
  std::string make_store() EXCLUDES(making_store_);
  bool attach_store(Store& store);
  // Asks the control thread for it.
  void want_storage() EXCLUDES(mutex_);
  void make_wanted_storage();
  bool checkpoint_runs() const;
  Kind running_kind() const;
  void on_checkpoint();
  void appendonly_changed(bool on);
  void begin_switch() EXCLUDES(switch_mutex_);
  void look_at_switch() EXCLUDES(switch_mutex_);
  // `reason`: why it has failed, or empty. `back`: the setting becomes no again.
  void end_switch(const std::string& reason, bool back) EXCLUDES(switch_mutex_);

  // --- Settings (net/server/server_settings.cc) ---
  void apply_settings(const Settings& settings);
  // Of CONFIG SET: empty, or Redis's text; the log says more.
  std::string reload_tls(const Settings& settings);
  // Empty, or what is wrong with the ACL file or a user line.
  std::string load_users(const Settings& settings);
  std::string load_users_file(const std::string& path);
  void settings_changed(const Settings& before, const Settings& after);

  // --- Descriptors (net/server/server_files.cc) ---
  // Lowers maxclients and http-maxclients to what the system allows. Empty, or why there is no room
  // at all.
  std::string fit_connections();
  // Of CONFIG SET: empty, or Redis's text.
  std::string check_limits(const Settings& settings) const;
  std::vector<Strangers<Session>*> strangers();
  bool is_full() const;
  bool may_accept();
  bool may_accept_http();
  Listener::Refusal refuse(bool loopback);
  void relieve_files();
  size_t close_connections(size_t count);
  size_t close_idle(size_t count);

  // --- INFO (net/server/server_info.cc) ---
  void info_server(InfoWriter& out);
  void info_clients(InfoWriter& out);
  void info_memory(InfoWriter& out);
  void info_persistence(InfoWriter& out);
  void info_loading(InfoWriter& out);
  void info_journal(InfoWriter& out, const CheckpointStatus& checkpoint);
  void info_script_memory(InfoWriter& out);
  void info_stats(InfoWriter& out);
  void info_replication(InfoWriter& out);
  void info_cpu(InfoWriter& out);
  uint64_t sum_counters(std::atomic<uint64_t> IoThread::Counters::*counter);

  Config& config_;
  ServerState state_;
  std::unique_ptr<Engine> engine_;
  // Null: no port speaks TLS.
  std::unique_ptr<TlsService> tls_;
  // Before the threads that hold its connections; null: there is no HTTP.
  std::unique_ptr<HttpService> http_;
  std::vector<std::unique_ptr<IoThread>> io_threads_;
  std::unique_ptr<DueTimer> due_timer_;
  Listener listener_;
  Listener tls_listener_;
  Listener http_listener_;
  Listener http_tls_listener_;
  const std::shared_ptr<SpareFiles> spare_files_;
  // The control thread's: spare descriptors that were missing when it looked last, when it closes
  // further connections though that has not changed, and how many the log has not told of.
  size_t relief_missing_ = 0;
  int64_t relief_again_ms_ = 0;
  size_t relief_untold_ = 0;
  LogPace relief_in_log_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<EventFile> event_file_;  // null: events stay in memory
  // The checkpointer exists; commands may use store_ and event_file_.
  std::atomic<bool> store_ready_{false};
  bool keeps_nothing_ = false;
  Mutex making_store_;
  // For the control thread: a store is to be made, and a checkpoint written then.
  std::atomic<bool> storage_wanted_{false};
  std::atomic<bool> save_wanted_{false};
  std::atomic<bool> storage_failed_{false};  // the last attempt
  std::atomic<uint8_t> asked_kind_{0};       // of the running checkpoint, 1 + Kind; 0: nobody asked
  // From CONFIG SET appendonly yes to the checkpoint with which the journal begins to count.
  Mutex switch_mutex_;
  bool switching_ GUARDED_BY(switch_mutex_) = false;
  std::optional<uint64_t> switch_ticket_ GUARDED_BY(switch_mutex_);
  std::vector<std::function<void(const std::string&)>> switch_listeners_ GUARDED_BY(switch_mutex_);
  std::string switch_error_ GUARDED_BY(switch_mutex_);  // that nobody has heard of yet
  Thread control_;
  std::function<void()> on_end_;
  bool exit_when_stuck_ = false;
  const std::string run_id_;
  const int64_t started_ms_;         // unix time
  const int64_t started_steady_ms_;  // for durations

  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool ready_ GUARDED_BY(mutex_) = false;
  bool stop_requested_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  ShutdownMode stop_mode_ GUARDED_BY(mutex_) = ShutdownMode::kDefault;
  int exit_code_ GUARDED_BY(mutex_) = 0;
  std::string failure_ GUARDED_BY(mutex_);
  // The storage is being closed: what unsaved_changes() says from then on.
  bool closing_storage_ GUARDED_BY(mutex_) = false;
  uint64_t unsaved_at_end_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> journal_failed_{false};

  // Of recovery, for INFO.
  std::atomic<int64_t> loading_started_s_{0};
  std::atomic<uint64_t> loading_bytes_{0};
  std::atomic<uint64_t> loading_total_bytes_{0};
  int64_t progress_logged_ms_ = 0;
  std::atomic<uint64_t> recovered_keys_{0};
  // What was allocated before there was any data.
  std::atomic<uint64_t> startup_bytes_{0};

  // Sampled once a second by the control thread; INFO's instantaneous fields.
  struct Rates {
    std::atomic<uint64_t> operations{0};
    std::atomic<uint64_t> input_bytes{0};
    std::atomic<uint64_t> output_bytes{0};
  };
  Rates rates_;
  struct Totals {
    uint64_t operations = 0;
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
    int64_t at_ms = 0;
  };
  Totals totals();
  Totals last_totals_;
  // What CONFIG RESETSTAT subtracts from counters that only grow.
  Mutex stats_mutex_;
  Totals reset_totals_ GUARDED_BY(stats_mutex_);
  size_t next_thread_ = 0;
};

}  // namespace sluice
