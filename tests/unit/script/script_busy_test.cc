// How often a script yields to others: the clock is read after a bounded amount of work, not only
// of instructions. Each check reads the server's clock once, so checks can be counted.
#include <string>
#include <vector>

#include "engine/script/lua_machine.h"
#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

struct Server : ScriptServer {
  Server() {
    engine.options().busy_reply_threshold_ms = 1'000'000;
    engine.options().script_memory_limit_bytes = 256U << 20;
    port.step_us = 1;
  }

  // How often the script reads the clock.
  int64_t looks(Bytes script) {
    const int64_t before = port.steady_us;
    const std::string reply = session.eval(script, {}, {});
    CAPTURE(reply);
    CHECK(reply[0] != '-');
    return port.steady_us - before;
  }
};

TEST_CASE("memory that is asked for counts as work") {
  Server server;
  // Every string is new.
  CHECK(server.looks("local s = string.rep('x', 2^20) for i = 1, 100 do local t = s .. i end") >=
        20);
  CHECK(server.looks("for i = 1, 20 do local t = {} for k = 1, 2^18 do t[k] = k end end") >= 20);
  // Rejected work also counts.
  CHECK(server.looks("for i = 1, 50 do pcall(string.rep, 'x', 5e8) end") >= 50);
  // Ordinary scripts cause few checks: more where the machine has stalled meanwhile.
  CHECK(server.looks("for i = 1, 100 do local t = {} t[1] = i .. 'x' end") <= 2);
  CHECK(server.looks("local t = {} for i = 1, 20000 do t[i] = i end") <= 300);
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
  // The count starts again for the next script.
  CHECK(server.looks("for i = 1, 10000 do end") <= 100);
}

TEST_CASE("instructions that take long are counted one by one") {
  Server server;
  // Each call takes some 0.1 ms, reads little and asks for nothing new.
  CHECK(server.looks("local t = {} for i = 1, 5000 do t[i] = i % 7 end for i = 1, 1000 do "
                     "table.sort(t) end") >= 20);
  server.session.run({"SET", "a", std::string(3000, 'a')});
  CHECK(server.looks("for i = 1, 20 do redis.call('LCS', 'a', 'a', 'LEN') end") >= 10);
}

TEST_CASE("functions in C that take long look at the clock themselves") {
  Server server;
  CHECK(server.looks("return string.find(string.rep('a', 80), '.-.-.-b')") >= 50);
  CHECK(server.looks("return string.match(string.rep('a', 80), '(a*)(a*)(a*)b')") >= 50);
  CHECK(server.looks("return (string.gsub(string.rep('a', 2000), 'a*b', ''))") >= 20);
  CHECK(server.looks("return string.find(string.rep('x', 2^24) .. 'ab', 'ab', 1, true)") >= 3);
  CHECK(server.looks(
            "return string.find(string.rep('x', 1000), '[' .. string.rep('a', 1e5) .. ']')") >=
        1000);
  CHECK(server.looks("return (string.rep('(', 2^24) .. ')'):match('^%b()')") >= 50);
  CHECK(server.looks("return redis.sha1hex(string.rep('x', 2^24))") >= 16);
  CHECK(server.looks("local t = {} for i = 1, 2^20 do t[i] = 'x' end return #table.concat(t)") >=
        60);
  CHECK(server.looks("local t = {} for i = 1, 2^20 do t[i] = 'x' end table.insert(t, 1, 'y')") >=
        16);
  // 16 of them are of the loop.
  CHECK(server.looks("local t = {} for i = 1, 2^20 do t[i] = 'x' end table.remove(t, 1)") >= 32);
  CHECK(server.looks("return #string.rep('ab', 2^25)") >= 1);
  CHECK(server.looks("local s = string.rep('a = 1 ', 1e5) return loadstring(s) and 1") >= 100);
}

TEST_CASE("a long reply looks at the clock, and SCRIPT KILL ends it") {
  Server server;
  const Bytes shared = "local t = {1} for i = 1, 20 do t = {t, t} end return t";
  CHECK(server.looks(shared) >= 20);
  CHECK(server.looks("local t = {} for i = 1, 2^20 do t[i] = i end return t") >= 10);
  server.engine.options().busy_reply_threshold_ms = 1;
  server.port.step_us = 1000;
  int polls = 0;
  server.port.on_poll = [&] {
    if (++polls == 1) CHECK(script_engine(server.engine).kill(false).ok());
  };
  // Its partial reply is removed, and what precedes it stays.
  server.session.run({"MULTI"});
  server.session.run({"PING"});
  server.session.run({"EVAL", shared, "0"});
  const std::string reply = server.session.run({"EXEC"});
  const std::string expected = "*2\r\n+PONG\r\n-ERR Script killed by user with SCRIPT KILL... ";
  CHECK(reply.substr(0, expected.size()) == expected);
  CHECK(reply.find("\r\n", expected.size()) == reply.size() - 2);
  CHECK(polls == 1);
  server.port.on_poll = nullptr;
  CHECK(server.eval("return {1}") == "*1\r\n:1\r\n");
}

