// The sandbox: what scripts cannot access, change, or leave behind for the next one.
#include <string>

#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

using Server = ScriptServer;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what is not listed does not exist") {
  Server server;
  for (const char* name :
       {"io", "os", "debug", "jit", "ffi", "package", "require", "module", "dofile", "loadfile",
        "print", "getfenv", "setfenv", "newproxy", "server", "foo"}) {
    CAPTURE(name);
    const std::string reply = server.eval("return " + std::string(name));
    CHECK(contains(reply, "Script attempted to access nonexistent global variable '"));
    CHECK(contains(reply, "on @user_script:1."));
  }
  for (const char* gone :
       {"table.new", "table.clear", "table.move", "coroutine.isyieldable", "string.buffer",
        "cjson.safe", "redis.nothing", "redis.register_function"}) {
    CAPTURE(gone);
    CHECK(server.eval("return " + std::string(gone)) == "$-1\r\n");
  }
}

TEST_CASE("nothing that scripts share can be changed") {
  Server server;
  for (const char* attempt : {"x = 1",
                              "KEYS = {}",
                              "redis = nil",
                              "_G.x = 1",
                              "_G._G = {}",
                              "redis.call = error",
                              "string.rep = error",
                              "math.pi = 3",
                              "cjson.decode = error",
                              "bit.x = 1",
                              "cmsgpack.pack = error",
                              "struct.x = 1",
                              "rawset(struct, 'pack', nil)",
                              "coroutine.x = 1",
                              "table.x = 1",
                              "function redis.evil() end",
                              "function evil() end",
                              "rawset(_G, 'x', 1)",
                              "rawset(redis, 'call', 1)",
                              "rawset(string, 'x', 1)",
                              "setmetatable(_G, {})",
                              "setmetatable(_G, nil)",
                              "setmetatable(redis, {})",
                              "getmetatable(_G).__index = nil",
                              "getmetatable('').__index = nil",
                              "getmetatable('').__index.upper = nil",
                              "getmetatable('x').x = 1",
                              "rawset(getmetatable(''), '__index', {})",
                              "table.insert(redis, 1)",
                              "table.insert(_G, 1, 1)",
                              "table.insert(string, 'x')",
                              "for k, v in pairs(_G) do if k == 'redis' then v.x = 1 end end",
                              "local f, t = pairs(redis) t.x = 1",
                              "loadstring('x = 1')()",
                              "load(function() end)() x = 1",
                              "coroutine.wrap(function() x = 1 end)()",
                              "_G.KEYS = 1",
                              "_G['redis'].call = nil",
                              "error(setmetatable({}, {__index = function() x = 1 end}).y)"}) {
    CAPTURE(attempt);
    CHECK(contains(server.eval(attempt), "Attempt to modify a readonly table"));
  }
}

TEST_CASE("a script leaves nothing behind for the next one") {
  Server server;
  const char* const kState =
      "local names = {} "
      "for _, t in ipairs({_G, redis, string, table, math, cjson, bit, coroutine, cmsgpack, "
      "struct}) do "
      "  for k, v in pairs(t) do "
      "    if k ~= 'KEYS' and k ~= 'ARGV' then "
      "      names[#names + 1] = tostring(k) .. type(v) .. (type(v) == 'function' and tostring(v) "
      "or '') "
      "    end "
      "  end "
      "end "
      "table.sort(names) "
      "return table.concat(names, ' ') .. tostring(getmetatable(_G)) .. #redis .. #_G";
  const std::string before = server.eval(kState);
  CHECK(before[0] == '$');
  for (const char* attempt : {"pcall(function() x = 1 end)",
                              "pcall(table.insert, redis, 1)",
                              "pcall(rawset, redis, 1, 1)",
                              "pcall(error, redis)",
                              "error(redis)",
                              "error(_G)",
                              "table.sort(redis)",
                              "table.remove(_G)",
                              "table.sort(_G, function(a, b) a.x = 1 return true end)",
                              "xpcall(function() error('x') end, function() y = 1 end)",
                              "return setmetatable({}, redis)",
                              "setmetatable({}, {__index = redis}).call = 1",
                              "KEYS[1] = 1 ARGV.x = 1",
                              "setmetatable(KEYS, {__index = redis}) KEYS.x = 1",
                              "next(_G)",
                              "rawget(_G, 'redis').x = 1",
                              "table.foreach(redis, function(k) redis[k] = nil end)",
                              "string.gsub('x', 'x', function() string.x = 1 end)",
                              "cjson.decode('{\"a\":1}').b = 1",
                              "cjson.new().decode = nil",
                              "collectgarbage('stop')",
                              "coroutine.wrap(function() setmetatable(_G, {}) end)()",
                              "redis.setresp(3)",
                              "return redis.error_reply(redis)"}) {
    CAPTURE(attempt);
    server.eval(attempt);
    CHECK(server.eval(kState) == before);
  }
  CHECK(server.eval("return {#KEYS, #ARGV, tostring(getmetatable(KEYS))}") ==
        "*3\r\n:0\r\n:0\r\n$3\r\nnil\r\n");
}

