// Memory limits of scripts: encoders, results of commands and replies respect script-memory-limit,
// and the compiled scripts are limited.
#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "engine/script/lua_headers.h"
#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

constexpr uint64_t kMegabyte = 1U << 20;

struct Server : ScriptServer {
  void limit(uint64_t bytes) { engine.options().script_memory_limit_bytes = bytes; }
  uint64_t machine_bytes() { return script_engine(engine).machine_bytes(false); }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_memory_error(const std::string& reply) {
  return reply[0] == '-' && contains(reply, "more memory than script-memory-limit");
}

// Tables of 2^30 values that take a few kilobytes: deeply nested, and with the fifteen levels that
// cmsgpack packs. A megabyte of text, and a thousand references to it.
const std::string kWide = "local t = {1} for i = 1, 15 do t = {t, t, t, t} end ";
const std::string kText = "local s = ('x'):rep(2^20) ";
const std::string kShared = "local t = {1} for i = 1, 30 do t = {t, t} end ";
const std::string kMany = kText + "local t = {} for i = 1, 1000 do t[i] = s end ";

TEST_CASE("what a script encodes, asks for and replies is an error beyond the limit") {
  Server server;
  server.limit(4 * kMegabyte);
  for (const int protocol : {2, 3}) {
    server.session.client.protocol = protocol;
    for (const std::string& script :
         {kShared + "return #cjson.encode(t)", kShared + "return t",
          kWide + "return #cmsgpack.pack(1, t, t)", kShared + "redis.setresp(3) return {map = t}",
          kShared + "return {set = {[t] = true}}", kShared + "return {1, {map = {[1] = t}}}",
          kMany + "return t", kMany + "return #cjson.encode(t)", kMany + "return #cmsgpack.pack(t)",
          kMany + "return redis.call('RPUSH', 'list', unpack(t))",
          kMany + "return redis.call('DEL', 'list', unpack(t))",
          kMany + "for i = 1, 1000 do t[i] = {verbatim_string = {format = 'txt', string = s}} end "
                  "return t",
          kMany + "for i = 1, 1000 do t[i] = {err = s} end return t",
          kMany + "for i = 1, 1000 do t[i] = {ok = s} end return t",
          kMany + "for i = 1, 1000 do t[i] = {big_number = s} end return t",
          std::string("return #cjson.encode(('\\0'):rep(2^20))"),
          std::string("cjson.encode_sparse_array(true, 0) return #cjson.encode({[2^30] = 1})"),
          std::string("local c = cjson.new() c.encode_sparse_array(true, 0) "
                      "return #c.encode({[2^30] = 1})")}) {
      CAPTURE(script);
      const std::string reply = server.eval(script);
      CHECK_MESSAGE(is_memory_error(reply), reply.substr(0, 200));
      CHECK(server.eval("cjson.encode_sparse_array(false, 2) return 1") == ":1\r\n");
    }
  }
  CHECK(server.session.run({"EXISTS", "list"}) == ":0\r\n");
  CHECK(server.machine_bytes() < 4 * kMegabyte);
}

TEST_CASE("a large table that holds itself ends a reply after as many steps as it has room for") {
  Server server;
  const std::string script =
      "local t = {} t[1] = t for i = 2, 300000 do t[i] = 1 end redis.setresp(3) return ";
  const std::clock_t begin = std::clock();
  for (const std::string result : {"t", "{map = t}", "{set = {[t] = 1}}"}) {
    CHECK(is_memory_error(server.eval(script + result)));
  }
  // Processor time; visiting each level of the table once would take a minute.
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 10);
}

TEST_CASE("a script catches the error of memory as any other") {
  Server server;
  server.limit(4 * kMegabyte);
  CHECK(server.eval(kShared + "local ok, e = pcall(cjson.encode, t) return {tostring(ok), e}") ==
        "*2\r\n$5\r\nfalse\r\n$17\r\nnot enough memory\r\n");
  CHECK(server.eval(kWide + "for i = 1, 5 do pcall(cmsgpack.pack, t, t, t) end "
                            "return cjson.encode({1, {}})") == "$6\r\n[1,{}]\r\n");
}

TEST_CASE("what an encoder has written before it fails takes no memory any more") {
  Server server;
  server.limit(8 * kMegabyte);
  const std::string reply = server.eval(kText + "return cjson.encode({s, s, s, next})");
  CHECK_MESSAGE(contains(reply, "Cannot serialise function: type not supported"), reply);
  CHECK(server.eval("collectgarbage() return 1") == ":1\r\n");
  CHECK(server.machine_bytes() < 2 * kMegabyte);
}

