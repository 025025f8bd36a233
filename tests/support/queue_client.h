// QueueClient: one connection to a QueueServer, for tests that only need commands, replies and
// time. Used by one thread. Include it before doctest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/queue_server.h"

namespace sluice::test {

struct QueueClient {
  using Words = std::vector<std::string>;

  QueueServer server;

  explicit QueueClient(size_t connections = 1) {
    server.connect(connections);
    server.set_clock(1'700'000'000'000, 0);
  }

  int64_t now_ms() const { return server.wall_ms(); }
  // Advances time and runs everything that becomes due.
  void advance(int64_t ms) { server.pass(ms); }
  // A command that waits returns an error that says so.
  RespValue run(const Words& words) {
    return server.run(0, words).value_or(RespValue::error("waits"));
  }
};

}  // namespace sluice::test
