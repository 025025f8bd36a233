// Server: a complete server in one object: listening sockets, I/O threads, engine, storage. Created
// by the program (tools/server_main.cc) and by EmbeddedServer.
//
// Life: start() opens the sockets and starts the threads. A control thread recovers the data
// (clients get -LOADING in the meantime), then waits for request_stop() or a failure of storage,
// and shuts everything down in order. wait() joins it and returns the exit code for a program.
//
// Threads: start, wait and the destructor by one thread; the rest by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/base/thread.h"
#include "net/io/due_timer.h"
#include "net/server/connection_limit.h"
#include "net/server/loading_progress.h"
#include "net/server/server_commands.h"
#include "net/server/server_copies.h"
#include "net/server/server_group.h"
#include "net/server/server_info.h"
#include "net/server/server_life.h"
#include "net/server/server_listeners.h"
#include "net/server/server_shared.h"
#include "net/server/server_store.h"
#include "net/server/traffic_stats.h"
#include "net/tls/tls_client.h"

namespace sluice {

class Server {
 public:
  // `config` must be loaded, and outlive the server.
  explicit Server(Config& config);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status start();
  // Blocks until the server is ready (true) or has ended (false).
  bool wait_until_ready() { return life_.wait_until_ready(); }
  // Starts an orderly shutdown; further calls have no effect.
  void request_stop(ShutdownMode mode = ShutdownMode::kDefault) { life_.request_stop(mode); }
  // Blocks until the end. Returns the exit code: 0, 1 (cannot recover), 75 (the disk failed), 76
  // (another node leads the group, or has been given it: start again). After
  // exit_when_stuck() the process may instead exit directly, with 70.
  int wait();
  // Why the server ended by itself; empty if it was asked to.
  std::string failure() const { return life_.failure(); }
  // The number of changes that would be lost if the process ended now: with `appendonly no` those
  // since the last checkpoint, if a shutdown would make one.
  uint64_t unsaved_changes() const { return store_.unsaved_changes(); }
  // Called once by the control thread at the end.
  void on_end(std::function<void()> listener) { on_end_ = std::move(listener); }
  // For a program that owns the process: a script that cannot be stopped must not delay its end.
  // The script's changes are not in the journal, so none of them returns.
  void exit_when_stuck() { exit_when_stuck_ = true; }
  // The directory's data are dropped for a copy of another node's; call before start(), which
  // refuses it outside of a group.
  void load_anew() { anew_ = true; }
  // For a server without a directory; call before start(). `dir` is then ignored.
  void keep_nothing() { store_.keep_nothing(); }
  // The server's ports.
  const ServerListeners& listeners() const { return listeners_; }
  bool loading() const { return shared_.state.loading.load(std::memory_order_acquire); }
  Engine& engine() { return *shared_.engine; }

 private:
  Status prepare(const Settings& settings);
  void make_threads(const Settings& settings);
  void add_guests(const Settings& settings);
  Status start_threads();
  Status check_limits(const Settings& after) const;
  Status reload_tls(const Settings& after);
  void settings_changed(const Settings& before, const Settings& after);

  // --- The control thread ---
  void run_control();
  bool recover();
  void serve();
  void announce();
  void wait_for_end();
  void end_sessions();
  bool wait_for_threads(int64_t looks, bool (IoThread::*done)() const);
  bool stop_threads();
  void join_threads();
  [[noreturn]] void exit_stuck();

  ServerShared shared_;
  ServerLife life_;
  LoadingProgress loading_;
  ConnectionLimit connection_limit_;
  std::unique_ptr<ServerGroup> group_;  // null with `journal local`; outlives the store's journal
  ServerStore store_;
  ServerCopies copies_;
  ServerListeners listeners_;
  TrafficStats traffic_;
  ServerInfo info_;
  ServerCommands commands_;
  std::shared_ptr<const TlsClientContext> otlp_tls_;
  std::unique_ptr<DueTimer> due_timer_;
  Thread control_;
  std::function<void()> on_end_;
  bool exit_when_stuck_ = false;
  bool anew_ = false;
  std::string replication_token_;  // empty: none
};

}  // namespace sluice
