// What as_lua51() changes, and what it leaves unchanged.
#include "engine/script/lua51_source.h"

#include <string>

#include "tests/support/test.h"

namespace {

using sluice::as_lua51;

TEST_CASE("a call that a script returns stays a call") {
  CHECK(as_lua51("return redis.call('GET', KEYS[1])") == "return (redis.call('GET', KEYS[1]))");
  CHECK(as_lua51("return f()") == "return (f())");
  CHECK(as_lua51("return f 'x'") == "return (f 'x')");
  CHECK(as_lua51("return f{1,2}") == "return (f{1,2})");
  CHECK(as_lua51("return f [[x]]") == "return (f [[x]])");
  CHECK(as_lua51("return a.b[c(1)]:d(e(2))(3)") == "return (a.b[c(1)]:d(e(2))(3))");
  CHECK(as_lua51("return ('x'):rep(3)") == "return (('x'):rep(3))");
  CHECK(as_lua51("if x then return f() else return g() end") ==
        "if x then return (f()) else return (g()) end");
  CHECK(as_lua51("return f();") == "return (f());");
  CHECK(as_lua51("return f() -- end") == "return (f()) -- end");
  CHECK(as_lua51("return f(\n1,\n2)\n") == "return (f(\n1,\n2))\n");
}

TEST_CASE("what is no tail call is not touched") {
  for (const char* code : {"return f(), 1",
                           "return f() + 1",
                           "return f().x",
                           "return f()[1]",
                           "return x",
                           "return",
                           "return 1",
                           "return {f()}",
                           "return not f()",
                           "return -f()",
                           "return (f())",
                           "return 'f()'",
                           "local s = 'return f()'",
                           "-- return f()",
                           "--[[ return f() ]] x()",
                           "--[==[ return f() ]] ]==]",
                           "local s = [[return f()]]",
                           "local t = {returned = f()}",
                           "return f() .. g()",
                           "return function() end",
                           "return f() and g()",
                           "return 1.5 .. f()",
                           "return 0x1p4 + f()"}) {
    CAPTURE(code);
    CHECK(as_lua51(code) == code);
  }
}

TEST_CASE("inside functions only calls with one result are changed") {
  CHECK(as_lua51("local function g() return f() end return g()") ==
        "local function g() return f() end return (g())");
  CHECK(as_lua51("local function g() return redis.call('x') end") ==
        "local function g() return (redis.call('x')) end");
  CHECK(as_lua51("local g = function() for i = 1, 2 do return unpack(t) end end "
                 "return g()") ==
        "local g = function() for i = 1, 2 do return unpack(t) end end return (g())");
  CHECK(as_lua51("repeat local f = function() return f() end until true return h()") ==
        "repeat local f = function() return f() end until true return (h())");
  CHECK(as_lua51("return pcall(function() return redis.call('x') end)") ==
        "return (pcall(function() return (redis.call('x')) end))");
}

TEST_CASE("text that is no Lua is left to the compiler") {
  for (const char* code : {"return f(", "return f(]", "return '", "return [[", "end end return",
                           "--[[", "return a.", "return a:", "\"\\", "return f('\n')"}) {
    CAPTURE(code);
    const std::string result = as_lua51(code);
    CHECK(result.size() >= std::string(code).size());
  }
  CHECK(as_lua51("").empty());
}

TEST_CASE("unknown escapes mean the character itself, as in Lua 5.1") {
  CHECK(as_lua51(R"(x = 'a\.b\-c' .. "\d\x41\u{41}\z y")") == R"(x = 'a.b-c' .. "dx41u{41}z y")");
  CHECK(as_lua51(R"(x = '\n\t\\\'\"\065\a\b\f\r\v' y = "\\.")") ==
        R"(x = '\n\t\\\'\"\065\a\b\f\r\v' y = "\\.")");
  CHECK(as_lua51("x = [[\\.]] -- '\\.'") == "x = [[\\.]] -- '\\.'");
  CHECK(as_lua51("x = 'a\\\nb'") == "x = 'a\\\nb'");
  CHECK(as_lua51(R"(return f('\.'))") == "return (f('.'))");
}

TEST_CASE("a first byte that LuaJIT would not read as text is pushed aside") {
  CHECK(as_lua51("#!x\nreturn 1") == " #!x\nreturn 1");
  CHECK(as_lua51("\x1bLJ") == " \x1bLJ");
}

}  // namespace
