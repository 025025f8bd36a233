#include "net/io/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/access/acl.h"
#include "net/io/io_thread.h"
#include "net/process/clocks.h"

namespace sluice {

namespace {

using asio::ip::tcp;

constexpr int kMaxAcceptsPerTurn = 1000;  // as Redis
constexpr int kFreePortAttempts = 20;
// Delay when there was no descriptor for a connection / when others must be closed first.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);
constexpr auto kReadyRetry = std::chrono::milliseconds(5);

constexpr Bytes kTooManyClients = "-ERR max number of clients reached\r\n";
// Redis's text, which scripts and people recognise.
constexpr Bytes kProtectedMode =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. If you want to connect from external computers to Redis you may adopt one of the "
    "following solutions: 1) Just disable protected mode sending the command 'CONFIG SET "
    "protected-mode no' from the loopback interface by connecting to Redis from the same host the "
    "server is running, however MAKE SURE Redis is not publicly accessible from internet if you do "
    "so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable "
    "the protected mode by editing the Redis configuration file, and setting the protected mode "
    "option to 'no', and then restarting the server. 3) If you started the server manually just "
    "for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication "
    "password. NOTE: You only need to do one of the above things in order for the server to start "
    "accepting connections from the outside.\r\n";

Status system_error(const std::string& what) {
  return io_error(what + ": " + std::strerror(errno));
}

std::string address_text(const tcp::endpoint& endpoint) {
  const std::string port = ':' + std::to_string(endpoint.port());
  if (!endpoint.address().is_v6()) return endpoint.address().to_string() + port;
  asio::ip::address_v6 address = endpoint.address().to_v6();
  address.scope_id(0);
  return '[' + address.to_string() + ']' + port;
}

bool is_loopback(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.is_loopback();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
}

// The local end of a socket.
tcp::endpoint local_endpoint(int fd) {
  tcp::endpoint endpoint;
  auto length = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(fd, endpoint.data(), &length) == 0) endpoint.resize(length);
  return endpoint;
}

void set_option(int fd, int level, int name, int value) {
  // A failure leaves the socket usable, so it is ignored.
  static_cast<void>(::setsockopt(fd, level, name, &value, sizeof(value)));
}

void set_keepalive(int fd, int interval_s) {
  if (interval_s == 0) return;
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(interval_s / 3, 1));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void turn_away(int fd, Bytes reason) {
  // One attempt: the buffer of a new socket has room.
  if (!reason.empty())
    static_cast<void>(::send(fd, reason.data(), reason.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  ::close(fd);
}

}  // namespace

Listener::Door::Door(IoThread& thread, int fd, int door_family)
    : descriptor(thread.executor(), fd), retry_timer(thread.executor()), family(door_family) {}

Listener::~Listener() { close_all(); }

void Listener::close_all() {
  for (const Opened& socket : opened_) ::close(socket.fd);
  opened_.clear();
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

Status Listener::open(const ListenOptions& options) {
  tls_ = options.tls;
  Status status;
  const int attempts = options.port == 0 ? kFreePortAttempts : 1;
  // A port that is free on the first address may be taken on the second: then another one is tried.
  for (int i = 0; options.tcp && i < attempts; ++i) {
    status = open_tcp(options, options.port);
    if (status.ok()) break;
    close_all();
  }
  if (status.ok() && !options.unix_socket.empty()) status = open_unix(options);
  if (!status.ok()) close_all();
  return status;
}

Status Listener::open_tcp(const ListenOptions& options, uint16_t port) {
  port_ = port;
  for (const std::string& bind : options.bind) {
    const bool optional = !bind.empty() && bind[0] == '-';
    const std::string address = optional ? bind.substr(1) : bind;
    const size_t before = opened_.size();
    const Status status = open_address(address, port_, options.backlog);
    if (!status.ok()) {
      const bool absent = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT ||
                          errno == EPROTONOSUPPORT || errno == ENOPROTOOPT;
      if (optional && absent) continue;
      return io_error("Could not create server TCP listening socket " + address + ":" +
                      std::to_string(port_) + ": " + status.message());
    }
    if (port_ == 0) port_ = local_endpoint(opened_[before].fd).port();
  }
  if (opened_.empty()) return io_error("no address of 'bind' exists on this machine");
  return {};
}

Status Listener::open_address(const std::string& address, uint16_t port, int backlog) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const bool every6 = address == "::*" || address == "::";
  const bool every4 = address == "*" || address == "0.0.0.0";
  hints.ai_family = every6 ? AF_INET6 : every4 ? AF_INET : AF_UNSPEC;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(every4 || every6 ? nullptr : address.c_str(),
                                   std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    errno = 0;
    return io_error(::gai_strerror(status));
  }
  Status failure = io_error("no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      failure = io_error(std::strerror(errno));
      continue;
    }
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (at->ai_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, backlog) == 0) {
      opened_.push_back({fd, at->ai_family});
      ::freeaddrinfo(found);
      return {};
    }
    failure = io_error(std::strerror(errno));
    const int reason = errno;
    ::close(fd);
    errno = reason;
  }
  const int reason = errno;
  ::freeaddrinfo(found);
  errno = reason;
  return failure;
}

