// Libraries of functions: in every thread, slow ones, one unit each, and damaged records.
#include <string>
#include <vector>

#include "engine/script/function_library.h"
#include "engine/script/script.h"
#include "engine/script/script_engine.h"
#include "engine/unit/effects.h"
#include "tests/support/memory_journal.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::MemoryJournal;
using sluice::test::ScriptServer;

struct Server : ScriptServer {
  std::string load(Bytes code) { return session.run({"FUNCTION", "LOAD", "REPLACE", code}); }
  std::string dump() {
    const std::string reply = session.run({"FUNCTION", "DUMP"});
    return reply.substr(reply.find('\n') + 1, reply.size() - reply.find('\n') - 3);
  }
  void replay(const MemoryJournal& journal) {
    const auto replay = engine.begin_replay();
    for (Lsn lsn = 1; lsn <= journal.last_lsn(); ++lsn) {
      const MemoryJournal::Unit unit = journal.unit(lsn);
      REQUIRE(replay->apply(unit.records, unit.count));
    }
    replay->finish();
  }
};

std::string library(const std::string& name, const std::vector<std::string>& functions) {
  std::string code = "#!lua name=" + name + "\n";
  for (const std::string& function : functions) {
    code += "redis.register_function('" + function + "', function() return '" + name + "' end)\n";
  }
  return code;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a library is there in every thread, and so is its successor") {
  Server server;
  Execution other(server.engine);
  EngineSession elsewhere(server.engine, other);
  CHECK(server.load("#!lua name=a\nlocal n = 0 redis.register_function('count', function() "
                    "n = n + 1 return n end)") == "$1\r\na\r\n");
  CHECK(server.session.run({"FCALL", "count", "0"}) == ":1\r\n");
  CHECK(server.session.run({"FCALL", "COUNT", "0"}) == ":2\r\n");
  // Variables of a library belong to the thread.
  CHECK(elsewhere.run({"FCALL", "count", "0"}) == ":1\r\n");
  CHECK(
      server.load("#!lua name=a\nredis.register_function('count', function() return 'new' end)") ==
      "$1\r\na\r\n");
  CHECK(server.session.run({"FCALL", "count", "0"}) == "$3\r\nnew\r\n");
  CHECK(elsewhere.run({"FCALL", "count", "0"}) == "$3\r\nnew\r\n");
  CHECK(elsewhere.run({"FUNCTION", "FLUSH"}) == "+OK\r\n");
  CHECK(server.session.run({"FCALL", "count", "0"}) == "-ERR Function not found\r\n");
}

TEST_CASE("what a library keeps of its loading cannot do more than loading") {
  Server server;
  CHECK(server.load("#!lua name=a\nlocal r, l = redis, redis.register_function\n"
                    "redis.register_function('call', function() return r.call('PING') end)\n"
                    "redis.register_function('more', function() l('z', function() end) end)\n"
                    "redis.register_function('set', function() r.x = 1 end)\n"
                    "redis.register_function('global', function() x = 1 end)\n"
                    "redis.register_function('env', function() return {type(_G.pairs), "
                    "type(redis.call), tostring(rawget(_G, 'KEYS'))} end)") == "$1\r\na\r\n");
  CHECK(contains(server.session.run({"FCALL", "call", "0"}), "nonexistent global variable 'call'"));
  CHECK(contains(server.session.run({"FCALL", "more", "0"}),
                 "redis.register_function can only be called on FUNCTION LOAD command"));
  CHECK(contains(server.session.run({"FCALL", "set", "0"}), "Attempt to modify a readonly table"));
  CHECK(contains(server.session.run({"FCALL", "global", "0"}), "modify a readonly table"));
  CHECK(server.session.run({"FCALL", "env", "0"}) ==
        "*3\r\n$8\r\nfunction\r\n$8\r\nfunction\r\n$3\r\nnil\r\n");
}

