// Running scripts: conversion of values, errors, the cache, time, and one script as one unit.
#include <functional>
#include <string>
#include <vector>

#include "engine/script/script_engine.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::ScriptServer;

using Server = ScriptServer;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Stores what is appended, and reports it as durable.
class MemoryJournal final : public Journal {
 public:
  Lsn append(Bytes, uint32_t record_count, int64_t, bool, ByteBuffer*) override {
    counts.push_back(record_count);
    return counts.size();
  }
  Lsn last_lsn() const override { return counts.size(); }
  Lsn durable_lsn() const override { return counts.size(); }
  std::vector<uint32_t> counts;
};

TEST_CASE("Lua values become replies by Redis's rules") {
  Server server;
  CHECK(server.eval("return 3.99") == ":3\r\n");
  CHECK(server.eval("return -3.99") == ":-3\r\n");
  CHECK(server.eval("return 1e300") == ":-9223372036854775808\r\n");
  CHECK(server.eval("return 0/0") == ":-9223372036854775808\r\n");
  CHECK(server.eval("return 'a\\0b'") == std::string("$3\r\na\0b\r\n", 9));
  CHECK(server.eval("return true") == ":1\r\n");
  CHECK(server.eval("return false") == "$-1\r\n");
  CHECK(server.eval("return nil") == "$-1\r\n");
  CHECK(server.eval("") == "$-1\r\n");
  CHECK(server.eval("return function() end") == "$-1\r\n");
  CHECK(server.eval("return {1, 'x', {2}, nil, 5}") == "*3\r\n:1\r\n$1\r\nx\r\n*1\r\n:2\r\n");
  CHECK(server.eval("return {}") == "*0\r\n");
  CHECK(server.eval("return {ok = 'FINE\\r\\nx'}") == "+FINE  x\r\n");
  CHECK(server.eval("return {err = 'MY text'}") == "-MY text\r\n");
  CHECK(server.eval("return {double = 3.5}") == "$3\r\n3.5\r\n");
  CHECK(server.eval("return {map = {a = 1}}") == "*2\r\n$1\r\na\r\n:1\r\n");
  CHECK(server.eval("return {set = {a = true}}") == "*1\r\n$1\r\na\r\n");
  CHECK(server.eval("return {big_number = '123'}") == "$3\r\n123\r\n");
  CHECK(server.eval("return {verbatim_string = {format = 'txt', string = 'x'}}") == "$1\r\nx\r\n");
  // A named field after numbered ones is still found.
  CHECK(server.eval("local t = {1, 2, 3, 4, 5} t.err = 'E x' return t") == "-E x\r\n");
  CHECK(server.eval("local t = {} for i = 1, 100 do t[i] = i end t.ok = 'x' return t") == "+x\r\n");
  server.session.client.protocol = 3;
  CHECK(server.eval("return {double = 3.5}") == ",3.5\r\n");
  CHECK(server.eval("return {map = {a = 1}}") == "%1\r\n$1\r\na\r\n:1\r\n");
  CHECK(server.eval("return {set = {a = true}}") == "~1\r\n$1\r\na\r\n");
  CHECK(server.eval("return nil") == "_\r\n");
  CHECK(server.eval("return true") == ":1\r\n");
  CHECK(server.eval("redis.setresp(3) return true") == "#t\r\n");
  CHECK(server.eval("return {verbatim_string = {format = 'txt', string = 'x'}}") ==
        "=5\r\ntxt:x\r\n");
}

TEST_CASE("answers of commands become Lua values, in RESP2 and in RESP3") {
  Server server;
  server.session.run({"HSET", "h", "f", "v"});
  server.session.run({"SADD", "s", "m"});
  server.session.run({"ZADD", "z", "1.5", "m"});
  CHECK(server.eval("local r = redis.call('HGETALL', 'h') return {r[1], r[2], #r}") ==
        "*3\r\n$1\r\nf\r\n$1\r\nv\r\n:2\r\n");
  CHECK(server.eval("redis.setresp(3) return redis.call('HGETALL', 'h').map.f") == "$1\r\nv\r\n");
  CHECK(server.eval("redis.setresp(3) return tostring(redis.call('SMEMBERS', 's').set.m)") ==
        "$4\r\ntrue\r\n");
  CHECK(server.eval("return redis.call('ZSCORE', 'z', 'm')") == "$3\r\n1.5\r\n");
  CHECK(server.eval("redis.setresp(3) return redis.call('ZSCORE', 'z', 'm').double * 2") ==
        ":3\r\n");
  CHECK(server.eval("return tostring(redis.call('GET', 'none'))") == "$5\r\nfalse\r\n");
  CHECK(server.eval("redis.setresp(3) return tostring(redis.call('GET', 'none'))") ==
        "$3\r\nnil\r\n");
  CHECK(server.eval("return redis.call('SET', 'k', 'v').ok") == "$2\r\nOK\r\n");
  CHECK(server.eval("return type(redis.call('STRLEN', 'k'))") == "$6\r\nnumber\r\n");
  CHECK(server.eval("return {#redis.call('COMMAND'), #redis.call('COMMAND', 'DOCS')} ")
            .substr(0, 2) == "*2");
}

