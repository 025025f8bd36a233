// What without_tail_calls() changes, and what it leaves alone.
#include "engine/script/tail_calls.h"

#include <doctest/doctest.h>

#include <string>

namespace {

using sluice::without_tail_calls;

TEST_CASE("a call that a script returns stays a call") {
  CHECK(without_tail_calls("return redis.call('GET', KEYS[1])") ==
        "return (redis.call('GET', KEYS[1]))");
  CHECK(without_tail_calls("return f()") == "return (f())");
  CHECK(without_tail_calls("return f 'x'") == "return (f 'x')");
  CHECK(without_tail_calls("return f{1,2}") == "return (f{1,2})");
  CHECK(without_tail_calls("return f [[x]]") == "return (f [[x]])");
  CHECK(without_tail_calls("return a.b[c(1)]:d(e(2))(3)") == "return (a.b[c(1)]:d(e(2))(3))");
  CHECK(without_tail_calls("return ('x'):rep(3)") == "return (('x'):rep(3))");
  CHECK(without_tail_calls("if x then return f() else return g() end") ==
        "if x then return (f()) else return (g()) end");
  CHECK(without_tail_calls("return f();") == "return (f());");
  CHECK(without_tail_calls("return f() -- end") == "return (f()) -- end");
  CHECK(without_tail_calls("return f(\n1,\n2)\n") == "return (f(\n1,\n2))\n");
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
    CHECK(without_tail_calls(code) == code);
  }
}

TEST_CASE("inside functions only calls with one result are changed") {
  CHECK(without_tail_calls("local function g() return f() end return g()") ==
        "local function g() return f() end return (g())");
  CHECK(without_tail_calls("local function g() return redis.call('x') end") ==
        "local function g() return (redis.call('x')) end");
  CHECK(without_tail_calls("local g = function() for i = 1, 2 do return unpack(t) end end "
                           "return g()") ==
        "local g = function() for i = 1, 2 do return unpack(t) end end return (g())");
  CHECK(without_tail_calls("repeat local f = function() return f() end until true return h()") ==
        "repeat local f = function() return f() end until true return (h())");
  CHECK(without_tail_calls("return pcall(function() return redis.call('x') end)") ==
        "return (pcall(function() return (redis.call('x')) end))");
}

TEST_CASE("text that is no Lua is left to the compiler") {
  for (const char* code : {"return f(", "return f(]", "return '", "return [[", "end end return",
                           "--[[", "return a.", "return a:", "\"\\", "return f('\n')"}) {
    CAPTURE(code);
    const std::string result = without_tail_calls(code);
    CHECK(result.size() >= std::string(code).size());
  }
  CHECK(without_tail_calls("").empty());
}

TEST_CASE("a first byte that LuaJIT would not read as text is pushed aside") {
  CHECK(without_tail_calls("#!x\nreturn 1") == " #!x\nreturn 1");
  CHECK(without_tail_calls("\x1bLJ") == " \x1bLJ");
}

}  // namespace