TEST_CASE("a slow function makes others BUSY, is shown, and is ended by FUNCTION KILL only") {
  Server server;
  server.engine.options().busy_reply_threshold_ms = 100;
  server.port.step_us = 60'000;
  Execution other(server.engine);
  EngineSession elsewhere(server.engine, other);
  std::vector<std::string> during;
  int polls = 0;
  server.port.on_poll = [&] {
    if (++polls != 3) return;
    during = {elsewhere.run({"GET", "a"}), elsewhere.run({"SCRIPT", "KILL"}),
              elsewhere.run({"FUNCTION", "STATS"}), elsewhere.run({"FUNCTION", "KILL"})};
  };
  server.load(
      "#!lua name=a\nredis.register_function('loop', function() while true do end end)\n"
      "redis.register_function('write', function(k) redis.call('SET', k[1], 1) "
      "for i = 1, 2e6 do end return 'done' end)");
  const std::string reply = server.session.run({"FCALL", "loop", "1", "key", "argument"});
  CHECK(contains(reply, "-ERR Script killed by user with SCRIPT KILL... script: loop, on "));
  REQUIRE(during.size() == 4);
  CHECK(during[0] ==
        "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN "
        "NOSAVE.\r\n");
  CHECK(during[1] == during[0]);
  CHECK(contains(during[2], "$4\r\nname\r\n$4\r\nloop\r\n$7\r\ncommand\r\n*5\r\n$5\r\nFCALL\r\n"));
  CHECK(during[3] == "+OK\r\n");
  CHECK_FALSE(server.engine.script_busy.load());
  polls = 0;
  CHECK(server.session.run({"FCALL", "write", "1", "a"}) == "$4\r\ndone\r\n");
  CHECK(during[3].substr(0, 12) == "-UNKILLABLE ");
}

TEST_CASE("a library that never ends, or wants too much memory, is refused and nothing is kept") {
  Server server;
  server.port.step_us = 60'000;
  CHECK(server.load("#!lua name=a\nwhile true do end") ==
        "-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n");
  server.engine.options().script_memory_limit_bytes = 16U << 20;
  CHECK(contains(server.load("#!lua name=a\nlocal s = 'x' while true do s = s .. s end"),
                 "-ERR Error registering functions: "));
  CHECK(server.session.run({"FUNCTION", "LIST"}) == "*0\r\n");
  CHECK(server.load("#!lua name=a\nredis.register_function('f', function() return 1 end)") ==
        "$1\r\na\r\n");
  CHECK(server.session.run({"FCALL", "f", "0"}) == ":1\r\n");
}

TEST_CASE("what changes no key counts as a change as well, so that a save rule keeps it") {
  Server server;
  const Bytes code = "#!lua name=a\nredis.register_function('f', function() return 1 end)";
  for (const std::vector<Bytes>& words : {std::vector<Bytes>{"FUNCTION", "LOAD", code},
                                          {"FUNCTION", "DELETE", "a"},
                                          {"FUNCTION", "LOAD", code},
                                          {"FUNCTION", "FLUSH"},
                                          {"SWAPDB", "0", "1"}}) {
    CAPTURE(words[0]);
    const uint64_t before = server.engine.changes.load();
    CHECK(server.session.run(words)[0] != '-');
    CHECK(server.engine.changes.load() == before + 1);
  }
}

TEST_CASE("a change of libraries is one record, and a read is none") {
  Server server;
  MemoryJournal journal;
  server.engine.attach_journal(&journal);
  server.load("#!lua name=a\nredis.register_function('f', function() return 1 end)");
  REQUIRE(journal.last_lsn() == 1);
  std::string records = journal.unit(1).records;
  Bytes left = records;
  Effect effect;
  REQUIRE(decode_effect(left, effect));
  CHECK(left.empty());
  CHECK(effect.type == EffectType::kFunctionPut);
  CHECK(effect.key == "a");
  server.load("#!lua name=b\nno functions");
  server.session.run({"FCALL", "f", "0"});
  server.session.run({"FUNCTION", "LIST"});
  CHECK(journal.last_lsn() == 1);
  server.session.run({"FUNCTION", "DELETE", "a"});
  records = journal.unit(2).records;
  left = records;
  REQUIRE(decode_effect(left, effect));
  CHECK(effect.type == EffectType::kFunctionGone);
}

TEST_CASE("a library that is replaced leaves the memory") {
  Server server;
  const auto load = [&](int number) {
    server.load("#!lua name=a\nlocal s = 'x' for i = 1, 20 do s = s .. s end s = s .. " +
                std::to_string(number) +
                "\nredis.register_function('f', function() return #s end)");
    return server.session.run({"FCALL", "f", "0"});
  };
  CHECK(load(10) == ":1048578\r\n");
  for (int i = 11; i < 60; ++i) load(i);
  CHECK(script_engine(server.engine).machine_bytes(true) < 40U << 20);
}

