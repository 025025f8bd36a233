// ServerShared: shared by the parts of a server: the configuration, the engine, the I/O threads and
// the services on them.
//
// Threads: set by Server::start() before the I/O threads run, and constant afterwards, except
// atomics and members that state otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/execution/engine.h"
#include "engine/ports/group_port.h"
#include "net/admin/history_keeper.h"
#include "net/config/config.h"
#include "net/http/http_service.h"
#include "net/io/io_thread.h"
#include "net/io/server_state.h"
#include "net/sentinel/sentinel_service.h"
#include "net/tls/tls_service.h"

namespace sluice {

struct ServerShared {
  explicit ServerShared(Config& from);

  Config& config;
  ServerState state;
  std::unique_ptr<Engine> engine;
  // Null if no port uses TLS.
  std::unique_ptr<TlsService> tls;
  // Destroyed after the threads that hold its connections; null if there is no HTTP.
  std::unique_ptr<HttpService> http;
  // Null with `journal local`.
  GroupPort* group = nullptr;
  // A guest of I/O thread 0; null without `sentinel-port`.
  SentinelService* sentinel = nullptr;
  // Filled by I/O thread 0; null if there is no HTTP.
  std::unique_ptr<HistoryKeeper> history;
  std::vector<std::unique_ptr<IoThread>> io_threads;
  const std::string run_id;
  const int64_t started_ms;         // unix time
  const int64_t started_steady_ms;  // for durations
  // Memory allocated before any data was loaded.
  std::atomic<uint64_t> startup_bytes{0};
};

}  // namespace sluice
