// What happens when the HTTP side has reached its maximum number of connections (http-maxclients).
// For RESP, net/server/connection_limit.h decides.
#include "net/http/connection.h"

namespace sluice {

bool HttpService::is_full() const {
  return counters_.connections.load(std::memory_order_relaxed) >= limits_.max_connections;
}

std::vector<Strangers<HttpConnection>*> HttpService::strangers() {
  std::vector<Strangers<HttpConnection>*> all;
  for (HttpThread* keeper : keepers_) all.push_back(&keeper->strangers());
  return all;
}

bool HttpService::may_accept() { return !is_full() || find_way(strangers()) != Way::kLater; }

bool HttpService::has_room() {
  return !is_full() || make_room(strangers(), counters_.connections, limits_.max_connections);
}

size_t HttpService::close_some(size_t count) {
  const size_t each = (count + keepers_.size() - 1) / keepers_.size();
  for (size_t i = 0; i < keepers_.size(); ++i) {
    threads_[i]->post([keeper = keepers_[i], each] { keeper->close_some(each); });
  }
  return std::min<size_t>(count, counters_.connections.load(std::memory_order_relaxed));
}

void HttpThread::close_some(size_t count) {
  thread_.levels().run_outermost([this, count] {
    for (size_t i = 0; i < count && !connections_.empty(); ++i) (*connections_.begin())->close();
  });
}

// How long a connection may be idle before a request.
int64_t HttpConnection::patience_ms() {
  const HttpLimits& limits = service().limits();
  const bool crowded =
      service().counters().connections.load(std::memory_order_relaxed) > limits.max_connections / 2;
  const bool is_known = known_ || !service().tokens()->serves_others();
  return crowded && !is_known ? std::min(limits.idle_ms, kStrangerPatienceMs) : limits.idle_ms;
}

}  // namespace sluice
