#include "net/server/server_listeners.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace sluice {

namespace {

ListenOptions tcp_options(const Settings& settings, const std::vector<std::string>& bind,
                          int64_t port, bool tls) {
  ListenOptions options;
  options.bind = bind;
  options.tcp = port != 0;
  options.port = port == Settings::kPortAuto ? uint16_t{0} : static_cast<uint16_t>(port);
  options.backlog = static_cast<int>(settings.tcp_backlog);
  options.tls = tls;
  return options;
}

}  // namespace

ServerListeners::ServerListeners(ServerShared& shared, ConnectionLimit& limit)
    : shared_(shared),
      connection_limit_(limit),
      resp_(shared.state, resp_service()),
      resp_tls_(shared.state, resp_service()),
      http_(shared.state, http_service()),
      http_tls_(shared.state, http_service()),
      sentinel_(shared.state, sentinel_service()) {
  shared.state.listener = &resp_;
  shared.state.tls_listener = &resp_tls_;
}

Status ServerListeners::open(const Settings& settings) {
  const auto tcp = [&](const std::vector<std::string>& bind, int64_t port, bool tls) {
    return tcp_options(settings, bind, port, tls);
  };
  ListenOptions listen = tcp(settings.bind, settings.port, false);
  listen.unix_socket = settings.unixsocket;
  listen.unix_socket_mode = static_cast<unsigned>(settings.unixsocketperm);
  Status status = resp_.open(listen);
  if (!status.ok()) return status;
  status = resp_tls_.open(tcp(settings.bind, settings.tls_port, true));
  if (!status.ok()) return io_error(status.message() + " (tls-port)");
  status = http_.open(tcp(settings.http_bind, settings.http_port, false));
  if (!status.ok()) return io_error(status.message() + " (http-port; 0 turns HTTP off)");
  status = http_tls_.open(tcp(settings.http_bind, settings.http_tls_port, true));
  if (!status.ok()) return io_error(status.message() + " (http-tls-port)");
  status = sentinel_.open(tcp(settings.bind, settings.sentinel_port, false));
  return status.ok() ? status : io_error(status.message() + " (sentinel-port)");
}

void ServerListeners::start() {
  for (Listener* listener : all()) listener->start(*shared_.io_threads[0]);
}

void ServerListeners::stop() {
  for (Listener* listener : all()) listener->stop();
}

void ServerListeners::leave_thread() {
  for (Listener* listener : all()) listener->leave_thread();
}

// Called within CONFIG SET, on the I/O thread that runs it. If that is not the listeners' own
// thread, the old port is closed shortly after the reply.
Status ServerListeners::listen_anew(const Settings& after) {
  if (after.port == shared_.config.settings()->port) return {};
  auto fresh = std::make_shared<Listener>(shared_.state, resp_service());
  const Status status = fresh->open(tcp_options(after, after.bind, after.port, false));
  if (!status.ok()) {
    spdlog::warn("{}", status.message());
    return invalid("Unable to listen on this port. Check server logs.");
  }
  spdlog::info("Now accepting connections on port {} instead of port {}", fresh->port(),
               resp_.port());
  IoThread& owner = *shared_.io_threads[0];
  const auto move = [this, fresh, &owner] { resp_.take_over(*fresh, owner); };
  IoThread::current() == &owner ? move() : owner.post(move);
  return {};
}

Listener::Service ServerListeners::resp_service() {
  return {[this] { return connection_limit_.may_accept(); },
          [this](bool loopback) { return connection_limit_.refuse(loopback); },
          [this](int fd, Endpoints endpoints) { adopt(fd, std::move(endpoints)); }};
}

Listener::Service ServerListeners::http_service() {
  return {[this] { return connection_limit_.may_accept_http(); },
          [this](bool loopback) { return shared_.http->refusal(loopback); },
          [this](int fd, Endpoints endpoints) { shared_.http->adopt(fd, std::move(endpoints)); }};
}

Listener::Service ServerListeners::sentinel_service() {
  // Not protected-mode: it serves clients of other machines, and shows them addresses only.
  const auto refuse = [this](bool) {
    shared_.sentinel->make_room();
    return Listener::resp_refusal(shared_.state, true, false);
  };
  return {[] { return true; }, refuse,
          [this](int fd, const Endpoints& endpoints) { shared_.sentinel->adopt(fd, endpoints); }};
}

// Called on I/O thread 0: the thread with the fewest connections gets the next one.
void ServerListeners::adopt(int fd, Endpoints endpoints) {
  const auto& threads = shared_.io_threads;
  IoThread* chosen = nullptr;
  for (size_t i = 0; i < threads.size(); ++i) {
    IoThread* thread = threads[(next_thread_ + i) % threads.size()].get();
    if (chosen == nullptr || thread->sessions().count() < chosen->sessions().count()) {
      chosen = thread;
    }
  }
  shared_.state.connections_received.fetch_add(1, std::memory_order_relaxed);
  shared_.state.connected_clients.fetch_add(1, std::memory_order_relaxed);
  // During a burst the counts lag behind, so the search starts one thread further each time.
  next_thread_ = (next_thread_ + 1) % threads.size();
  chosen->adopt(fd, std::move(endpoints));
}

}  // namespace sluice
