// Values that are the same after recovery, from the journal and from a checkpoint.
#include "engine/commands/complete_engine.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

// An engine on a data directory, set up like the server's.
struct Kept {
  explicit Kept(const std::string& directory) : engine(port, 7), execution(engine) {
    const std::unique_ptr<Replay> replay = engine.begin_replay();
    auto opened = Store::open(store_options(directory, SyncMode::kEverySecond), *replay);
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    store = std::move(*opened);
    engine.attach_journal(&store->journal());
    store->start_checkpoints([this] { return engine.begin_walk(); }, [] { return 1; });
  }

  QuietServer port;
  CompleteEngine engine;
  Execution execution;
  std::unique_ptr<Store> store;
};

// Checks that `show` replies the same before and after recovery, with the data that `fill` creates.
void check_kept(const std::vector<std::vector<std::string>>& fill,
                const std::vector<std::vector<std::string>>& show) {
  const auto run = [](EngineSession& session, const std::vector<std::string>& request) {
    const std::vector<Bytes> args(request.begin(), request.end());
    return session.run(args);
  };
  for (const CloseMode mode : {CloseMode::kFlush, CloseMode::kCheckpoint}) {
    TempDirectory directory(true);
    std::vector<std::string> before;
    {
      Kept kept(directory.path());
      EngineSession session(kept.engine, kept.execution);
      for (const auto& request : fill) run(session, request);
      for (const auto& request : show) before.push_back(run(session, request));
      REQUIRE(kept.store->close(mode).ok());
    }
    Kept kept(directory.path());
    EngineSession session(kept.engine, kept.execution);
    for (size_t i = 0; i < show.size(); ++i) CHECK(run(session, show[i]) == before[i]);
    REQUIRE(kept.store->close(CloseMode::kFlush).ok());
  }
}

}  // namespace

