// How often a script lets others in: the clock is looked at after a bounded amount of work, not
// only of instructions. Each look reads the clock of the server once, so that looks can be counted.
#include <string>
#include <vector>

#include "engine/script/script_engine.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"

// The engine and doctest both have a CHECK; the test's is meant here.
#undef CHECK
#include <doctest/doctest.h>

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::QuietServer;

struct Server {
  QuietServer port;
  Engine engine{port, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};

  Server() {
    engine.options().busy_reply_threshold_ms = 1'000'000;
    engine.options().script_memory_limit_bytes = 256U << 20;
    port.step_us = 1;
  }

  // How often the script looks at the clock.
  int64_t looks(Bytes script) {
    const int64_t before = port.now_us;
    const std::string reply = session.eval(script, {}, {});
    CAPTURE(reply);
    CHECK(reply[0] != '-');
    return port.now_us - before;
  }
};

TEST_CASE("memory that is asked for counts as work") {
  Server server;
  // Every string is a new one.
  CHECK(server.looks("local s = string.rep('x', 2^20) for i = 1, 100 do local t = s .. i end") >=
        20);
  CHECK(server.looks("for i = 1, 20 do local t = {} for k = 1, 2^18 do t[k] = k end end") >= 20);
  // What is refused counts as well.
  CHECK(server.looks("for i = 1, 50 do pcall(string.rep, 'x', 5e8) end") >= 50);
  // Ordinary scripts do not pay.
  CHECK(server.looks("for i = 1, 1000 do local t = {} t[1] = i .. 'x' end") <= 1);
  CHECK(server.looks("local t = {} for i = 1, 20000 do t[i] = i end") <= 2);
}

TEST_CASE("work on large blocks counts where nothing is asked for") {
  Server server;
  CHECK(server.looks(
            "local s = string.rep('x', 2^24) local k = s .. 'y' for i = 1, 50 do local t = s "
            ".. 'y' end return #k") >= 30);
  CHECK(
      server.looks("local s = string.rep('x', 2^24) local a, b = s .. 'a', s .. 'b' for i = 1, 50 "
                   "do local t = a < b end return 1") >= 30);
  CHECK(
      server.looks("local t = {} for i = 1, 2^20 do t[i] = i end for i = 1, 2^20 do t[i] = nil end "
                   "for i = 1, 50 do next(t) end") >= 20);
  // The next script begins anew.
  CHECK(server.looks("for i = 1, 10000 do end") <= 1);
}

}  // namespace
