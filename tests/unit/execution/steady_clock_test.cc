// Setting the wall clock, in either direction, does not affect durations. Here each reading sets it
// by an hour.
#include <string>

#include "engine/access/acl.h"
#include "engine/clients/latency_monitor.h"
#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

constexpr int64_t kHourUs = 3'600'000'000;

bool contains(const std::string& text, Bytes part) { return text.find(part) != std::string::npos; }

struct Server : ScriptServer {
  explicit Server(int64_t wall_step_us) {
    engine.options().busy_reply_threshold_ms = 100;
    port.wall_step_us = wall_step_us;
  }
};

TEST_CASE("a script is busy by the steady clock, whatever the wall clock does") {
  for (const int64_t step_us : {kHourUs, -kHourUs}) {
    CAPTURE(step_us);
    Server server(step_us);
    int polls = 0;
    server.port.on_poll = [&] {
      if (++polls == 1) CHECK(script_engine(server.engine).kill(false).ok());
    };
    CHECK(server.eval("for i = 1, 2e6 do end return 1") == ":1\r\n");
    CHECK(polls == 0);
    server.port.step_us = 60'000;
    CHECK(contains(server.eval("for i = 1, 2e6 do end return 1"), "Script killed by user"));
    CHECK(polls == 1);
  }
}

TEST_CASE("FUNCTION STATS and FUNCTION LOAD measure by the steady clock") {
  for (const int64_t step_us : {kHourUs, -kHourUs}) {
    CAPTURE(step_us);
    Server server(step_us);
    const std::string code =
        "#!lua name=a\nfor i = 1, 1e6 do end "
        "redis.register_function('f', function() for i = 1, 1e6 do end return 1 end)";
    CHECK(server.session.run({"FUNCTION", "LOAD", code}) == "$1\r\na\r\n");
    // The first call also runs the library's code.
    CHECK(server.session.run({"FCALL", "f", "0"}) == ":1\r\n");
    std::string stats;
    Execution other(server.engine);
    test::EngineSession elsewhere(server.engine, other);
    server.port.step_us = 60'000;
    server.port.on_poll = [&] {
      if (stats.empty()) stats = elsewhere.run({"FUNCTION", "STATS"});
    };
    CHECK(server.session.run({"FCALL", "f", "0"}) == ":1\r\n");
    // Busy at the third reading; the query is the fourth.
    CHECK(contains(stats, "duration_ms\r\n:180\r\n"));
  }
}

TEST_CASE("ages in ACL LOG and LATENCY go by the steady clock") {
  for (const int64_t step_us : {kHourUs, -kHourUs}) {
    CAPTURE(step_us);
    Server server(step_us);
    server.engine.latency_monitor().add(
        "command", {server.port.unix_time_us() / 1'000'000, server.port.steady_us / 1'000'000, 7});
    CHECK(contains(server.session.run({"AUTH", "nobody", "x"}), "-WRONGPASS "));
    server.port.steady_us += 5'000'000;
    server.port.wall_us += step_us;
    CHECK(contains(server.session.run({"ACL", "LOG"}), "age-seconds\r\n$1\r\n5\r\n"));
    CHECK(contains(server.session.run({"LATENCY", "GRAPH", "command"}), "\n5\ns\n"));
    // The same denial within a minute is counted in the same entry.
    server.session.run({"AUTH", "nobody", "x"});
    CHECK(contains(server.session.run({"ACL", "LOG"}), "count\r\n:2\r\n"));
    server.port.steady_us += 61'000'000;
    server.session.run({"AUTH", "nobody", "x"});
    CHECK(contains(server.session.run({"ACL", "LOG"}), "*2\r\n"));
  }
}

}  // namespace