TEST_CASE("how long a script has run counts from its own beginning") {
  Server server;
  server.engine.options().busy_reply_threshold_ms = 100;
  server.port.step_us = 0;
  int polls = 0;
  server.port.on_poll = [&] { ++polls; };
  const auto load = [&](Bytes name) {
    const std::string code =
        "#!lua name=" + std::string(name) + "\nfor i = 1, 2e6 do end redis.register_function('" +
        std::string(name) + "', function() for i = 1, 2e6 do end return 1 end)";
    return server.session.run({"FUNCTION", "LOAD", code});
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(server.eval("for i = 1, 2e6 do end return 1") == ":1\r\n");
    server.port.steady_us += 1'000'000;
  }
  CHECK(load("a") == "$1\r\na\r\n");
  for (int i = 0; i < 2; ++i) {
    server.port.steady_us += 1'000'000;
    CHECK(server.session.run({"FCALL", "a", "0"}) == ":1\r\n");
  }
  server.port.steady_us += 1'000'000;
  CHECK(load("b") == "$1\r\nb\r\n");
  CHECK(polls == 0);
}

TEST_CASE("while one of two slow scripts runs on others get BUSY") {
  Server server;
  ScriptEngine& scripts = script_engine(server.engine);
  LuaMachine first(server.engine, scripts, SandboxKind::kScripts);
  LuaMachine second(server.engine, scripts, SandboxKind::kScripts);
  const std::vector<Bytes> args{"EVAL", "", "0"};
  ByteBuffer out;
  RespReply reply(out, 2);
  const Call call{server.engine,
                  server.execution,
                  server.session.client,
                  server.execution.unit(),
                  *CommandTable::instance().find("eval"),
                  args,
                  reply};
  scripts.enter_busy(first, call, 1);
  scripts.enter_busy(second, call, 1);
  scripts.leave_busy(second);
  CHECK(server.session.run({"GET", "a"}).starts_with("-BUSY"));
  scripts.leave_busy(first);
  CHECK(server.session.run({"GET", "a"}) == "$-1\r\n");
}

TEST_CASE("with busy-reply-threshold 0 no script is slow, however long it runs") {
  Server server;
  server.engine.options().busy_reply_threshold_ms = 0;
  server.port.step_us = 1'000'000;
  int polls = 0;
  server.port.on_poll = [&] { ++polls; };
  CHECK(server.eval("for i = 1, 2e6 do end return 1") == ":1\r\n");
  CHECK(polls == 0);
  CHECK(server.port.warnings.empty());
}

TEST_CASE("a source is bounded in bytes and in the time that compiling it takes") {
  Server server;
  const std::string longest(1U << 20, ' ');
  CHECK(server.session.eval(longest, {}, {}) == "$-1\r\n");
  CHECK(server.session.eval(longest + " ", {}, {}) ==
        "-ERR Error compiling script (new function): the source is longer than 1048576 bytes\r\n");
  CHECK(server.session.eval("local f, e = loadstring(string.rep(' ', 2^20 + 1)) return e", {},
                            {}) == "$39\r\nthe source is longer than 1048576 bytes\r\n");
  CHECK(server.session
            .eval("local f, e = load(function() return string.rep(' ', 2^16) end) return e", {}, {})
            .find("the source is longer than 1048576 bytes") != std::string::npos);
  // For each condition of such a chain the compiler visits all preceding ones; without the limit
  // this takes a minute.
  std::string chain = "local a = nil local b = ";
  while (chain.size() < 1'000'000) chain += "a or ";
  CHECK(server.session.eval(chain + "a", {}, {}) ==
        "-ERR Error compiling script (new function): the source takes more than 250 ms to "
        "compile\r\n");
  // Rewriting the source before it is compiled does not take quadratic time either.
  std::string returns;
  while (returns.size() < 1'000'000) returns += "return (a.return b.";
  CHECK(server.session.eval(returns, {}, {}).substr(0, 5) == "-ERR ");
}

}  // namespace
