// ServerListeners: the ports of a server: the Redis protocol and HTTP, each with and without TLS,
// that of Sentinel, and the Unix socket. They accept on I/O thread 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/status.h"
#include "net/io/listener.h"
#include "net/server/connection_limit.h"
#include "net/server/server_shared.h"

namespace sluice {

class ServerListeners {
 public:
  ServerListeners(ServerShared& shared, ConnectionLimit& limit);

  // Called before the I/O threads start.
  Status open(const Settings& settings);
  // Called on I/O thread 0.
  void start();
  void stop();
  // Called before the I/O threads are destroyed.
  void leave_thread();
  // For CONFIG SET port, with Redis's error.
  Status listen_anew(const Settings& after);

  // 0: none.
  uint16_t port() const { return resp_.port(); }
  uint16_t tls_port() const { return resp_tls_.port(); }
  uint16_t http_port() const { return http_.port(); }
  uint16_t http_tls_port() const { return http_tls_.port(); }
  uint16_t sentinel_port() const { return sentinel_.port(); }

 private:
  std::array<Listener*, 5> all() { return {&resp_, &resp_tls_, &http_, &http_tls_, &sentinel_}; }
  Listener::Service resp_service();
  Listener::Service http_service();
  Listener::Service sentinel_service();
  void adopt(int fd, Endpoints endpoints);

  ServerShared& shared_;
  ConnectionLimit& connection_limit_;
  Listener resp_;
  Listener resp_tls_;
  Listener http_;
  Listener http_tls_;
  Listener sentinel_;
  size_t next_thread_ = 0;
};

}  // namespace sluice
