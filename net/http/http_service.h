// HttpService: the HTTP side of one server: its routes, its tokens, its limits, and the connections
// on each I/O thread.
//
// Requests run on the I/O thread of their connection, through that thread's Execution, exactly as
// those of a RESP session do (net/io/engine_client.h).
//
// Threads: made before the I/O threads start; refusal() and adopt() on I/O thread 0; tokens any;
// the rest is constant or atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "net/config/settings.h"
#include "net/http/login_sessions.h"
#include "net/http/router.h"
#include "net/http/tokens.h"
#include "net/io/listener.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"
#include "net/io/strangers.h"

namespace sluice {

class Config;
class HttpConnection;
class IoThread;
class ServerPort;

struct HttpLimits {
  size_t max_head_bytes = 16U << 10;
  size_t max_target_bytes = 8U << 10;
  size_t max_body_bytes = 0;
  size_t max_connections = 0;
  int64_t timeout_ms = 0;  // of a request's arrival, and of the taking of its answer
  int64_t idle_ms = 0;     // between two requests
};

class HttpService {
 public:
  // All of them outlive it.
  HttpService(ServerState& state, ServerPort& server, Config& config, std::vector<Route> routes);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Before the threads start: gives each the keeper of its connections.
  void join_threads(const std::vector<std::unique_ptr<IoThread>>& threads);
  // What is told to a connection that may not come in.
  Listener::Refusal refusal(bool loopback);
  // Takes over a connected, non-blocking socket.
  void adopt(int fd, Endpoints endpoints);

  ServerState& state() { return state_; }
  ServerPort& server() { return server_; }
  Config& config() { return config_; }
  const std::vector<Route>& routes() const { return routes_; }
  // The present ones. Any thread.
  std::shared_ptr<const Tokens> tokens() const;
  // Others take their place. What a request that is being answered was granted by one that is none
  // any more ends at once: streams, long polls, bodies that are still to come. Any thread.
  void set_tokens(std::vector<TokenSetting> settings);
  // Likewise what the users of tokens may not do any more. Any thread.
  void users_changed();
  // Those who have logged in by name and password. Any thread.
  LoginSessions& sessions() { return sessions_; }
  const HttpLimits& limits() const { return limits_; }
  // Whether a connection may be taken now; if not, one that gives way is still being closed. On I/O
  // thread 0.
  bool may_accept();
  // Closes so many connections, in a while; how many there are for it. Any thread.
  size_t close_some(size_t count);
  // The queues for which the endpoints of older systems speak.
  const HttpAliases& aliases() const { return aliases_; }
  // Whether a Host header names this server; `local` is the connection's own end.
  bool is_known_host(Bytes host, Bytes local) const;

  struct Counters {
    std::atomic<uint64_t> connections{0};
    std::atomic<uint64_t> connections_received{0};
    std::atomic<uint64_t> connections_rejected{0};
    std::atomic<uint64_t> requests{0};
    std::atomic<uint64_t> timeouts{0};
  };
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }

 private:
  bool is_full() const;
  // Whether a further connection may come in: a stranger gives way where there are too many.
  bool has_room();
  std::vector<Strangers<HttpConnection>*> strangers();

  ServerState& state_;
  ServerPort& server_;
  Config& config_;
  const std::vector<Route> routes_;
  LoginSessions sessions_;
  mutable Mutex tokens_mutex_;
  std::shared_ptr<const Tokens> tokens_ GUARDED_BY(tokens_mutex_);
  HttpLimits limits_;
  const std::vector<std::string> hosts_;
  const HttpAliases aliases_;
  Counters counters_;
  std::vector<IoThread*> threads_;
  std::vector<class HttpThread*> keepers_;
  size_t next_thread_ = 0;
};

}  // namespace sluice
