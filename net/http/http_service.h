// HttpService: the HTTP side of one server: routes, tokens, limits, and the connections on each I/O
// thread.
//
// Requests run on the I/O thread of their connection, through that thread's Execution, exactly like
// those of a RESP session (net/io/engine_client.h).
//
// Threads: created before the I/O threads start. refusal() and adopt() are called on I/O thread 0;
// the token functions by any thread; the rest is constant or atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "net/config/settings.h"
#include "net/http/change_log.h"
#include "net/http/login_sessions.h"
#include "net/http/router.h"
#include "net/http/tokens.h"
#include "net/io/listener.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"
#include "net/io/strangers.h"

namespace sluice {

class Config;
class CopyPort;
class HttpConnection;
class IoThread;
class ServerPort;

struct HttpLimits {
  size_t max_head_bytes = 16U << 10;
  size_t max_target_bytes = 8U << 10;
  size_t max_body_bytes = 0;
  size_t max_connections = 0;
  int64_t timeout_ms = 0;  // for a request to arrive, and for its response to be read
  int64_t idle_ms = 0;     // between two requests
};

class HttpService {
 public:
  // All arguments must outlive this object. `replication`: as of Tokens.
  HttpService(ServerState& state, ServerPort& server, Config& config, std::vector<Route> routes,
              CopyPort& copies, std::string replication);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Creates the HttpThread of each I/O thread. Called before the threads start.
  void join_threads(const std::vector<std::unique_ptr<IoThread>>& threads);
  // The response to a connection that is rejected.
  Listener::Refusal refusal(bool loopback);
  // Takes ownership of a connected, non-blocking socket.
  void adopt(int fd, Endpoints endpoints);

  ServerState& state() { return state_; }
  ServerPort& server() { return server_; }
  Config& config() { return config_; }
  CopyPort& copies() { return copies_; }
  const std::vector<Route>& routes() const { return routes_; }
  // The current tokens. Any thread.
  std::shared_ptr<const Tokens> tokens() const;
  // Replaces the tokens. Requests in progress that a revoked token was granted end at once:
  // streams, long polls, bodies that are being received. Any thread.
  void set_tokens(std::vector<TokenSetting> settings);
  // Likewise ends requests that the users of tokens are no longer allowed. Any thread.
  void users_changed();
  // Sessions of users who logged in by name and password. Any thread.
  LoginSessions& sessions() { return sessions_; }
  // Any thread.
  ChangeLog& changes() { return changes_; }
  const HttpLimits& limits() const { return limits_; }
  // Whether a connection may be accepted now. If not, one that was told to make room is still being
  // closed. Called on I/O thread 0.
  bool may_accept();
  // Asks this many connections to close, and returns how many there are to choose from. Any thread.
  size_t close_some(size_t count);
  // The queues served by the endpoints of older systems.
  const HttpAliases& aliases() const { return aliases_; }
  // Whether a Host header names this server. `local` is the local address of the connection.
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
  // Whether there is room for another connection. If there are too many, a stranger is closed.
  bool has_room();
  std::vector<Strangers<HttpConnection>*> strangers();

  ServerState& state_;
  ServerPort& server_;
  Config& config_;
  CopyPort& copies_;
  const std::string replication_;
  const std::vector<Route> routes_;
  LoginSessions sessions_;
  ChangeLog changes_;
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