TEST_CASE("what was replied before the limit is taken back") {
  Server server;
  server.limit(4 * kMegabyte);
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  server.session.run({"EVAL", kMany + "return {1, 'x', {2}, t}", "0"});
  server.session.run({"INCR", "a"});
  const std::string replies = server.session.run({"EXEC"});
  CHECK(contains(replies, "*3\r\n+OK\r\n-ERR The script needs more memory"));
  CHECK(replies.substr(replies.size() - 6) == "\r\n:2\r\n");
}

TEST_CASE("a function's reply has the same limit") {
  Server server;
  server.limit(4 * kMegabyte);
  const std::string library = "#!lua name=l\nredis.register_function('f', function() " + kShared +
                              "return t end) redis.register_function('g', function() " + kShared +
                              "return cjson.encode(t) end)";
  server.session.run({"FUNCTION", "LOAD", library});
  CHECK(is_memory_error(server.session.run({"FCALL", "f", "0"})));
  CHECK(is_memory_error(server.session.run({"FCALL", "g", "0"})));
}

TEST_CASE("an answer of a command beyond the limit is dropped, and the command is done") {
  Server server;
  server.limit(16 * kMegabyte);
  const std::string text(kMegabyte, 'x');
  for (int i = 0; i < 40; ++i) {
    const std::string own = std::to_string(i) + text;
    server.session.run({"RPUSH", "list", own});
    server.session.run({"HSET", "hash", std::to_string(i), own});
  }
  server.session.run({"SET", "text", std::string(20 * kMegabyte, 'y')});
  for (const char* call : {"'LRANGE', 'list', 0, -1", "'HGETALL', 'hash'", "'HVALS', 'hash'",
                           "'GET', 'text'", "'GETSET', 'text', 'new'"}) {
    for (const char* protocol : {"2", "3"}) {
      CAPTURE(call);
      server.eval("collectgarbage()");
      const std::string script = "redis.setresp(" + std::string(protocol) + ") return #redis.call(";
      const bool second_getset = std::string(call).substr(0, 8) == "'GETSET'" && protocol[0] == '3';
      if (!second_getset) CHECK(is_memory_error(server.eval(script + call + ")")));
      CHECK(server.machine_bytes() < 16 * kMegabyte);
    }
  }
  CHECK(server.session.run({"GET", "text"}) == "$3\r\nnew\r\n");
}

TEST_CASE("an error's text has the limit as well") {
  Server server;
  server.limit(16 * kMegabyte);
  server.session.run({"SET", "text", std::string(10 * kMegabyte, 'y')});
  CHECK(is_memory_error(server.eval("error({err = redis.call('GET', 'text')})")));
  CHECK(is_memory_error(server.eval("return {err = redis.call('GET', 'text')}")));
}

TEST_CASE("garbage is no reason for an error") {
  Server server;
  server.limit(32 * kMegabyte);
  server.session.run({"SET", "text", std::string(6 * kMegabyte, 'y')});
  CHECK(
      server.eval("local n = 0 for i = 1, 50 do n = n + #redis.call('GET', 'text') end return n") ==
      ":314572800\r\n");
  CHECK(server.eval("local t = {} for i = 1, 1000 do t[i] = ('x'):rep(1000) .. i end "
                    "local n = 0 for i = 1, 100 do n = n + #cjson.encode(t) end return n > 0") ==
        ":1\r\n");
  server.limit(64 * kMegabyte);
  CHECK(server.eval("for i = 1, 100 do local s = ('x'):rep(5 * 2^20) .. i end return 1") ==
        ":1\r\n");
}

TEST_CASE("a coroutine may be resumed without end") {
  Server server;
  server.limit(16 * kMegabyte);
  CHECK(
      server.eval("local c = coroutine.create(function() while true do coroutine.yield() end end) "
                  "for i = 1, 5e5 do coroutine.resume(c) end return 1") == ":1\r\n");
  CHECK(server.eval("local f = coroutine.wrap(function() while true do coroutine.yield() end end) "
                    "for i = 1, 5e5 do f() end return 1") == ":1\r\n");
}

// --- cjson.encode ---

// Writes values of all kinds as Lua source. Tables have one field, because the order of more is
// undefined.
class ValueWriter {
 public:
  explicit ValueWriter(uint64_t seed) : random_(seed) {}

