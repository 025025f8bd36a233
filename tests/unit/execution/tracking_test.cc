// CLIENT TRACKING where redis-server cannot serve as a reference: the contents of the table, and
// what is removed when a connection ends.
#include <memory>
#include <string>
#include <utility>

#include "engine/clients/tracking.h"
#include "engine/commands/complete_engine.h"
#include "engine/keyspace/events.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::QuietServer;

// A connection that records the keys of invalidation messages.
class Inbox final : public ClientPort {
 public:
  void deliver(ByteBuffer bytes, Lsn) override { text += bytes.view(); }
  void deliver_blocked_reply(ByteBuffer bytes, Lsn) override { text += bytes.view(); }
  void deliver_invalidation(ByteBuffer payload, bool, Lsn) override { text += payload.view(); }
  std::string take() { return std::exchange(text, {}); }
  std::string text;
};

struct Server {
  QuietServer port;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  EngineSession writer{engine, execution};
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

  Server() { execution.set_now_ms(1'000'000); }
};

// A connection with RESP3, whose messages go to the inbox.
struct Reader : EngineSession {
  explicit Reader(Server& server) : EngineSession(server.engine, server.execution) {
    client.port = server.inbox;
    client.protocol = 3;
  }
};

constexpr Bytes kToldOfA = "*1\r\n$1\r\na\r\n";

TEST_CASE("a key that was read is told once, and leaves the table") {
  Server server;
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON"});
  CHECK(server.engine.observing.load() == kObserveTracking);
  reader.run({"MGET", "a", "b"});
  CHECK(server.engine.tracking().keys() == 2);
  server.writer.run({"SADD", "a", "1", "2", "3"});
  CHECK(server.inbox->take() == kToldOfA);
  CHECK(server.engine.tracking().items() == 1);
  server.writer.run({"SADD", "a", "4"});
  CHECK(server.inbox->take().empty());
  // The invalidation by its own change follows the reply.
  CHECK(reader.run({"SET", "b", "1"}) == "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n");
}