TEST_CASE("number arguments become text as printf writes them") {
  Server server;
  const auto as_text = [&](const char* number) {
    const std::string reply = server.eval("redis.call('SET', 'n', " + std::string(number) +
                                          ") return redis.call('GET', 'n')");
    return reply.substr(reply.find('\n') + 1, reply.size() - reply.find('\n') - 3);
  };
  CHECK(as_text("1") == "1");
  CHECK(as_text("-7") == "-7");
  CHECK(as_text("0.1") == "0.10000000000000001");
  CHECK(as_text("3.14") == "3.1400000000000001");
  CHECK(as_text("1e15") == "1000000000000000");
  CHECK(as_text("12345678901234567") == "12345678901234568");
  CHECK(as_text("1e17") == "1e+17");
  CHECK(as_text("-0") == "-0");
  CHECK(as_text("1/0") == "inf");
}

TEST_CASE("errors name the script and the line that called") {
  Server server;
  server.session.run({"SET", "text", "abc"});
  for (const char* script :
       {"return redis.call('INCR', 'text')", "local x = redis.call('INCR', 'text')",
        "return coroutine.wrap(function() return redis.call('INCR', 'text') end)()"}) {
    CAPTURE(script);
    const std::string reply = server.eval(script);
    CHECK(contains(reply, "-ERR value is not an integer or out of range script: "));
    CHECK(contains(reply, ", on @user_script:1.\r\n"));
  }
  CHECK(contains(server.eval("\n\n\nreturn redis.call('NOSUCH')"),
                 "-ERR Unknown Redis command called from script script: "));
  CHECK(contains(server.eval("\n\n\nreturn redis.call('NOSUCH')"), "on @user_script:4.\r\n"));
  CHECK(server.eval("return redis.pcall('INCR', 'text')") ==
        "-ERR value is not an integer or out of range\r\n");
  CHECK(server.eval("local ok, e = pcall(redis.call, 'INCR', 'text') return e") ==
        "$43\r\nERR value is not an integer or out of range\r\n");
  CHECK(contains(server.eval("error({1, 2})"), "without a field 'err'"));
  CHECK(contains(server.eval("error()"), "-ERR nil script: "));
}

TEST_CASE("a script does what it did before it failed") {
  Server server;
  CHECK(server.eval("redis.call('SET', 'a', 1) redis.call('NOSUCH')")[0] == '-');
  CHECK(server.session.run({"GET", "a"}) == "$1\r\n1\r\n");
}

TEST_CASE("SELECT inside a script does not change the caller's database") {
  Server server;
  CHECK(server.eval(
            "redis.call('SELECT', 5) redis.call('SET', 'k', 5) return redis.call('GET', 'k')") ==
        "$1\r\n5\r\n");
  CHECK(server.session.client.database == 0);
  CHECK(server.session.run({"EXISTS", "k"}) == ":0\r\n");
  CHECK(server.eval("return redis.call('EXISTS', 'k')") == ":0\r\n");
}