TEST_CASE("a negative zero stays one in a large sorted set, as in Redis") {
  std::vector<std::vector<std::string>> fill;
  for (int i = 0; i < 200; ++i) fill.push_back({"ZADD", "z", "1", "m" + std::to_string(i)});
  fill.push_back({"ZADD", "z", "-0", "negative"});
  fill.push_back({"ZADD", "small", "-0", "negative"});
  check_kept(fill, {{"ZSCORE", "z", "negative"}, {"ZSCORE", "small", "negative"}});

  QuietServer port;
  CompleteEngine engine(port, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  for (const auto& request : fill) {
    session.run(std::vector<Bytes>(request.begin(), request.end()));
  }
  CHECK(session.run({"ZSCORE", "z", "negative"}) == "$2\r\n-0\r\n");
  CHECK(session.run({"ZSCORE", "small", "negative"}) == "$1\r\n0\r\n");
  // The same under another name.
  CHECK(session.run({"RENAME", "z", "other"}) == "+OK\r\n");
  CHECK(session.run({"ZSCORE", "other", "negative"}) == "$2\r\n-0\r\n");
}

TEST_CASE("what was removed from a collection stays removed, also from a large one") {
  std::vector<std::vector<std::string>> fill;
  std::vector<std::vector<std::string>> show;
  for (const std::string& large : {std::string(), std::string("large ")}) {
    for (int i = 0; i < (large.empty() ? 5 : 600); ++i) {
      const std::string name = "m" + std::to_string(i);
      fill.push_back({"HSET", large + "hash", name, "1"});
      fill.push_back({"SADD", large + "set", name});
      fill.push_back({"ZADD", large + "sorted set", "1", name});
      fill.push_back({"RPUSH", large + "list", name});
    }
    fill.push_back({"HDEL", large + "hash", "m1", "m3"});
    fill.push_back({"SREM", large + "set", "m1", "m3"});
    fill.push_back({"ZREM", large + "sorted set", "m1", "m3"});
    fill.push_back({"LREM", large + "list", "0", "m1"});
    fill.push_back({"RPOP", large + "list"});
    show.push_back({"HMGET", large + "hash", "m0", "m1", "m2", "m3", "m4"});
    show.push_back({"SMISMEMBER", large + "set", "m0", "m1", "m2", "m3", "m4"});
    show.push_back({"ZRANGE", large + "sorted set", "0", "-1"});
    show.push_back({"LRANGE", large + "list", "0", "-1"});
  }
  check_kept(fill, show);
}

TEST_CASE("a negative zero stays one when the set has shrunk") {
  std::vector<std::vector<std::string>> fill;
  for (int i = 0; i < 200; ++i) fill.push_back({"ZADD", "z", "1", "m" + std::to_string(i)});
  fill.push_back({"ZADD", "z", "-0", "negative"});
  for (int i = 0; i < 190; ++i) fill.push_back({"ZREM", "z", "m" + std::to_string(i)});
  check_kept(fill, {{"ZSCORE", "z", "negative"}, {"ZRANGE", "z", "0", "-1", "WITHSCORES"}});
}

TEST_CASE("libraries of functions are kept, and what became of them") {
  const std::string counts =
      "#!lua name=counts\nredis.register_function{function_name='count', flags={'no-writes'}, "
      "description='how many', callback=function(keys) return redis.call('LLEN', keys[1]) end}";
  const std::string adds =
      "#!lua name=adds\nredis.register_function('add', function(keys, values) "
      "return redis.call('RPUSH', keys[1], unpack(values)) end)\n"
      "redis.register_function('nothing', function() return 'old' end)";
  const std::string replaced =
      "#!lua name=adds\nredis.register_function('add', function(keys, values) "
      "return redis.call('RPUSH', keys[1], values[1]) end)";
  check_kept({{"FUNCTION", "LOAD", counts},
              {"FUNCTION", "LOAD", adds},
              {"FUNCTION", "LOAD", "#!lua name=gone\nredis.register_function('x', function() end)"},
              {"FCALL", "add", "1", "list", "a", "b"},
              {"FUNCTION", "LOAD", "REPLACE", replaced},
              {"FCALL", "add", "1", "list", "c", "not this"},
              {"FUNCTION", "DELETE", "gone"},
              {"SWAPDB", "0", "3"},
              {"FLUSHALL"},
              {"RPUSH", "list", "one"}},
             {{"FUNCTION", "LIST", "WITHCODE"},
              {"FUNCTION", "STATS"},
              {"FCALL_RO", "count", "1", "list"},
              {"FCALL", "nothing", "0"},
              {"FCALL", "x", "0"}});
  check_kept({{"FUNCTION", "LOAD", counts}, {"FUNCTION", "FLUSH"}}, {{"FUNCTION", "LIST"}});
}

TEST_CASE("a stream comes back with its nodes, its groups and what is pending") {
  std::vector<std::vector<std::string>> fill;
  for (int i = 1; i <= 450; ++i) {
    fill.push_back({"XADD", "s", std::to_string(i) + "-1", "name", std::to_string(i * 7)});
  }
  fill.push_back({"XGROUP", "CREATE", "s", "g", "0"});
  fill.push_back({"XGROUP", "CREATE", "s", "h", "100", "ENTRIESREAD", "100"});
  fill.push_back({"XREADGROUP", "GROUP", "g", "alice", "COUNT", "40", "STREAMS", "s", ">"});
  fill.push_back({"XREADGROUP", "GROUP", "g", "bob", "COUNT", "5", "STREAMS", "s", ">"});
  fill.push_back({"XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", "0"});
  fill.push_back({"XCLAIM", "s", "g", "carol", "0", "2-1", "3-1", "RETRYCOUNT", "9"});
  fill.push_back({"XACK", "s", "g", "5-1", "6-1"});
  fill.push_back({"XDEL", "s", "150-1", "151-1", "449-1"});
  fill.push_back({"XTRIM", "s", "MAXLEN", "340"});
  fill.push_back({"XADD", "empty", "9-9", "a", "b"});
  fill.push_back({"XDEL", "empty", "9-9"});
  check_kept(fill, {{"XRANGE", "s", "-", "+"},
                    {"XINFO", "STREAM", "s"},
                    {"XINFO", "GROUPS", "s"},
                    {"XPENDING", "s", "g"},
                    {"XPENDING", "s", "g", "-", "+", "3", "carol"},
                    {"XINFO", "STREAM", "s", "FULL"},
                    {"XINFO", "STREAM", "empty"}});
}

TEST_CASE("what one trim has taken from many nodes of a stream does not come back") {
  std::vector<std::vector<std::string>> fill;
  for (int i = 1; i <= 1000; ++i) fill.push_back({"XADD", "s", std::to_string(i), "f", "v"});
  fill.push_back({"XTRIM", "s", "MAXLEN", "50"});
  check_kept(fill, {{"XLEN", "s"}, {"XRANGE", "s", "-", "+", "COUNT", "2"}});
}
