#include "net/io/housekeeping.h"

#include <chrono>

#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/io/strangers.h"

namespace sluice {

namespace {
constexpr auto kInterval = std::chrono::seconds(1);
}  // namespace

Housekeeping::Housekeeping(IoThread& thread) : thread_(thread), timer_(thread.executor()) {}

void Housekeeping::need() {
  if (armed_) return;
  armed_ = true;
  timer_.expires_after(kInterval);
  timer_.async_wait([this](const error_code& error) {
    if (!error) run();
  });
}

void Housekeeping::run() {
  armed_ = false;
  if (thread_.levels().nested()) return need();
  thread_.clock().read();  // the end of a session may change data
  const int64_t now_ms = thread_.clock().steady_ms();
  thread_.sessions().for_each([&](Session& session) { session.check_time_limits(now_ms); });
  Strangers<Session>& strangers = thread_.strangers();
  if (strangers.empty()) return;
  need();
  const ServerState& state = thread_.state();
  const uint64_t half = state.limits.max_clients.load(std::memory_order_relaxed) / 2;
  strangers.close_silent(kStrangerPatienceMs, [&state, half] {
    return state.connected_clients.load(std::memory_order_relaxed) > half;
  });
}

}  // namespace sluice
