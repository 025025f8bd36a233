#include "net/io/asio_handlers.h"

namespace sluice {

namespace {

// Limits for each turn: this many handlers, and none after this time. A handler may be an HTTP
// request that takes milliseconds, and the sockets wait for all of them.
constexpr int kMaxHandlersPerTurn = 64;
constexpr auto kMaxTime = std::chrono::microseconds(500);
constexpr int kSpareWork = 1 << 16;

}  // namespace

AsioHandlers::AsioHandlers()
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), work_(context_.get_executor()) {
  // A handler posted from within another one is counted when that one ends. If a nested poll runs
  // it earlier, the count is too low for a while, and at zero the context would stop.
  for (int i = 0; i < kSpareWork; ++i) context_.get_executor().on_work_started();
}

void AsioHandlers::run() {
  using std::chrono::steady_clock;
  if (!expected_) return;
  const auto end = steady_clock::now() + kMaxTime;
  for (int i = 0; i < kMaxHandlersPerTurn; ++i) {
    expected_ = context_.poll_one() != 0;
    if (!expected_ || steady_clock::now() >= end) return;
  }
}

void AsioHandlers::run_all() {
  while (context_.poll_one() != 0) {
  }
}

}  // namespace sluice