TEST_CASE("EVALSHA finds scripts in either case, in every thread, until they are flushed") {
  Server server;
  const std::string sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
  const std::string upper = "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB";
  CHECK(server.session.run({"EVALSHA", sha, "0"}).substr(0, 9) == "-NOSCRIPT");
  CHECK(server.session.run({"SCRIPT", "LOAD", "return 1"}) == "$40\r\n" + sha + "\r\n");
  CHECK(server.session.run({"EVALSHA", sha, "0"}) == ":1\r\n");
  CHECK(server.session.run({"EVALSHA", upper, "0"}) == ":1\r\n");
  CHECK(server.session.run({"SCRIPT", "EXISTS", upper, sha, "x"}) == "*3\r\n:1\r\n:1\r\n:0\r\n");
  Execution other(server.engine);
  EngineSession elsewhere(server.engine, other);
  CHECK(elsewhere.run({"EVALSHA", upper, "0"}) == ":1\r\n");
  CHECK(script_engine(server.engine).script_count() == 1);
  CHECK(server.session.run({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  CHECK(elsewhere.run({"EVALSHA", sha, "0"}).substr(0, 9) == "-NOSCRIPT");
  CHECK(server.session.run({"EVALSHA", sha, "0"}).substr(0, 9) == "-NOSCRIPT");
  CHECK(server.eval("return 1") == ":1\r\n");
  CHECK(elsewhere.run({"EVALSHA", sha, "0"}) == ":1\r\n");
}

TEST_CASE("seven thousand unpacked values fit into one call") {
  Server server;
  CHECK(server.eval("local t = {} for i = 1, 7000 do t[i] = i end "
                    "redis.call('RPUSH', 'list', unpack(t)) return redis.call('LLEN', 'list')") ==
        ":7000\r\n");
  CHECK(server.eval("return #{unpack(redis.call('LRANGE', 'list', 0, -1))}") == ":7000\r\n");
}

TEST_CASE("the seed's script gives out jobs up to the cap") {
  Server server;
  const char* const kSeed =
      "local active_key = KEYS[1] local pending_key = KEYS[2] local max_active = tonumber(ARGV[1]) "
      "local current = redis.call('SCARD', active_key) if current >= max_active then return nil "
      "end "
      "local result = redis.call('ZPOPMIN', pending_key, 1) if #result == 0 then return nil end "
      "local exec_id = result[1] redis.call('SADD', active_key, exec_id) return exec_id";
  CHECK(server.eval(kSeed, {"active", "pending"}, {"2"}) == "$-1\r\n");
  server.session.run({"ZADD", "pending", "3", "c", "1", "a", "2", "b"});
  CHECK(server.eval(kSeed, {"active", "pending"}, {"2"}) == "$1\r\na\r\n");
  CHECK(server.eval(kSeed, {"active", "pending"}, {"2"}) == "$1\r\nb\r\n");
  CHECK(server.eval(kSeed, {"active", "pending"}, {"2"}) == "$-1\r\n");
  server.session.run({"SREM", "active", "a"});
  CHECK(server.eval(kSeed, {"active", "pending"}, {"2"}) == "$1\r\nc\r\n");
}

TEST_CASE("a script, and a MULTI with scripts, is one unit of the journal") {
  MemoryJournal journal;
  Server server;
  server.engine.attach_journal(&journal);
  server.eval("for i = 1, 10 do redis.call('SET', 'k' .. i, i) end");
  CHECK(journal.counts == std::vector<uint32_t>{10});
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  server.session.run({"EVAL", "redis.call('SET', 'b', 2) redis.call('SET', 'c', 3)", "0"});
  server.session.run({"EXEC"});
  CHECK((journal.counts == std::vector<uint32_t>{10, 3}));
  server.eval("return redis.call('GET', 'a')");
  CHECK(journal.counts.size() == 2);
}

TEST_CASE("read-only scripts may not write") {
  Server server;
  CHECK(contains(server.session.run({"EVAL_RO", "return redis.call('SET', 'a', 1)", "0"}),
                 "-ERR Write commands are not allowed from read-only scripts. script: "));
  CHECK(server.session.run({"EVAL_RO", "return redis.call('GET', 'a')", "0"}) == "$-1\r\n");
  CHECK(contains(server.eval("#!lua flags=no-writes\nreturn redis.call('SET', 'a', 1)"),
                 "Write commands are not allowed from read-only scripts."));
  CHECK(contains(server.session.run({"EVAL_RO", "#!lua\nreturn 1", "0"}),
                 "-ERR Can not execute a script with write flag using *_ro command."));
  CHECK(server.eval("#!lua flags=allow-oom,no-cluster\nreturn 1") == ":1\r\n");
  CHECK(server.eval("#!lua flags=odd\nreturn 1") ==
        "-ERR Unexpected flag in script shebang: odd\r\n");
}

TEST_CASE("out of memory refuses what grows, but not in the middle of a script") {
  Server server;
  server.engine.options().max_memory_bytes = 1000;
  server.port.used_bytes = 2000;
  CHECK(contains(server.eval("return redis.call('SET', 'a', 1)"), "-OOM command not allowed"));
  CHECK(server.eval("redis.call('DEL', 'a') return redis.call('SET', 'a', 1)") == "+OK\r\n");
  // What one has written lets no other one write.
  CHECK(contains(server.eval("return redis.call('SET', 'a', 2)"), "-OOM command not allowed"));
  CHECK(contains(server.eval("#!lua\nreturn 1"), "-OOM "));
  CHECK(server.eval("#!lua flags=allow-oom\nreturn redis.call('SET', 'a', 1)") == "+OK\r\n");
  CHECK(server.eval("#!lua flags=no-writes\nreturn redis.call('GET', 'a')") == "$1\r\n1\r\n");
}

TEST_CASE("a declared script needs the shards of its keys only") {
  Server server;
  const Command& eval = *CommandTable::instance().find("eval");
  const std::vector<Bytes> args{"EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "k"};
  CHECK(script_engine(server.engine).shards(server.execution, eval, args) ==
        (1U << KeyRef("k").shard));
  const std::vector<Bytes> free{"EVAL", "#!lua flags=allow-cross-slot-keys\nreturn 1", "1", "k"};
  CHECK(script_engine(server.engine).shards(server.execution, eval, free) == kAllShards);
  const std::vector<Bytes> plain{"EVAL", "return 1", "1", "k"};
  CHECK(script_engine(server.engine).shards(server.execution, eval, plain) == kAllShards);
}

TEST_CASE("a slow script makes others BUSY and can be killed before it writes") {
  Server server;
  server.engine.options().busy_reply_threshold_ms = 100;
  server.port.step_us = 60'000;
  std::string during;
  std::string killed;
  Execution other(server.engine);
  EngineSession elsewhere(server.engine, other);
  int polls = 0;
  server.port.on_poll = [&] {
    if (++polls != 3) return;
    during = elsewhere.run({"GET", "a"});
    killed = elsewhere.run({"SCRIPT", "KILL"});
  };
  CHECK(elsewhere.run({"SCRIPT", "KILL"}) == "-NOTBUSY No scripts in execution right now.\r\n");
  for (const char* script :
       {"while true do end",
        "while true do pcall(function() while true do end end) end",
        "local f f = function() while true do pcall(f) end end f()",
        "coroutine.wrap(function() while true do end end)()",
        "xpcall(error, function() while true do end end)",
        "table.sort({3, 2, 1}, function(a, b) while true do end end)",
        "string.gsub('x', 'x', function() while true do end end)",
        "load(function() while true do end end) while true do end",
        "coroutine.resume(coroutine.create(function() while true do end end)) while true do end",
        "while true do xpcall(function() while true do end end, function() while true do end end) "
        "end",
        "string.find(string.rep('a', 5000), string.rep('.-', 20) .. 'b')",
        "string.match(string.rep('a', 5000), string.rep('(.-)', 20) .. 'b')",
        "string.gsub(string.rep('a', 5000), string.rep('a*', 20) .. 'b', '')",
        "for _ in string.gmatch(string.rep('a', 5000), string.rep('a?', 5000) .. 'b') do end",
        "pcall(string.find, string.rep('a', 5000), string.rep('.-', 20) .. 'b') while true do end",
        "while true do local s = string.rep('x', 2^26) end",
        "local s = string.rep('x', 2^26) while true do local t = s .. 'y' end",
        "local t = {} while true do pcall(function() t[#t + 1] = #t .. string.rep('x', 2^22) end) "
        "end",
        "local s = string.rep('x', 2^24) while true do redis.sha1hex(s) end",
        "local s = 'return ' .. string.rep('a or ', 5000) .. 'a' while true do loadstring(s) end",
        "local t = {} for i = 1, 2^20 do t[i] = 12345 end while true do table.concat(t, ',') "
        "end"}) {
    CAPTURE(script);
    polls = 0;
    const std::string reply = server.eval(script);
    CHECK(contains(reply, "-ERR Script killed by user with SCRIPT KILL... script: "));
    CHECK(during ==
          "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
          "NOSAVE.\r\n");
    CHECK(killed == "+OK\r\n");
    CHECK_FALSE(server.engine.script_busy.load());
    CHECK(server.eval("return 1") == ":1\r\n");
  }
  polls = 0;
  CHECK(server.eval("redis.call('SET', 'a', 1) for i = 1, 2e6 do end return 'done'") ==
        "$4\r\ndone\r\n");
  CHECK(killed.substr(0, 12) == "-UNKILLABLE ");
  CHECK(elsewhere.run({"GET", "a"}) == "$1\r\n1\r\n");
}

}  // namespace
