// Listener: the listening sockets of one protocol: TCP on each bound address, and a Unix socket.
//
// Opened before any thread runs; then it belongs to I/O thread 0, which accepts and hands each
// connection to the I/O thread that the server chooses. What may not come in is told why and closed
// here.
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
  // A leading '-': not being available is no error. "*": every address; "::*": every one of IPv6.
  std::vector<std::string> bind;
  bool tcp = true;
  // 0: any free one, the same for each address.
  uint16_t port = 0;
  int backlog = 511;
  bool tls = false;
  std::string unix_socket;
  unsigned unix_socket_mode = 0;  // 0: as the umask says
};

class Listener {
 public:
  // What a connection is told before it is closed; an empty text: it may come in. Over TLS it is
  // told after the handshake, unless there is no room for it until then.
  struct Refusal {
    std::string text;
    bool crowded = false;
  };
  // All are called on I/O thread 0 only.
  // Whether a connection may be taken now; if not, it waits with the kernel.
  using Ready = std::function<bool()>;
  using Refuse = std::function<Refusal(bool loopback)>;
  // Hands a connection over.
  using Adopt = std::function<void(int fd, Endpoints endpoints)>;

  Listener(ServerState& state, Ready ready, Refuse refuse, Adopt adopt)
      : state_(state),
        ready_(std::move(ready)),
        refuse_(std::move(refuse)),
        adopt_(std::move(adopt)) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Empty, or why not all could be opened (then none is).
  std::string open(const ListenOptions& options);
  // What RESP clients are told: protected mode, and maxclients.
  static Refusal resp_refusal(ServerState& state, bool loopback, bool full);
  // The TCP port in use; 0 without one.
  uint16_t port() const { return port_.load(std::memory_order_relaxed); }

  // On I/O thread 0.
  void start(IoThread& thread);
  // The TCP sockets of `fresh`, which is open and not started, take the place of its own; the Unix
  // socket and all connections stay. On I/O thread 0, which is `thread`.
  void take_over(Listener& fresh, IoThread& thread);
  // No more connections; removes the Unix socket. On I/O thread 0, or when that has ended.
  void stop();
  // Before the I/O threads are destroyed, and after they have ended.
  void leave_thread();

 private:
  struct Door {
    Door(IoThread& thread, int fd, int door_family);
    Descriptor descriptor;
    SteadyTimer retry_timer;
    int family;
  };

  std::string open_tcp(const ListenOptions& options, uint16_t port);
  std::string open_address(const std::string& address, uint16_t port, int backlog);
  std::string open_unix(const ListenOptions& options);
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
  Ready ready_;
  Refuse refuse_;
  Adopt adopt_;
  std::vector<Opened> opened_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Door>> left_doors_;  // closed; handlers may still name them
  std::string unix_path_;
  std::atomic<uint16_t> port_{0};  // told to any thread
  bool tls_ = false;
  LogPace failures_in_log_;
};

}  // namespace sluice
