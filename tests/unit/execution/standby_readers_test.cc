// Connections that wait at a standby to read a stream, and what brings them their entries.
#include <memory>
#include <string>
#include <vector>

#include "tests/support/queue_server.h"
#include "tests/support/standby.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

const Times kNow = Times::agreeing(1'700'000'000'000, 0);

struct Primary {
  QuietServer server;
  MemoryJournal journal;
  CompleteEngine engine{server, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};

  Primary() {
    engine.attach_journal(&journal);
    execution.set_times(kNow);
  }
};

}  // namespace

TEST_CASE("who waits at a standby for a stream is told of one that comes as a whole") {
  const std::vector<std::vector<Bytes>> ways{
      {"XADD", "{s}to", "5-1", "field", "value"},
      {"COPY", "{s}from", "{s}to"},
      {"RENAME", "{s}from", "{s}to"},
      {"EVAL", "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]))", "2",
       "{s}from", "{s}to"}};
  for (const std::vector<Bytes>& way : ways) {
    CAPTURE(way[0]);
    Primary primary;
    primary.session.run({"XADD", "{s}from", "5-1", "field", "value"});
    Standby standby(primary.server, primary.journal);
    const auto port = std::make_shared<CollectingPort>();
    EngineSession reader(standby.engine, standby.execution);
    reader.client.port = port;
    standby.execution.set_times(kNow);
    CHECK(reader.run({"XREAD", "BLOCK", "0", "STREAMS", "{s}to", "$"}).empty());
    standby.follow(kNow);
    CHECK_FALSE(port->blocked_reply.has_value());
    CHECK(primary.session.run(way)[0] != '-');
    standby.follow(kNow);
    CHECK(port->blocked_reply.value_or("nothing").find("5-1") != std::string::npos);
    if (port->blocked_reply.has_value()) {
      standby.engine.end_waiter(reader.client);
    } else {
      standby.engine.cancel_waiter(reader.client);
    }
  }
}

}  // namespace sluice::test
