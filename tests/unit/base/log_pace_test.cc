// LogPace: log lines that clients can cause appear at most once per interval.
#include "engine/base/log_pace.h"

#include <string>

#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;

TEST_CASE("one line an interval, and the next one says how many were left out") {
  LogPace pace(1000);
  CHECK(pace.next(0) == "");
  CHECK(pace.next(0) == std::nullopt);
  CHECK(pace.next(999) == std::nullopt);
  CHECK(pace.next(1000) == " (2 others since the last such line)");
  CHECK(pace.next(1999) == std::nullopt);
  CHECK(pace.next(3000) == " (1 others since the last such line)");
  CHECK(pace.next(4000) == "");
}

TEST_CASE("requests of HTTP in RESP have one line a minute, and each is refused") {
  test::ScriptServer server;
  for (int i = 0; i < 20; ++i) {
    Execution execution(server.engine);
    test::EngineSession session(server.engine, execution);
    CHECK(session.run({i % 2 == 0 ? "POST" : "Host:", "x"}).empty());
    CHECK(session.client.close_after_reply);
  }
  REQUIRE(server.port.warnings.size() == 1);
  CHECK(server.port.warnings[0].substr(0, 24) == "Possible SECURITY ATTACK");
  server.port.steady_us += 60'000'000;
  server.session.run({"POST", "x"});
  REQUIRE(server.port.warnings.size() == 2);
  CHECK(server.port.warnings[1].find(" (19 others since the last such line)") != std::string::npos);
}

}  // namespace