TEST_CASE("who has gone is told nothing, and with the last one nobody looks any more") {
  Server server;
  {
    EngineSession reader(server.engine, server.execution);
    reader.client.port = server.inbox;
    reader.run({"CLIENT", "TRACKING", "ON"});
    reader.run({"GET", "a"});
    EngineSession other(server.engine, server.execution);
    other.run({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x"});
    CHECK(server.engine.tracking().clients() == 2);
    CHECK(server.engine.tracking().prefixes() == 1);
  }
  CHECK(server.engine.tracking().clients() == 0);
  CHECK(server.engine.tracking().prefixes() == 0);
  CHECK(server.engine.observing.load() == 0);
  server.writer.run({"SET", "a", "1"});
  CHECK(server.inbox->take().empty());
}

// Runs the server's timers while any is due.
void run_timers(Server& server) {
  while (server.engine.next_due().steady_ms == 0) {
    server.execution.run_timers(Times::agreeing(1'000'000));
    server.execution.finish();
  }
}

TEST_CASE("the table is empty when the last one has gone") {
  Server server;
  constexpr int kKeys = 3000;
  {
    EngineSession reader(server.engine, server.execution);
    EngineSession other(server.engine, server.execution);
    reader.run({"CLIENT", "TRACKING", "ON"});
    other.run({"CLIENT", "TRACKING", "ON"});
    for (int i = 0; i < kKeys; ++i) {
      reader.run({"GET", "key:" + std::to_string(i)});
      other.run({"GET", "key:" + std::to_string(i)});
    }
    // Switching tracking off has the same effect as disconnecting.
    other.run({"CLIENT", "TRACKING", "OFF"});
    run_timers(server);
    CHECK(server.engine.tracking().keys() == kKeys);
    CHECK(server.engine.tracking().items() == kKeys);
    reader.run({"GET", "key:0"});
    CHECK(server.engine.tracking().items() == kKeys);
  }
  server.writer.run({"DEL", "key:1"});
  run_timers(server);
  CHECK(server.engine.tracking().keys() == 0);
  CHECK(server.engine.tracking().items() == 0);
}

TEST_CASE("what dead connections have read does not pile up beside a living one") {
  Server server;
  Reader living(server);
  living.run({"CLIENT", "TRACKING", "ON"});
  living.run({"GET", "a"});
  for (int i = 0; i < 200; ++i) {
    EngineSession dying(server.engine, server.execution);
    dying.run({"CLIENT", "TRACKING", "ON"});
    dying.run({"MGET", "a", "b" + std::to_string(i), "c"});
  }
  run_timers(server);
  CHECK(server.engine.tracking().keys() == 1);
  CHECK(server.engine.tracking().items() == 1);
  server.writer.run({"SET", "a", "1"});
  CHECK(server.inbox->take() == kToldOfA);
  CHECK(server.engine.tracking().items() == 0);
}

// Reads `keys` keys and disconnects. Returns the number of steps after which its items have left
// the table.
int steps_after_reading(Server& server, int keys) {
  {
    EngineSession reader(server.engine, server.execution);
    reader.run({"CLIENT", "TRACKING", "ON"});
    for (int i = 0; i < keys; ++i) reader.run({"GET", "key:" + std::to_string(i)});
  }
  int steps = 0;
  for (; server.engine.tracking().must_sweep(); ++steps) server.engine.tracking().sweep(512);
  return steps;
}

TEST_CASE("a table that was large once is swept in one step when it is small") {
  Server server;
  EngineSession living(server.engine, server.execution);
  living.run({"CLIENT", "TRACKING", "ON"});
  living.run({"GET", "a"});
  CHECK(steps_after_reading(server, 20'000) > 20);
  CHECK(server.engine.tracking().keys() == 1);
  CHECK(steps_after_reading(server, 5) == 1);
  // Keys that were forgotten otherwise leave the same number of buckets.
  for (int i = 0; i < 20'000; ++i) living.run({"GET", "key:" + std::to_string(i)});
  server.writer.run({"FLUSHALL"});
  CHECK(server.engine.tracking().keys() == 0);
  steps_after_reading(server, 5);
  CHECK(steps_after_reading(server, 5) == 1);
}

TEST_CASE("who was told of every key that it had read leaves nothing to sweep") {
  Server server;
  EngineSession living(server.engine, server.execution);
  living.run({"CLIENT", "TRACKING", "ON"});
  {
    EngineSession reader(server.engine, server.execution);
    reader.client.port = server.inbox;
    reader.run({"CLIENT", "TRACKING", "ON"});
    for (const Bytes key : {"a", "b", "c"}) {
      reader.run({"GET", key});
      server.writer.run({"SET", key, "1"});
    }
  }
  server.engine.tracking().sweep(512);
  CHECK_FALSE(server.engine.tracking().must_sweep());
}

TEST_CASE("the buckets go with the last one who tracks, also if its keys have changed before") {
  Server server;
  {
    EngineSession reader(server.engine, server.execution);
    reader.run({"CLIENT", "TRACKING", "ON"});
    for (int i = 0; i < 20'000; ++i) reader.run({"GET", "key:" + std::to_string(i)});
    server.writer.run({"FLUSHALL"});
  }
  CHECK(server.engine.next_due().steady_ms == 0);
  run_timers(server);
  CHECK(steps_after_reading(server, 5) == 1);
}

TEST_CASE("who tracks again is told of what was read since then") {
  Server server;
  Reader reader(server);
  for (int i = 0; i < 3; ++i) {
    reader.run({"CLIENT", "TRACKING", "ON"});
    reader.run({"GET", "a"});
    reader.run({"CLIENT", "TRACKING", "OFF"});
  }
  reader.run({"CLIENT", "TRACKING", "ON"});
  reader.run({"GET", "b"});
  server.writer.run({"MSET", "a", "1", "b", "1"});
  CHECK(server.inbox->take() == "*1\r\n$1\r\nb\r\n");
  run_timers(server);
  CHECK(server.engine.tracking().items() == 0);
}

TEST_CASE("a full table forgets keys as if they had changed") {
  Server server;
  server.engine.options().tracking_table_max_keys.store(1);
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON"});
  CHECK(reader.run({"GET", "a"}) == "_\r\n");
  CHECK(reader.run({"GET", "b"}).starts_with("_\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n"));
  CHECK(server.engine.tracking().keys() == 1);
}

TEST_CASE("who changes the protocol is told of a flush in the new one") {
  Server server;
  EngineSession reader(server.engine, server.execution);
  reader.client.port = server.inbox;
  reader.run({"CLIENT", "TRACKING", "ON"});
  reader.run({"HELLO", "3"});
  server.writer.run({"FLUSHALL"});
  CHECK(server.inbox->take() == "_\r\n");
  reader.run({"HELLO", "2"});
  server.writer.run({"FLUSHALL"});
  CHECK(server.inbox->take() == "$-1\r\n");
}

TEST_CASE("by prefix, the keys of one hold of locks come in one message") {
  Server server;
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a", "NOLOOP"});
  server.writer.run({"MSET", "a2", "1", "b", "1", "a1", "1"});
  CHECK(server.inbox->take() == "*2\r\n$2\r\na1\r\n$2\r\na2\r\n");
  reader.run({"SET", "a1", "2"});
  CHECK(server.inbox->take().empty());
}

TEST_CASE("who has read a key hears of its expiry, also if nobody has sent a command since") {
  Server server;
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON"});
  server.writer.run({"SET", "a", "1", "PX", "10"});
  CHECK(reader.run({"GET", "a"}) == "$1\r\n1\r\n");
  server.execution.run_timers(Times::agreeing(1'000'010));
  server.execution.finish();
  CHECK(server.inbox->take() == kToldOfA);
}

TEST_CASE("with NOLOOP, who was served while waiting hears of the changes that follow") {
  Server server;
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP"});
  CHECK(reader.run({"BLPOP", "list", "0"}).empty());
  server.writer.run({"RPUSH", "list", "x"});
  CHECK(server.inbox->take().find("list") != std::string::npos);
  server.engine.end_waiter(reader.client);
  server.writer.run({"SET", "a", "1"});
  CHECK(server.inbox->take() == kToldOfA);
}

TEST_CASE("tracking goes on when the notified events are changed") {
  Server server;
  Reader reader(server);
  reader.run({"CLIENT", "TRACKING", "ON"});
  for (const uint32_t events : {kEventKeyevent | kEventAll, uint32_t{0}}) {
    reader.run({"GET", "a"});
    server.engine.set_notified_events(events);
    server.writer.run({"SET", "a", "1"});
    CHECK(server.inbox->take() == kToldOfA);
  }
}

}  // namespace
