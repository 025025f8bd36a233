// MULTI, EXEC and WATCH.
#include <string>

#include "engine/execution/transaction.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::ScriptServer;

struct Server : ScriptServer {
  Execution other_execution{engine};
  EngineSession other{engine, other_execution};

  Server() { set_now_ms(1'000'000); }
  void set_now_ms(int64_t now_ms) {
    execution.set_now_ms(now_ms);
    other_execution.set_now_ms(now_ms);
  }
  size_t watched_keys() NO_THREAD_SAFETY_ANALYSIS {
    size_t count = 0;
    for (unsigned i = 0; i < kShards; ++i) count += engine.shard(i).watched_keys;
    return count;
  }
  size_t watched_names() NO_THREAD_SAFETY_ANALYSIS {
    size_t count = 0;
    for (const Shard& shard : engine.shards()) {
      for (const auto& by_key : shard.watchers) count += by_key.size();
    }
    return count;
  }
};

TEST_CASE("EXEC runs what was queued, and an error of one stops none") {
  Server server;
  CHECK(server.session.run({"MULTI"}) == "+OK\r\n");
  CHECK(server.session.run({"SET", "a", "x"}) == "+QUEUED\r\n");
  CHECK(server.session.run({"INCR", "a"}) == "+QUEUED\r\n");
  CHECK(server.session.run({"GET", "a"}) == "+QUEUED\r\n");
  CHECK(server.other.run({"GET", "a"}) == "$-1\r\n");
  CHECK(server.session.run({"EXEC"}) ==
        "*3\r\n+OK\r\n-ERR value is not an integer or out of range\r\n$1\r\nx\r\n");
  CHECK(server.session.run({"EXEC"}) == "-ERR EXEC without MULTI\r\n");
}

TEST_CASE("a command that could not be queued ends the transaction at EXEC") {
  Server server;
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  CHECK(server.session.run({"NOSUCH"})[0] == '-');
  CHECK(server.session.run({"EXEC"}) ==
        "-EXECABORT Transaction discarded because of previous errors.\r\n");
  CHECK(server.session.run({"EXISTS", "a"}) == ":0\r\n");
}

TEST_CASE("a change of a watched key by anyone makes EXEC answer null") {
  Server server;
  CHECK(server.session.run({"WATCH", "a", "b", "a"}) == "+OK\r\n");
  CHECK(server.watched_keys() == 2);
  server.other.run({"SET", "b", "1"});
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  CHECK(server.session.run({"EXEC"}) == "*-1\r\n");
  CHECK(server.watched_keys() == 0);
  // The same with RESP3, and with a change by the own connection.
  server.session.client.protocol = 3;
  server.session.run({"WATCH", "a"});
  server.session.run({"SET", "a", "2"});
  server.session.run({"MULTI"});
  CHECK(server.session.run({"EXEC"}) == "_\r\n");
}

TEST_CASE("FLUSHDB changes the watched keys that exist, and no others") {
  for (const char* flush : {"FLUSHDB", "FLUSHALL"}) {
    Server server;
    server.session.run({"SET", "a", "1"});
    server.session.run({"WATCH", "a", "none"});
    server.other.run({flush});
    server.session.run({"MULTI"});
    server.session.run({"SET", "b", "1"});
    CHECK(server.session.run({"EXEC"}) == "*-1\r\n");
    server.session.run({"WATCH", "none"});
    server.other.run({flush});
    server.session.run({"MULTI"});
    server.session.run({"SET", "b", "1"});
    CHECK(server.session.run({"EXEC"}) == "*1\r\n+OK\r\n");
  }
}

TEST_CASE("what does not change a watched key does not break the watch") {
  Server server;
  server.session.run({"SET", "a", "1"});
  server.session.run({"WATCH", "a", "none"});
  server.other.run({"GET", "a"});
  server.other.run({"SET", "other", "1"});
  server.other.run({"SELECT", "1"});
  server.other.run({"SET", "a", "9"});
  server.other.run({"DEL", "none"});
  server.session.run({"MULTI"});
  server.session.run({"INCR", "a"});
  CHECK(server.session.run({"EXEC"}) == "*1\r\n:2\r\n");
}

