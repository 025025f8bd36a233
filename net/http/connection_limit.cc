// What happens when the HTTP side has reached its maximum number of connections (http-maxclients).
// For RESP, net/server/connection_limit.h decides.
#include "net/http/connection.h"

#include <algorithm>

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
    std::vector<std::shared_ptr<HttpConnection>> all(connections_.begin(), connections_.end());
    const auto chosen = all.begin() + static_cast<ptrdiff_t>(std::min(count, all.size()));
    std::partial_sort(all.begin(), chosen, all.end(), [](const auto& a, const auto& b) {
      return a->idle_since_ms() < b->idle_since_ms();
    });
    std::for_each(all.begin(), chosen, [](const auto& connection) { connection->close(); });
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
