// The patterns of find, match, gmatch and gsub: compared with LuaJIT's own, which runs the same
// program without the sandbox, and with Redis's Lua 5.1 where the two differ.
#include <string>

#include "engine/script/lua_headers.h"
#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

struct Server : ScriptServer {
  // Returns the script's result, a text.
  std::string text(const std::string& script) {
    const std::string reply = session.eval(script, {}, {});
    if (reply[0] != '$') return reply;
    const size_t begin = reply.find('\n') + 1;
    return reply.substr(begin, reply.size() - begin - 2);
  }
};

std::string text_of_luajit(const std::string& script) {
  lua_State* const lua = luaL_newstate();
  luaL_openlibs(lua);
  const int status = luaL_loadbuffer(lua, script.data(), script.size(), "@user_script") != 0
                         ? 1
                         : lua_pcall(lua, 0, 1, 0);
  size_t size = 0;
  const char* const text = lua_tolstring(lua, -1, &size);
  std::string result(text, size);
  if (status != 0) result = "error: " + result;
  lua_close(lua);
  return result;
}

// Random subjects and patterns, composed of pattern elements. `seed` is prepended.
constexpr const char* kProgram = R"(
local function random(n) seed = seed * 16807 % 2147483647 return seed % n + 1 end
local items = {'a', 'b', 'c', '.', '%a', '%d', '%s', '%w', '%p', '%u', '%x', '%D', '%W', '%z', '%.',
  '[ab]', '[^a]', '[a-c]', '[%a_]', '[%]]', '[]a]', '[a-]', '[^%s]', '%f[%w]', '%f[%W]', '%b()',
  '%bab', '%baa', '(', ')', '()', '(a*)', '(.-)', '(%w+)', '%1', '%2', '$', '^', '%', '[', ']', '-'}