  std::string value(int depth) {
    switch (below(depth == 0 ? 7 : 10)) {
      case 0:
        return "nil";
      case 1:
        return below(2) == 0 ? "true" : "false";
      case 2:
        return std::to_string(static_cast<int64_t>(random_()) >> below(64));
      case 3:
        return number();
      case 4:
      case 5:
        return text();
      case 6:
        return below(30) == 0 ? "(0/0)" : "cjson.null";
      case 7:
        return "{" + value(depth - 1) + "," + value(depth - 1) + "," + value(depth - 1) + "}";
      case 8:
        return "{[" + (below(2) == 0 ? text() : number()) + "]=" + value(depth - 1) + "}";
      default:
        return "{[" + std::to_string(below(16)) + "]=" + value(depth - 1) + "}";
    }
  }
  size_t below(size_t bound) { return random_() % bound; }

 private:
  std::string number() {
    return std::to_string(static_cast<int64_t>(random_()) >> below(64)) + "/" +
           std::to_string(1 + below(1000)) + "*10^" +
           std::to_string(static_cast<int>(below(60)) - 30);
  }
  std::string text() {
    std::string out = "'";
    for (size_t left = below(12); left != 0; --left) {
      out += '\\' + std::to_string(1000 + below(256)).substr(1);
    }
    return out + "'";
  }

  std::mt19937_64 random_;
};

// The result of the library itself.
std::string library_encodes(lua_State* lua, const std::string& script) {
  std::string result;
  if (luaL_loadstring(lua, script.c_str()) == 0 && lua_pcall(lua, 0, 1, 0) == 0) {
    size_t size = 0;
    const char* const text = lua_tolstring(lua, -1, &size);
    if (text != nullptr) result.assign(text, size);
  } else {
    result = "error";
  }
  lua_settop(lua, 0);
  return result;
}

TEST_CASE("cjson.encode writes what the library writes") {
  Server server;
  lua_State* const lua = luaL_newstate();
  luaL_openlibs(lua);
  lua_pushcfunction(lua, luaopen_cjson);
  lua_call(lua, 0, 1);
  lua_setglobal(lua, "cjson");
  ValueWriter writer(20261123);
  for (int i = 0; i < 4000; ++i) {
    std::string script;
    if (writer.below(8) == 0) {
      const char* const kSettings[] = {
          "cjson.encode_invalid_numbers(true) ",  "cjson.encode_invalid_numbers('null') ",
          "cjson.encode_invalid_numbers(false) ", "cjson.encode_number_precision(3) ",
          "cjson.encode_number_precision(14) ",   "cjson.encode_sparse_array(true, 1, 3) ",
          "cjson.encode_sparse_array(false) ",    "cjson.encode_max_depth(3) ",
          "cjson.encode_max_depth(1000) ",        "cjson.encode_keep_buffer(false) "};
      script = kSettings[writer.below(std::size(kSettings))];
    }
    script += "return cjson.encode(" + writer.value(5) + ")";
    CAPTURE(script);
    const std::string expected = library_encodes(lua, script);
    const std::string reply = server.eval(script);
    if (expected == "error") {
      CHECK(reply[0] == '-');
    } else {
      CHECK(reply == "$" + std::to_string(expected.size()) + "\r\n" + expected + "\r\n");
    }
  }
  lua_close(lua);
}

TEST_CASE("long encoding looks at the clock, and SCRIPT KILL ends it") {
  Server server;
  server.engine.options().busy_reply_threshold_ms = 1;
  for (const std::string& script :
       {kShared + "return #cjson.encode(t)", kWide + "return #cmsgpack.pack(1, t, t)"}) {
    int polls = 0;
    server.port.step_us = 1000;
    server.port.on_poll = [&] {
      ++polls;
      CHECK(script_engine(server.engine).kill(false).ok());
    };
    CHECK(contains(server.eval(script), "Script killed by user with SCRIPT KILL"));
    CHECK(polls == 1);
    server.port.on_poll = nullptr;
    server.port.step_us = 0;
    CHECK(server.eval("return cjson.encode({1})") == "$3\r\n[1]\r\n");
  }
}

// --- Many scripts ---

std::string numbered(int number, size_t size = 1000) {
  std::string body = "local n = " + std::to_string(number) + " ";
  while (body.size() < size) body += "n = n + 1 n = n - 1 ";
  return body + "return n";
}

std::string load(Server& server, const std::string& body) {
  return server.session.run({"SCRIPT", "LOAD", body}).substr(5, 40);
}

