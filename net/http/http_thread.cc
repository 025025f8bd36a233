// The HTTP connections of an I/O thread.
#include <unistd.h>

#include <utility>

#include "net/http/connection.h"
#include "net/process/clocks.h"

namespace sluice {

HttpThread::HttpThread(HttpService& service, IoThread& thread)
    : service_(service),
      thread_(thread),
      budget_(&Clocks::steady_us, [&thread] { return thread.sockets().poller().idle().count(); }),
      strangers_(thread) {}

void HttpThread::take_connection(int fd, Endpoints endpoints) {
  HttpService::Counters& counters = service_.counters();
  if (stopping_) {
    ::close(fd);
    counters.connections.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  auto connection = std::make_shared<HttpConnection>(*this, fd, std::move(endpoints));
  connections_.insert(connection);
  thread_.guest_connections.store(connections_.size(), std::memory_order_release);
  connection->start();
}

void HttpThread::remove(const std::shared_ptr<HttpConnection>& connection) {
  connections_.erase(connection);
  thread_.guest_connections.store(connections_.size(), std::memory_order_release);
  service_.counters().connections.fetch_sub(1, std::memory_order_relaxed);
}

void HttpThread::begin_stop() {
  stopping_ = true;
  const auto connections = connections_;
  for (const auto& connection : connections) connection->begin_stop();
}

void HttpThread::close_all() {
  stopping_ = true;
  const auto connections = connections_;
  for (const auto& connection : connections) connection->close();
}

}  // namespace sluice