local counts = {'', '', '', '*', '+', '-', '?'}
local letters = {'a', 'b', 'c', 'a', 'b', ' ', '(', ')', '1', '.', ']', '-', '_', '\n', 'X'}
local replacements = {'', 'x', '<%0>', '%1', '%2%1', '%%', '%x', '%', 12,
  {a = 'A', b = false, c = 7, ab = 'AB'},
  function(a, b) return b or a end, function() end, function(a) return #a end}
local function some(list, most)
  local out = ''
  for i = 1, random(most) - 1 do out = out .. list[random(#list)] end
  return out
end
local function show(...)
  local out = {}
  for i = 1, select('#', ...) do out[i] = tostring((select(i, ...))) end
  return table.concat(out, '|')
end
local function all(s, p)
  local out = {}
  for a, b, c in string.gmatch(s, p) do out[#out + 1] = show(a, b, c) end
  return table.concat(out, ';')
end
local lines = {}
for i = 1, 1500 do
  local s = some(letters, 14)
  local p = random(6) == 1 and '^' or ''
  for k = 1, random(5) do p = p .. items[random(#items)] .. counts[random(#counts)] end
  local init = random(24) - 8
  local most = random(5) - 1
  local what = replacements[random(#replacements)]
  lines[#lines + 1] = table.concat({'[' .. s .. '] [' .. p .. ']',
    show(pcall(string.find, s, p)), show(pcall(string.find, s, p, init)),
    show(pcall(string.find, s, p, init, true)), show(pcall(string.match, s, p)),
    show(pcall(string.match, s, p, init)), show(pcall(all, s, p)),
    show(pcall(string.gsub, s, p, what)), show(pcall(string.gsub, s, p, what, most))}, '\n')
end
return table.concat(lines, '\n')
)";

TEST_CASE("patterns match as LuaJIT's own matcher says") {
  Server server;
  for (const int seed : {1, 20, 300, 4000, 50000, 600000, 7000000, 80000000}) {
    const std::string script = "local seed = " + std::to_string(seed) + kProgram;
    const std::string ours = server.text(script);
    const std::string theirs = text_of_luajit(script);
    size_t at = 0;
    while (at < ours.size() && at < theirs.size() && ours[at] == theirs[at]) ++at;
    const size_t from = at < 200 ? 0 : at - 200;
    CAPTURE(seed);
    CAPTURE(ours.substr(from, 400));
    CAPTURE(theirs.substr(from, 400));
    CHECK(ours.size() > 100'000);
    CHECK(ours == theirs);
  }
}

TEST_CASE("patterns do what those of Lua 5.1 do where LuaJIT's differ") {
  Server server;
  // A pattern ends at its first NUL; a plain search does not.
  CHECK(server.text("return (string.gsub('abc', 'b\\0x', '-'))") == "a-c");
  CHECK(server.session.eval("return string.find('a\\0b', '\\0b', 1, true)", {}, {}) == ":2\r\n");
  CHECK(server.session.eval("return {string.find('a\\0b', '%z')}", {}, {}) == "*2\r\n:2\r\n:2\r\n");
  CHECK(server.text("return (string.gsub('a-g', '%g', 'x'))") == "a-x");
  CHECK(server.text("return string.rep('x', 3, ',')") == "xxx");
}

TEST_CASE("neither long patterns nor long subjects need the thread's stack") {
  Server server;
  CHECK(server.session.eval("return {string.find(string.rep('a', 1000), string.rep('a?', 1000))}",
                            {}, {}) == "*2\r\n:1\r\n:1000\r\n");
  CHECK(server.session.eval(
            "return #string.match(string.rep('a', 1e5), string.rep('a-', 4e4) .. '$')", {}, {}) ==
        ":100000\r\n");
  CHECK(server.session.eval("return #string.match(string.rep('ab', 1e6), '^(.-)$')", {}, {}) ==
        ":2000000\r\n");
  // Nested calls use little of it.
  CHECK(
      server.text("local function f(n) return (string.gsub('x', 'x', function() return n == 0 and "
                  "'end' or f(n - 1) end)) end return f(150)") == "end");
  CHECK(server.text("local function f() return (string.gsub('x', 'x', f)) end return f()")
            .find("C stack overflow") != std::string::npos);
}

TEST_CASE("scripts that fail inside a callback leave later ones as many nested calls") {
  Server server;
  for (int i = 0; i < 250; ++i) {
    CHECK(
        server.text("return string.gsub('x', 'x', function() error('wrong') end)").find("wrong") !=
        std::string::npos);
  }
  CHECK(server.text("return (string.gsub('x', 'x', function() return 'fine' end))") == "fine");
}

TEST_CASE("a plain text is found wherever it lies, also across two pieces of a search") {
  Server server;
  for (const int64_t before : {4194301, 4194302, 4194303, 4194304, 8388607}) {
    CAPTURE(before);
    const std::string script = "return string.find(string.rep('x', " + std::to_string(before) +
                               ") .. 'abc' .. string.rep('y', 2^20), 'abc', 1, true)";
    CHECK(server.session.eval(script, {}, {}) == ":" + std::to_string(before + 1) + "\r\n");
  }
}

TEST_CASE("texts are repeated and joined in pieces as they were as a whole") {
  Server server;
  for (const char* script :
       {"local s = string.rep('abc', 1e6) return #s .. s:sub(1, 4) .. s:sub(1048570, 1048590) .. "
        "s:sub(-5)",
        "local s = string.rep(string.rep('x', 3e6) .. 'y', 5) return #s .. s:sub(3000000, 3000003)",
        "local s = string.rep('x', 2^21) return #s .. ''",
        "local t = {} for i = 1, 1e5 do t[i] = i end local s = table.concat(t, ', ') "
        "return #s .. s:sub(98000, 98100) .. s:sub(-20)",
        "local t = {} for i = 1, 1e5 do t[i] = i end local s = table.concat(t, 7, 3, 99999) "
        "return #s .. s:sub(1, 20) .. s:sub(-20)",
        "local t = {} for i = 1, 1e5 do t[i] = i end t[70000] = {} "
        "return select(2, pcall(table.concat, t, ',', 1))"}) {
    CAPTURE(script);
    CHECK(server.text(script) == text_of_luajit(script));
  }
}

}  // namespace
