// Keyspace notifications where redis-server cannot serve as a reference: expiry under a simulated
// clock, keys of the native queue, and changes of the setting.
#include <memory>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/keyspace/events.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::QuietServer;

constexpr int64_t kNowMs = 1'000'000;

// A connection that records what it is sent.
class Inbox final : public ClientPort {
 public:
  void deliver(ByteBuffer bytes, Lsn) override { text += bytes.view(); }
  void deliver_blocked_reply(ByteBuffer bytes, Lsn) override { text += bytes.view(); }
  std::string text;
};

struct Server {
  QuietServer port;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};
  EngineSession listener{engine, execution};
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

  explicit Server(uint32_t events = kEventKeyevent | kEventAll) {
    execution.set_now_ms(kNowMs);
    engine.set_notified_events(events);
    listener.client.port = inbox;
    listener.run({"PSUBSCRIBE", "__key*"});
  }
  // "event key" of all messages since the last call.
  std::vector<std::string> events() {
    std::vector<std::string> found;
    const std::string prefix = "__keyevent@";
    for (size_t at = inbox->text.find(prefix); at != std::string::npos;
         at = inbox->text.find(prefix, at)) {
      const auto line = [&] {
        const size_t end = inbox->text.find("\r\n", at);
        const std::string text = inbox->text.substr(at, end - at);
        at = end + 2;
        return text;
      };
      const std::string channel = line();
      line();  // the length of the key
      found.push_back(channel.substr(channel.find(':') + 1) + " " + line());
    }
    inbox->text.clear();
    return found;
  }
};

using Events = std::vector<std::string>;

TEST_CASE("a key's end is told once, by whoever meets it first") {
  Server server;
  server.session.run({"SET", "k", "v", "PX", "10"});
  server.session.run({"RPUSH", "list", "a"});
  server.session.run({"PEXPIRE", "list", "20"});
  CHECK(server.events() == Events{"set k", "expire k", "rpush list", "expire list"});
  server.execution.set_now_ms(kNowMs + 10);
  CHECK(server.session.run({"GET", "k"}) == "$-1\r\n");
  CHECK(server.events() == Events{"expired k"});
  CHECK_FALSE(server.execution.run_timers(Times::agreeing(kNowMs + 30)));
  server.execution.finish();
  CHECK(server.events() == Events{"expired list"});
}

TEST_CASE("the keys of native queues tell what happens to keys, not to jobs") {
  Server server(kEventKeyevent | kEventAll | kEventNew);
  server.session.run({"Q.ADD", "q", "*", "payload"});
  CHECK(server.events() == Events{"new q"});
  server.session.run({"Q.POP", "1", "q"});
  CHECK(server.events().empty());
  server.session.run({"COPY", "q", "c"});
  server.session.run({"RENAME", "q", "r"});
  server.session.run({"DEL", "r"});
  CHECK(server.events() ==
        Events{"new c", "copy_to c", "new r", "rename_from q", "rename_to r", "del r"});
}

TEST_CASE("nobody hears of classes that are not asked for, nor anything without K and E") {
  Server server(kEventKeyevent | kEventList);
  server.session.run({"SET", "k", "v"});
  server.session.run({"RPUSH", "list", "a"});
  CHECK(server.events() == Events{"rpush list"});
  server.engine.set_notified_events(kEventAll);
  server.session.run({"RPUSH", "list", "a"});
  CHECK(server.inbox->text.empty());
  CHECK(server.engine.observing.load() == 0);
}

TEST_CASE("who is served while waiting hears of it after its reply") {
  Server server;
  EngineSession waiter(server.engine, server.execution);
  const auto inbox = std::make_shared<Inbox>();
  waiter.client.port = inbox;
  waiter.client.protocol = 3;
  waiter.run({"PSUBSCRIBE", "__key*"});
  CHECK(waiter.run({"BLPOP", "list", "0"}).empty());
  inbox->text.clear();
  server.session.run({"RPUSH", "list", "a"});
  const size_t pushed = inbox->text.find("rpush");
  const size_t reply = inbox->text.find("*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
  const size_t popped = inbox->text.find("lpop");
  REQUIRE(reply != std::string::npos);
  CHECK(pushed < reply);
  CHECK(reply < popped);
  CHECK(popped < inbox->text.find("__keyevent@0__:del"));
  server.engine.end_waiter(waiter.client);
}

}  // namespace