Status Listener::open_unix(const ListenOptions& options) {
  const std::string& path = options.unix_socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return invalid("unixsocket: the path is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("Could not create a Unix socket");
  // A socket left by a killed server is removed; anything else at this path stays.
  struct stat present {};
  if (::lstat(path.c_str(), &present) == 0 && S_ISSOCK(present.st_mode)) ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd, options.backlog) != 0) {
    Status failure = system_error("Could not open Unix socket " + path);
    ::close(fd);
    return failure;
  }
  opened_.push_back({fd, AF_UNIX});
  unix_path_ = path;
  if (options.unix_socket_mode != 0 && ::chmod(path.c_str(), options.unix_socket_mode) != 0) {
    return system_error("Could not set the mode of " + path);
  }
  return {};
}

// --- Accepting ---

Listener::Refusal Listener::resp_refusal(ServerState& state, bool loopback, bool full) {
  const ServerLimits& limits = state.limits;
  Refusal refusal;
  if (full) {
    refusal = {std::string(kTooManyClients), true};
  } else if (!loopback && limits.protected_mode.load(std::memory_order_relaxed) &&
             state.engine->acl().user_at_connect() != nullptr) {
    refusal.text = kProtectedMode;
  }
  if (!refusal.text.empty()) state.connections_rejected.fetch_add(1, std::memory_order_relaxed);
  return refusal;
}

void Listener::start(IoThread& thread) {
  for (const Opened& socket : opened_) {
    doors_.push_back(std::make_unique<Door>(thread, socket.fd, socket.family));
    wait(*doors_.back());
  }
  opened_.clear();
}

void Listener::take_over(Listener& fresh, IoThread& thread) {
  if (stopped_) return;  // `fresh` closes its sockets.
  for (auto& door : doors_) {
    if (door->family == AF_UNIX) continue;
    error_code ignored;
    door->descriptor.close(ignored);
    door->retry_timer.cancel();
    left_doors_.push_back(std::move(door));
  }
  std::erase(doors_, nullptr);
  port_.store(fresh.port());
  opened_.swap(fresh.opened_);
  start(thread);
}

void Listener::stop() {
  stopped_ = true;
  for (const auto& door : doors_) {
    error_code ignored;
    door->descriptor.close(ignored);
    door->retry_timer.cancel();
  }
  close_all();
}

void Listener::leave_thread() {
  stop();
  doors_.clear();
  left_doors_.clear();
}

void Listener::wait(Door& door) {
  door.descriptor.async_wait(Descriptor::wait_read, [this, &door](const error_code& error) {
    if (error || !door.descriptor.is_open()) return;
    const Accepted accepted = accept_some(door);
    if (accepted == Accepted::kAll) {
      wait(door);
      return;
    }
    // The connection stays in the queue, so waiting for it at once would spin.
    door.retry_timer.expires_after(accepted == Accepted::kFailed ? kAcceptRetry : kReadyRetry);
    door.retry_timer.async_wait([this, &door](const error_code& late) {
      if (!late && door.descriptor.is_open()) wait(door);
    });
  });
}

Listener::Accepted Listener::accept_some(Door& door) {
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    if (!service_.ready()) return Accepted::kNotReady;
    tcp::endpoint peer;
    auto length = static_cast<socklen_t>(peer.capacity());
    const int fd = ::accept4(door.descriptor.native_handle(), peer.data(), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Accepted::kAll;
      const int reason = errno;
      if (const auto others = failures_in_log_.next(Clocks::steady_ms())) {
        spdlog::warn("Error accepting a client connection: {}{}", std::strerror(reason), *others);
      }
      return Accepted::kFailed;
    }
    if (door.family != AF_UNIX) peer.resize(length);
    take(fd, door.family, peer);
  }
  return Accepted::kAll;
}

void Listener::take(int fd, int family, const tcp::endpoint& peer) {
  Refusal refusal = service_.refuse(family == AF_UNIX || is_loopback(peer.address()));
  if (!refusal.text.empty() && (!tls_ || refusal.crowded)) {
    return turn_away(fd, tls_ ? Bytes() : Bytes(refusal.text));
  }
  Endpoints endpoints;
  endpoints.fd = fd;
  endpoints.tls = tls_;
  endpoints.refusal = std::move(refusal.text);
  if (family == AF_UNIX) {
    endpoints.unix_socket = true;
    endpoints.address = unix_path_ + ":0";
    endpoints.local_address = endpoints.address;
  } else {
    endpoints.address = address_text(peer);
    endpoints.local_address = address_text(local_endpoint(fd));
  }
  welcome(fd, family, std::move(endpoints));
}

void Listener::welcome(int fd, int family, Endpoints endpoints) {
  if (family != AF_UNIX) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_keepalive(fd, state_.limits.tcp_keepalive_s.load(std::memory_order_relaxed));
  }
  service_.adopt(fd, std::move(endpoints));
}

}  // namespace sluice