TEST_CASE("protected tables can still be read and walked") {
  Server server;
  CHECK(server.eval("local n = 0 for k, v in pairs(redis) do n = n + 1 end return n > 15") ==
        ":1\r\n");
  CHECK(
      server.eval("return {rawget(redis, 'LOG_WARNING'), redis['LOG_NOTICE'], type(next(math))}") ==
      "*3\r\n:3\r\n:2\r\n$6\r\nstring\r\n");
  CHECK(server.eval("return _G._G == _G") == ":1\r\n");
  CHECK(server.eval("return getmetatable('').__index.upper('x')") == "$1\r\nX\r\n");
  CHECK(server.eval("return ('%d'):format(3) .. ('abc'):upper():len()") == "$2\r\n33\r\n");
}

TEST_CASE("bytecode is never loaded") {
  Server server;
  CHECK(server.eval("local f = loadstring(string.dump(function() return 1 end)) return type(f)") ==
        "$3\r\nnil\r\n");
  CHECK(server.eval("local code = string.dump(function() return 1 end) "
                    "local f = load(function() local c = code code = nil return c end) "
                    "return type(f)") == "$3\r\nnil\r\n");
  CHECK(contains(server.eval("\x1bLJ\x02"), "ERR Error compiling script"));
}

TEST_CASE("a script that wants too much memory is stopped, and the next one runs") {
  Server server;
  server.engine.options().script_memory_limit_bytes = 16U << 20;
  for (const char* script :
       {"local t = {} for i = 1, 1e9 do t[i] = {} end", "return string.rep('x', 1e9)",
        "local s = 'x' while true do s = s .. s end", "local t = {} while true do t[{}] = 1 end",
        "local function f() return f() + 1 end while true do pcall(f) local s = ('x'):rep(1e8) end",
        "local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end",
        "return cjson.decode(string.rep('[', 500) .. string.rep('x', 1e8))",
        "local t = 'x' for i = 1, 15 do t = {t, t, t, t} end return cmsgpack.pack(t)",
        "return struct.pack(string.rep('c0', 1000), unpack(loadstring('local t, s = {}, "
        "(\"x\"):rep(1e6) for i = 1, 1000 do t[i] = s end return t')()))"}) {
    CAPTURE(script);
    const std::string reply = server.eval(script);
    CHECK(reply[0] == '-');
    CHECK((contains(reply, "more memory than script-memory-limit") ||
           contains(reply, "not enough memory")));
    CHECK(server.eval("return 1") == ":1\r\n");
  }
  CHECK(script_engine(server.engine).machine_bytes(false) < 8U << 20);
}

TEST_CASE("lengths in packed input that are not true cost nothing") {
  Server server;
  server.engine.options().script_memory_limit_bytes = 64U << 20;
  for (const char* input :
       {"'\\221' .. ('\\255'):rep(4)", "'\\223' .. ('\\255'):rep(4)", "'\\219' .. ('\\255'):rep(4)",
        "('\\220\\255\\255'):rep(3000) .. ('\\1'):rep(65535)"}) {
    CAPTURE(input);
    CHECK(contains(server.eval("return cmsgpack.unpack(" + std::string(input) + ")"),
                   "Missing bytes in input."));
  }
}

TEST_CASE("what a script sets in cjson lasts until the scripts are flushed") {
  Server server;
  CHECK(server.eval("return cjson.encode_max_depth(7)") == ":7\r\n");
  CHECK(server.eval("return cjson.encode_max_depth()") == ":7\r\n");
  script_engine(server.engine).flush(server.execution);
  CHECK(server.eval("return cjson.encode_max_depth()") == ":1000\r\n");
}

TEST_CASE("answers of commands may pass the limit; the script then fails, the command does not") {
  Server server;
  server.engine.options().script_memory_limit_bytes = 16U << 20;
  for (int i = 0; i < 40; ++i) {
    server.session.run({"RPUSH", "list", std::string(1U << 20, static_cast<char>('a' + i % 26))});
  }
  const std::string reply = server.eval(
      "redis.call('SET', 'before', 1) local t = redis.call('LRANGE', 'list', 0, -1) "
      "local s = ('x'):rep(100) .. #t redis.call('SET', 'after', s)");
  CHECK(reply[0] == '-');
  CHECK(server.session.run({"GET", "before"}) == "$1\r\n1\r\n");
  CHECK(server.session.run({"LLEN", "list"}) == ":40\r\n");
  CHECK(server.eval("return 1") == ":1\r\n");
}

TEST_CASE("a thousand nested tables, deep recursion and long patterns end in an error or a reply") {
  Server server;
  CHECK(contains(server.eval("local t = {} t[1] = t return t"), "reached lua stack limit"));
  CHECK(
      contains(server.eval("local function f() return 1 + f() end return f()"), "stack overflow"));
  CHECK(contains(
      server.eval("return pcall(string.rep, 'x', -1) and cjson.encode((function() local t = "
                  "{} for i = 1, 2000 do t = {t} end return t end)())"),
      "excessive nesting"));
  CHECK(contains(server.eval("local f f = function() return pcall(f) end return {f()}"), "*"));
  CHECK(contains(server.eval(std::string(10000, '(')), "ERR Error compiling script"));
}

}  // namespace
