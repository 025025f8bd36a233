// OBJECT IDLETIME in a server that has run for years.
#include <cstdint>
#include <string>

#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"

// The engine and doctest both have a CHECK; the test's is meant here.
#undef CHECK
#include <doctest/doctest.h>

namespace {

using namespace sluice;

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kYearMs = 365 * 24 * kHourMs;

struct Server {
  test::QuietServer port;
  Engine engine{port, 7};
  Execution execution{engine};
  test::EngineSession session{engine, execution};

  std::string at(int64_t steady_ms, std::initializer_list<Bytes> args) {
    execution.set_now_ms(1'700'000'000'000 + steady_ms);
    execution.set_steady_ms(steady_ms);
    return session.run(args);
  }
};

TEST_CASE("the clock of accesses goes on for years") {
  for (const int64_t start_ms :
       {int64_t{0}, kYearMs, 2 * kYearMs, (int64_t{1} << 26) * 1000 - kHourMs, 30 * kYearMs}) {
    INFO("start ", start_ms);
    Server server;
    server.at(start_ms, {"SET", "k", "v"});
    CHECK(server.at(start_ms, {"OBJECT", "IDLETIME", "k"}) == ":0\r\n");
    CHECK(server.at(start_ms + 2 * kHourMs, {"OBJECT", "IDLETIME", "k"}) == ":7200\r\n");
    CHECK(server.at(start_ms + kYearMs, {"OBJECT", "IDLETIME", "k"}) == ":31536000\r\n");
    server.at(start_ms + kYearMs, {"GET", "k"});
    CHECK(server.at(start_ms + kYearMs + 60'000, {"OBJECT", "IDLETIME", "k"}) == ":60\r\n");
    // Another thread has read its clock before.
    CHECK(server.at(start_ms + kYearMs - 2000, {"OBJECT", "IDLETIME", "k"}) == ":0\r\n");
  }
}

}  // namespace
