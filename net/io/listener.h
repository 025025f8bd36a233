// Listener: the listening sockets of one protocol: TCP on each bound address, and a Unix socket.
//
// Opened before any thread runs. It then belongs to I/O thread 0, which accepts connections and
// passes each to the I/O thread that the server chooses. Rejected connections get the reason and
// are closed here.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/log_pace.h"
#include "net/io/asio_types.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"

namespace sluice {

class IoThread;

struct ListenOptions {
  // A leading '-': skip the address if it is not available. "*": all IPv4 addresses; "::*": all
  // IPv6.
  std::vector<std::string> bind;
  bool tcp = true;
  // 0: any free port, the same for each address.
  uint16_t port = 0;
  int backlog = 511;
  bool tls = false;
  std::string unix_socket;
  unsigned unix_socket_mode = 0;  // 0: from the umask
};

class Listener {
 public:
  // The text sent to a connection before it is closed; empty: it is accepted. Over TLS it is sent
  // after the handshake, unless there is no room for the connection until then.
  struct Refusal {
    std::string text;
    bool crowded = false;
  };
  // Called on I/O thread 0 only.
  struct Service {
    // Whether a connection may be accepted now; otherwise it stays in the kernel's queue.
    std::function<bool()> ready;
    std::function<Refusal(bool loopback)> refuse;
    // Passes a connection on.
    std::function<void(int fd, Endpoints endpoints)> adopt;
  };

  Listener(ServerState& state, Service service) : state_(state), service_(std::move(service)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Opens all sockets, or none.
  Status open(const ListenOptions& options);
  // The texts for RESP clients: protected mode, and maxclients.
  static Refusal resp_refusal(ServerState& state, bool loopback, bool full);
  // The TCP port in use; 0 without one.
  uint16_t port() const { return port_.load(std::memory_order_relaxed); }

  // Called on I/O thread 0.
  void start(IoThread& thread);
  // Replaces the own TCP sockets by those of `fresh`, which must be open and not started; the Unix
  // socket and all connections stay. After stop() it opens nothing. Called on I/O thread 0, which
  // is `thread`.
  void take_over(Listener& fresh, IoThread& thread);
  // Accepts no more connections and removes the Unix socket. On I/O thread 0, or after it has
  // ended.
  void stop();
  // Called after the I/O threads have ended, and before they are destroyed.
  void leave_thread();

 private:
  struct Door {
    Door(IoThread& thread, int fd, int door_family);
    Descriptor descriptor;
    SteadyTimer retry_timer;
    int family;
  };

  Status open_tcp(const ListenOptions& options, uint16_t port);
  Status open_address(const std::string& address, uint16_t port, int backlog);
  Status open_unix(const ListenOptions& options);
  void close_all();
  void wait(Door& door);
  enum class Accepted : uint8_t { kAll, kNotReady, kFailed };
  Accepted accept_some(Door& door);
  void take(int fd, int family, const asio::ip::tcp::endpoint& peer);
  void welcome(int fd, int family, Endpoints endpoints);

  struct Opened {
    int fd;
    int family;
  };

  ServerState& state_;
  Service service_;
  std::vector<Opened> opened_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Door>> left_doors_;  // closed; handlers may still refer to them
  std::string unix_path_;
  std::atomic<uint16_t> port_{0};  // readable by any thread
  bool tls_ = false;
  bool stopped_ = false;  // for good
  LogPace failures_in_log_;
};

}  // namespace sluice