TEST_CASE("what FUNCTION RESTORE has put and removed is so after replay") {
  Server server;
  MemoryJournal journal;
  server.engine.attach_journal(&journal);
  server.load("#!lua name=a\nredis.register_function('f', function() return 1 end)");
  const std::string payload = server.dump();
  server.load("#!lua name=b\nredis.register_function('g', function() return 2 end)");
  server.session.run({"FUNCTION", "DELETE", "a"});
  REQUIRE(server.session.run({"FUNCTION", "RESTORE", payload, "FLUSH"}) == "+OK\r\n");
  Server replayed;
  replayed.replay(journal);
  for (Server* each : {&server, &replayed}) {
    CHECK(each->session.run({"FCALL", "f", "0"}) == ":1\r\n");
    CHECK(each->session.run({"FCALL", "g", "0"}) == "-ERR Function not found\r\n");
  }
}

TEST_CASE("a function that FUNCTION RESTORE moves to another library is there after replay") {
  for (const char* how : {"REPLACE", "FLUSH"}) {
    Server server;
    MemoryJournal journal;
    server.engine.attach_journal(&journal);
    server.load(library("a", {"f1", "f2"}));
    server.load(library("b", {"f3"}));
    const std::string payload = server.dump();
    server.session.run({"FUNCTION", "FLUSH"});
    server.load(library("a", {"f1"}));
    server.load(library("b", {"f2", "f3"}));
    REQUIRE(server.session.run({"FUNCTION", "RESTORE", payload, how}) == "+OK\r\n");
    Server replayed;
    replayed.replay(journal);
    for (Server* each : {&server, &replayed}) {
      CHECK(each->session.run({"FCALL", "f1", "0"}) == "$1\r\na\r\n");
      CHECK(each->session.run({"FCALL", "f2", "0"}) == "$1\r\na\r\n");
      CHECK(each->session.run({"FCALL", "f3", "0"}) == "$1\r\nb\r\n");
    }
  }
}

TEST_CASE("functions as a value of a record, whole and damaged") {
  FunctionLibrary library;
  library.functions.push_back({"plain", std::nullopt, 0});
  library.functions.push_back({"told", "what it does", kScriptNoWrites | kScriptAllowOom});
  library.functions.push_back({"empty", "", kScriptAllowStale});
  const std::string record = encode_functions(library);
  const auto read = decode_functions(record);
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK((*read)[i].name == library.functions[i].name);
    CHECK((*read)[i].description == library.functions[i].description);
    CHECK((*read)[i].flags == library.functions[i].flags);
  }
  size_t refused = 0;
  for (size_t size = 1; size < record.size(); ++size) {
    if (!decode_functions(Bytes(record).substr(0, size))) ++refused;
  }
  // After each of the first two functions the rest can be missing as a whole.
  CHECK(refused == record.size() - 1 - 2);
}

TEST_CASE("a function needs the shards of its keys and its name, until it reaches further") {
  Server server;
  server.load(
      "#!lua name=a\nredis.register_function('any', function(k, a) "
      "return redis.call('GET', a[1]) end)\nredis.register_function{function_name='all', "
      "callback=function() end, flags={'allow-cross-slot-keys'}}");
  const Command* const fcall = CommandTable::instance().find("fcall");
  REQUIRE(fcall != nullptr);
  const auto shards = [&](std::vector<Bytes> args) {
    return script_engine(server.engine).shards(server.execution, *fcall, args);
  };
  const ShardMask own = 1U << KeyRef("any").shard;
  CHECK(shards({"FCALL", "any", "0"}) == own);
  CHECK(shards({"FCALL", "any", "1", "{x}"}) == (own | 1U << KeyRef("{x}").shard));
  CHECK(shards({"FCALL", "all", "0"}) == kAllShards);
  CHECK(shards({"FCALL", "any", "x"}) == own);
  for (const Bytes key : {"b", "c", "d", "e"}) {
    CHECK(server.session.run({"FCALL", "any", "0", key}) == "$-1\r\n");
  }
  CHECK(shards({"FCALL", "any", "0"}) == kAllShards);
}

}  // namespace