TEST_CASE("compiled scripts keep to a part of the limit, and each script runs all the same") {
  Server server;
  server.limit(16 * kMegabyte);
  constexpr int kScripts = 5000;
  std::vector<std::string> shas;
  for (int i = 0; i < kScripts; ++i) shas.push_back(load(server, numbered(i)));
  CHECK(script_engine(server.engine).script_count() == kScripts);
  CHECK(server.machine_bytes() < 8 * kMegabyte);
  for (int i = 0; i < kScripts; i += 7) {
    CHECK(server.session.run({"EVALSHA", shas[static_cast<size_t>(i)], "0"}) ==
          ":" + std::to_string(i) + "\r\n");
  }
  for (int i = 0; i < kScripts; ++i) server.eval(numbered(i + kScripts));
  CHECK(server.machine_bytes() < 8 * kMegabyte);
  CHECK(server.session.run({"EVALSHA", shas[0], "0"}) == ":0\r\n");
  CHECK(server.eval("local t = {} for i = 1, 1e5 do t[i] = {} end return #t") == ":100000\r\n");
}

TEST_CASE("small texts that become large functions keep to it as well") {
  Server server;
  server.limit(16 * kMegabyte);
  for (int i = 0; i < 300; ++i) {
    std::string body = "local n = " + std::to_string(i) + " ";
    for (int k = 0; k < 500; ++k) body += "n=function()end ";
    CHECK(server.eval(body + "return " + std::to_string(i)) == ":" + std::to_string(i) + "\r\n");
  }
  CHECK(server.machine_bytes() < 8 * kMegabyte);
}

TEST_CASE("a lower limit gives up what is compiled, and scripts run") {
  Server server;
  for (int i = 0; i < 6000; ++i) load(server, numbered(i));
  CHECK(server.machine_bytes() > 4 * kMegabyte);
  server.limit(2 * kMegabyte);
  CHECK(server.eval("local t = {} for i = 1, 2000 do t[i] = {} end return #t") != "");
  CHECK(server.eval("local t = {} for i = 1, 2000 do t[i] = {} end return #t") == ":2000\r\n");
}

TEST_CASE("libraries may hold half of the limit, and functions run beside them") {
  Server server;
  server.limit(16 * kMegabyte);
  constexpr int kLibraries = 14;
  for (int i = 0; i < kLibraries; ++i) {
    const std::string n = std::to_string(i);
    const std::string code =
        "#!lua name=l" + n +
        "\nlocal t = {} for i = 1, 2^14 do t[i] = {} end redis.register_function('f" + n +
        "', function() return #t end) redis.register_function('g" + n +
        "', function() local t = {} for i = 1, 2^15 do t[i] = {} end return #t end)";
    CHECK(server.session.run({"FUNCTION", "LOAD", code})[0] == '$');
  }
  int refused = 0;
  for (int i = 0; i < kLibraries; ++i) {
    const std::string reply = server.session.run({"FCALL", "f" + std::to_string(i), "0"});
    if (reply != ":16384\r\n") ++refused;
  }
  CHECK(refused > 0);
  CHECK(refused < kLibraries - 3);
  CHECK(server.session.run({"FCALL", "f0", "0"}) == ":16384\r\n");
  CHECK(server.session.run({"FCALL", "g0", "0"}) == ":32768\r\n");
  server.session.run({"FUNCTION", "FLUSH"});
  CHECK(script_engine(server.engine).machine_bytes(true) < kMegabyte);
}

// Processor time of a call, the minimum of several.
double call_us(Server& server, const std::string& sha) {
  double shortest = 1e9;
  for (int i = 0; i < 50; ++i) {
    const std::clock_t begin = std::clock();
    for (int k = 0; k < 10; ++k) server.session.run({"EVALSHA", sha, "0"});
    shortest = std::min(shortest, static_cast<double>(std::clock() - begin));
  }
  return shortest;
}

TEST_CASE("a script among many costs what it costs alone") {
  Server server;
  const std::string sha = load(server, "return 1");
  const double alone = call_us(server, sha);
  for (int i = 0; i < 30'000; ++i) load(server, numbered(i));
  // A full garbage collection takes a thousand times as long.
  CHECK(call_us(server, sha) < 20 * alone + 50);
}

TEST_CASE("SCRIPT FLUSH gives the memory back at once") {
  Server server;
  server.eval("return 1");
  const uint64_t empty = server.machine_bytes();
  for (int i = 0; i < 3000; ++i) load(server, numbered(i));
  CHECK(server.machine_bytes() > empty + kMegabyte);
  CHECK(server.session.run({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  CHECK(server.machine_bytes() < empty + kMegabyte / 2);
  CHECK(server.eval("return 1") == ":1\r\n");
}

}  // namespace
