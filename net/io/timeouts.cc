#include "net/io/timeouts.h"

#include <algorithm>
#include <chrono>

#include "net/io/io_thread.h"
#include "net/io/session.h"

namespace sluice {

namespace {

constexpr size_t kMaxTimeoutsPerTurn = 256;
// Longer waits would overflow the clock.
constexpr int64_t kMaxTimeoutMs = 86'400'000;

}  // namespace

Timeouts::Timeouts(IoThread& thread) : thread_(thread), timer_(thread.executor()) {}

void Timeouts::add(int64_t at_ms, Session& session) {
  entries_.emplace(at_ms, &session);
  thread_.state().timed_clients.fetch_add(1, std::memory_order_relaxed);
  if (at_ms < armed_ms_) arm();
}

void Timeouts::remove(int64_t at_ms, Session& session) {
  if (entries_.erase({at_ms, &session}) == 0) return;
  thread_.state().timed_clients.fetch_sub(1, std::memory_order_relaxed);
}

void Timeouts::arm() {
  armed_ms_ = entries_.empty() ? kNeverMs : entries_.begin()->first;
  if (entries_.empty()) return;
  const int64_t wait_ms = std::clamp<int64_t>(armed_ms_ - Clocks::steady_ms(), 0, kMaxTimeoutMs);
  timer_.expires_after(std::chrono::milliseconds(wait_ms));
  timer_.async_wait([this](const error_code& error) {
    if (!error) run();
  });
}

void Timeouts::run() {
  if (thread_.levels().nested()) return;  // IoThread::after_nested() catches up on it
  thread_.clock().read();
  const int64_t now_ms = Clocks::steady_ms();
  for (size_t i = 0; i < kMaxTimeoutsPerTurn; ++i) {
    if (entries_.empty() || entries_.begin()->first > now_ms) break;
    Session* session = entries_.begin()->second;
    entries_.erase(entries_.begin());
    thread_.state().timed_clients.fetch_sub(1, std::memory_order_relaxed);
    session->on_block_timeout();
  }
  arm();
}

}  // namespace sluice