TEST_CASE("UNWATCH, DISCARD, EXEC, RESET and the end of the connection forget the keys") {
  Server server;
  for (const char* end : {"UNWATCH", "RESET"}) {
    server.session.run({"WATCH", "a"});
    CHECK(server.watched_keys() == 1);
    server.session.run({end});
    CHECK(server.watched_keys() == 0);
  }
  for (const char* end : {"DISCARD", "EXEC"}) {
    server.session.run({"WATCH", "a"});
    server.session.run({"MULTI"});
    server.session.run({end});
    CHECK(server.watched_keys() == 0);
  }
  {
    Execution execution(server.engine);
    EngineSession leaving(server.engine, execution);
    leaving.run({"WATCH", "a", "b", "c"});
    CHECK(server.watched_keys() == 3);
  }
  CHECK(server.watched_keys() == 0);
  CHECK(server.watched_names() == 0);
  // UNWATCH also clears a watch whose key has changed.
  server.session.run({"WATCH", "a"});
  server.other.run({"SET", "a", "1"});
  server.session.run({"UNWATCH"});
  server.session.run({"MULTI"});
  CHECK(server.session.run({"EXEC"}) == "*0\r\n");
}

TEST_CASE("a watched key that expires is a changed key; one that had expired before is not") {
  Server server;
  server.session.run({"SET", "a", "1", "PX", "100"});
  server.session.run({"WATCH", "a"});
  server.set_now_ms(1'000'200);
  server.session.run({"MULTI"});
  server.session.run({"PING"});
  CHECK(server.session.run({"EXEC"}) == "*-1\r\n");
  server.session.run({"SET", "b", "1", "PX", "100"});
  server.set_now_ms(1'000'400);
  server.session.run({"WATCH", "b"});
  server.session.run({"MULTI"});
  server.session.run({"EXISTS", "b"});
  CHECK(server.session.run({"EXEC"}) == "*1\r\n:0\r\n");
}

TEST_CASE("EXEC locks what its commands need, scripts and all") {
  Server server;
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  server.session.run({"MSET", "b", "2", "c", "3"});
  server.session.run({"EVAL", "return redis.call('MGET', 'a', 'b', 'c')", "0"});
  server.session.run({"UNWATCH"});
  server.session.run({"SELECT", "3"});
  server.session.run({"BLPOP", "nothing", "0"});
  CHECK(server.session.run({"EXEC"}) ==
        "*6\r\n+OK\r\n+OK\r\n*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n+OK\r\n+OK\r\n*-1\r\n");
  CHECK(server.session.client.database == 3);
  CHECK_FALSE(server.session.client.in_multi);
}

TEST_CASE("out of memory at EXEC refuses all, where one of them grows the data") {
  Server server;
  server.engine.options().max_memory_bytes = 1000;
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  server.port.used_bytes = 2000;
  CHECK(server.session.run({"EXEC"}) ==
        "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > "
        "'maxmemory'.\r\n");
  CHECK(server.session.run({"EXISTS", "a"}) == ":0\r\n");
}

TEST_CASE("a connection does not keep the room of a long transaction") {
  Server server;
  for (const Bytes end : {"EXEC", "DISCARD"}) {
    server.session.run({"MULTI"});
    for (int i = 0; i < 1000; ++i) server.session.run({"PING"});
    server.session.run({end});
    CHECK(server.session.client.queued.capacity() < 100);
  }
}

TEST_CASE("nested MULTI and WATCH inside MULTI are errors that lose nothing") {
  Server server;
  server.session.run({"MULTI"});
  CHECK(server.session.run({"MULTI"}) == "-ERR MULTI calls can not be nested\r\n");
  CHECK(server.session.run({"WATCH", "a"}) == "-ERR WATCH inside MULTI is not allowed\r\n");
  server.session.run({"SET", "a", "1"});
  CHECK(server.session.run({"EXEC"}) == "*1\r\n+OK\r\n");
  CHECK(server.session.run({"DISCARD"}) == "-ERR DISCARD without MULTI\r\n");
}

TEST_CASE("a declared script that reaches further may stand twice in a transaction") {
  Server server;
  const char* const script =
      "#!lua\nreturn redis.call('MGET', 'one', 'two', 'three', 'four', 'five', 'six')";
  server.session.run({"MULTI"});
  server.session.run({"EVAL", script, "1", "a"});
  server.session.run({"EVAL", script, "1", "a"});
  const std::string nulls = "*6\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n";
  CHECK(server.session.run({"EXEC"}) == "*2\r\n" + nulls + nulls);
}

}  // namespace
