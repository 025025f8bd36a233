// OBJECT IDLETIME in a server that has been running for years.
#include <cstdint>
#include <string>

#include "engine/commands/complete_engine.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kYearMs = 365 * 24 * kHourMs;

struct Server {
  test::QuietServer port;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  test::EngineSession session{engine, execution};

  std::string at(int64_t steady_ms, std::initializer_list<Bytes> args) {
    execution.set_times(Times::agreeing(1'700'000'000'000 + steady_ms, steady_ms));
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
    // Another thread has read its clock earlier.
    CHECK(server.at(start_ms + kYearMs - 2000, {"OBJECT", "IDLETIME", "k"}) == ":0\r\n");
  }
}

TEST_CASE("a connection with NO-TOUCH leaves what it reads as it was, but for TOUCH") {
  Server server;
  const auto idle = [&](int64_t steady_ms, Bytes key) {
    return server.at(steady_ms, {"OBJECT", "IDLETIME", key});
  };
  server.at(0, {"SET", "string", "v"});
  server.at(0, {"RPUSH", "list", "v"});
  CHECK(server.at(0, {"CLIENT", "NO-TOUCH", "ON"}) == "+OK\r\n");
  server.at(60'000, {"GET", "string"});
  server.at(60'000, {"LRANGE", "list", "0", "-1"});
  server.at(60'000, {"EVAL", "return redis.call('get', KEYS[1])", "1", "string"});
  server.at(60'000, {"MULTI"});
  server.at(60'000, {"GET", "string"});
  server.at(60'000, {"EXEC"});
  CHECK(idle(60'000, "string") == ":60\r\n");
  CHECK(idle(60'000, "list") == ":60\r\n");
  // Replacing a value resets its idle time.
  server.at(60'000, {"SET", "string", "w"});
  server.at(60'000, {"SET", "made", "v"});
  CHECK(idle(90'000, "string") == ":30\r\n");
  CHECK(idle(90'000, "made") == ":30\r\n");
  server.at(90'000, {"EVAL", "return redis.call('touch', KEYS[1])", "1", "string"});
  server.at(90'000, {"TOUCH", "list"});
  CHECK(idle(90'000, "string") == ":0\r\n");
  CHECK(idle(90'000, "list") == ":0\r\n");
  server.at(90'000, {"CLIENT", "NO-TOUCH", "OFF"});
  server.at(150'000, {"GET", "list"});
  CHECK(idle(150'000, "list") == ":0\r\n");
  server.at(150'000, {"CLIENT", "NO-TOUCH", "ON"});
  server.at(150'000, {"RESET"});
  server.at(180'000, {"GET", "list"});
  CHECK(idle(180'000, "list") == ":0\r\n");
}

TEST_CASE("who asks about a key and not for its value leaves its idle time") {
  Server server;
  server.at(0, {"SET", "k", "v", "PX", "9000000"});
  for (const Bytes command : {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "EXISTS", "TYPE"}) {
    server.at(60'000, {command, "k"});
  }
  for (const Bytes part : {"ENCODING", "REFCOUNT", "FREQ"})
    server.at(60'000, {"OBJECT", part, "k"});
  server.at(60'000, {"MEMORY", "USAGE", "k"});
  CHECK(server.at(60'000, {"OBJECT", "IDLETIME", "k"}) == ":60\r\n");
}

TEST_CASE("a key counts as expired whoever finds it so") {
  Server server;
  for (const Bytes key : {"read", "written", "due"}) server.at(0, {"SET", key, "v", "PX", "10"});
  server.at(1000, {"GET", "read"});
  CHECK(server.engine.expired_keys == 1);
  server.at(1000, {"LPUSH", "written", "x"});
  CHECK(server.engine.expired_keys == 2);
  server.execution.run_timers(Times::agreeing(1'700'000'001'000, 1000));
  CHECK(server.engine.expired_keys == 3);
}

}  // namespace
