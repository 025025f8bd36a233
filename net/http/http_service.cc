#include "net/http/http_service.h"

#include <algorithm>

#include "net/config/config.h"
#include "net/http/connection.h"
#include "net/http/problem.h"

namespace sluice {

namespace {

// An idle connection costs little, and saves its client a handshake.
constexpr int64_t kIdleFactor = 6;

std::string closing_text(const HttpResponse& response) {
  return head_text(response, false, false) + response.body;
}

// The host of a Host header, without its port.
Bytes host_of(Bytes header) {
  if (header.starts_with('[')) return header.substr(0, header.find(']') + 1);
  return header.substr(0, header.find(':'));
}

HttpLimits limits_of(const Settings& settings) {
  HttpLimits limits;
  limits.max_body_bytes = settings.http_max_body_bytes;
  limits.max_connections = static_cast<size_t>(settings.http_maxclients);
  limits.timeout_ms = settings.http_timeout_s * 1000;
  limits.idle_ms = limits.timeout_ms * kIdleFactor;
  return limits;
}

}  // namespace

HttpService::HttpService(ServerState& state, ServerPort& server, Config& config,
                         std::vector<Route> routes, CopyPort& copies, std::string replication)
    : state_(state),
      server_(server),
      config_(config),
      copies_(copies),
      replication_(std::move(replication)),
      routes_(std::move(routes)),
      sessions_(std::chrono::seconds(config.settings()->http_session_s)),
      tokens_(
          std::make_shared<const Tokens>(config.settings()->http_tokens, &sessions_, replication_)),
      limits_(limits_of(*config.settings())),
      hosts_(config.settings()->http_hosts),
      aliases_(config.settings()->http_aliases) {}

HttpService::~HttpService() = default;

void HttpService::join_threads(const std::vector<std::unique_ptr<IoThread>>& threads) {
  for (const auto& thread : threads) {
    auto keeper = std::make_unique<HttpThread>(*this, *thread);
    threads_.push_back(thread.get());
    keepers_.push_back(keeper.get());
    thread->add_guest(std::move(keeper));
  }
}

Listener::Refusal HttpService::refusal(bool loopback) {
  const bool crowded = !has_room();
  HttpResponse response;
  if (!tokens()->serves_others() && !loopback) {
    response = loopback_only();
  } else if (crowded) {
    response = problem(503, "TOOMANY", "There are too many connections.");
  } else {
    return {};
  }
  counters_.connections_rejected.fetch_add(1, std::memory_order_relaxed);
  return {closing_text(response), crowded};
}

void HttpService::adopt(int fd, Endpoints endpoints) {
  counters_.connections.fetch_add(1, std::memory_order_relaxed);
  counters_.connections_received.fetch_add(1, std::memory_order_relaxed);
  const size_t chosen = next_thread_;
  next_thread_ = (next_thread_ + 1) % threads_.size();
  threads_[chosen]->post([keeper = keepers_[chosen], fd, moved = std::move(endpoints)] {
    keeper->take_connection(fd, moved);
  });
}

bool HttpService::is_known_host(Bytes header, Bytes local) const {
  const Bytes host = host_of(header);
  for (const Bytes own : {Bytes("localhost"), Bytes("127.0.0.1"), Bytes("[::1]"), local}) {
    if (equals_ignore_case(host, own)) return true;
  }
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const std::string& name) { return equals_ignore_case(host, name); });
}

}  // namespace sluice
