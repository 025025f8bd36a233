// A reply or delivered message is gated by the unit whose data it shows: Execution::finish()
// returns the gate of replies, and a connection receives that of each message. Also: which shards
// are locked while a client waiting on another one is served.
#include <memory>
#include <string>
#include <vector>

#include "engine/clients/slow_log.h"
#include "engine/commands/complete_engine.h"
#include "engine/execution/queue_names.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::MemoryJournal;
using sluice::test::QuietServer;

using Words = std::vector<Bytes>;

// A connection that records what it is sent, and its gates.
class Inbox final : public ClientPort {
 public:
  void deliver(ByteBuffer bytes, Lsn gate) override {
    text += bytes.view();
    gates.push_back(gate);
  }
  void deliver_blocked_reply(ByteBuffer bytes, Lsn gate) override {
    blocked_reply += bytes.view();
    blocked_gates.push_back(gate);
  }
  std::string text;
  std::vector<Lsn> gates;
  std::string blocked_reply;
  std::vector<Lsn> blocked_gates;
};

// Two I/O threads' executions on one engine, each with a connection.
struct Fixture {
  QuietServer port;
  MemoryJournal journal;
  CompleteEngine engine{port, 7};
  Execution writing{engine};
  Execution reading{engine};
  EngineSession writer{engine, writing};
  EngineSession reader{engine, reading};

  Fixture() { engine.attach_journal(&journal); }
};

TEST_CASE("DBSIZE waits for the changes that it counts, by itself, in MULTI and in scripts") {
  Fixture it;
  it.writer.run({"SET", "a", "1"});
  it.writer.run({"SET", "b", "2"});
  CHECK(it.reader.run_unfinished(Words{"DBSIZE"}) == ":2\r\n");
  CHECK(it.reading.finish() == 2);
  it.reader.run({"MULTI"});
  it.reader.run({"DBSIZE"});
  CHECK(it.reader.run_unfinished(Words{"EXEC"}) == "*1\r\n:2\r\n");
  CHECK(it.reading.finish() == 2);
  const Words script{"EVAL", "#!lua\nreturn redis.call('DBSIZE')", "0"};
  CHECK(it.reader.run_unfinished(script) == ":2\r\n");
  CHECK(it.reading.finish() == 2);
}

TEST_CASE("what is told of all keys waits for the last change of any of them") {
  Fixture it;
  it.writer.run({"SET", "a", "1"});
  it.writer.run({"SET", "b", "2"});
  for (const Words& words : {Words{"KEYS", "*"}, Words{"SCAN", "0"}, Words{"RANDOMKEY"},
                             Words{"INFO"}, Words{"INFO", "keyspace"}, Words{"MEMORY", "STATS"}}) {
    CAPTURE(words[0]);
    it.reader.run_unfinished(words);
    CHECK(it.reading.finish() == 2);
  }
  // It tells nothing of keys, and is asked most while none becomes durable.
  it.reader.run_unfinished(Words{"INFO", "replication"});
  CHECK(it.reading.finish() == 0);
}

TEST_CASE("what is told of libraries waits for their last change") {
  Fixture it;
  it.writer.run({"SET", "a", "1"});
  it.writer.run({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)"});
  for (const Words& words : {Words{"FUNCTION", "LIST"}, Words{"FUNCTION", "DUMP"}}) {
    CAPTURE(words[1]);
    it.reader.run_unfinished(words);
    CHECK(it.reading.finish() == 2);
  }
}

TEST_CASE("while nothing becomes durable, INFO is told without waiting, and a change is not") {
  Fixture it;
  it.writer.run({"SET", "a", "1"});
  it.reading.tell_at_once();
  CHECK(it.reader.run_unfinished(Words{"INFO"}).find("db0:keys=1") != std::string::npos);
  CHECK(it.reading.finish() == 0);
  it.reading.tell_at_once();
  it.reader.run_unfinished(Words{"SET", "a", "2"});
  CHECK(it.reading.finish() == 2);
  it.reader.run_unfinished(Words{"INFO"});
  CHECK(it.reading.finish() == 2);
}

TEST_CASE("messages and events of keys wait for the unit of their command") {
  Fixture it;
  it.engine.set_notified_events(kEventKeyspace | kEventAll);
  const auto inbox = std::make_shared<Inbox>();
  it.reader.client.port = inbox;
  it.reader.run({"SUBSCRIBE", "news", "__keyspace@0__:a"});
  it.writer.run({"SET", "a", "1"});
  CHECK(inbox->gates == std::vector<Lsn>{1});
  it.writer.run({"MULTI"});
  it.writer.run({"SET", "b", "1"});
  it.writer.run({"PUBLISH", "news", "b is set"});
  it.writer.run({"EXEC"});
  CHECK(inbox->gates == std::vector<Lsn>{1, 2});
}

TEST_CASE("a line of MONITOR waits for the unit of its command") {
  Fixture it;
  const auto inbox = std::make_shared<Inbox>();
  EngineSession monitor(it.engine, it.reading);
  monitor.client.port = inbox;
  monitor.run({"MONITOR"});
  it.writer.run({"SET", "a", "1"});
  CHECK(inbox->gates == std::vector<Lsn>{1});
  CHECK(inbox->text.find("\"SET\" \"a\" \"1\"\r\n") != std::string::npos);

  // Two commands under one hold form one unit; nothing is sent before its number is known.
  inbox->text.clear();
  it.writing.set_hold_shards(true);
  it.writer.run_unfinished(Words{"SET", "b", "2"});
  it.writer.run_unfinished(Words{"GET", "b"});
  CHECK(inbox->text.empty());
  CHECK(it.writing.finish() == 2);
  CHECK(inbox->gates == std::vector<Lsn>{1, 2});
  CHECK(inbox->text.find("\"SET\"") < inbox->text.find("\"GET\""));

  // A read is gated by the unit that it has read.
  it.reader.run({"GET", "b"});
  CHECK(inbox->gates.back() == 2);
}

TEST_CASE("with the last monitor nobody looks at commands any more") {
  Fixture it;
  for (const bool resets : {false, true}) {
    CAPTURE(resets);
    EngineSession monitor(it.engine, it.reading);
    monitor.client.port = std::make_shared<Inbox>();
    monitor.run({"MONITOR"});
    CHECK(it.engine.monitors().active());
    if (resets) monitor.run({"RESET"});
    if (!resets) it.reading.disconnect(monitor.client);
    CHECK_FALSE(it.engine.monitors().active());
  }
}

TEST_CASE("a monitor is not shown what came before it in its own batch") {
  Fixture it;
  const auto first = std::make_shared<Inbox>();
  EngineSession monitor(it.engine, it.reading);
  monitor.client.port = first;
  monitor.run({"MONITOR"});
  const auto second = std::make_shared<Inbox>();
  it.writer.client.port = second;
  it.writer.run_unfinished(Words{"SET", "a", "1"});
  it.writer.run_unfinished(Words{"MONITOR"});
  it.writing.finish();
  CHECK(first->text.find("\"SET\"") != std::string::npos);
  CHECK(second->text.empty());
  it.writer.run({"RESET"});
}

TEST_CASE("a blocked reply waits for the unit that took the element or leased the job") {
  Fixture it;
  const auto inbox = std::make_shared<Inbox>();
  it.reader.client.port = inbox;
  it.writer.run({"SET", "before", "1"});
  it.reader.run({"BLPOP", "list", "0"});
  it.writer.run({"RPUSH", "list", "a"});
  CHECK(inbox->blocked_reply == "*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
  CHECK(inbox->blocked_gates == std::vector<Lsn>{2});

  it.engine.end_waiter(it.reader.client);
  it.reader.run({"Q.POP", "1", "q", "BLOCK", "0"});
  it.writer.run({"Q.ADD", "q", "job", "payload"});
  CHECK(inbox->blocked_reply.find("payload") != std::string::npos);
  CHECK(inbox->blocked_gates == std::vector<Lsn>{2, it.journal.last_lsn()});
  CHECK(it.journal.last_lsn() == 3);
}

TEST_CASE("a worker is told to stop behind the unit that cancels its run") {
  Fixture it;
  const auto inbox = std::make_shared<Inbox>();
  it.reader.client.port = inbox;
  it.reader.run({"HELLO", "3"});
  it.writer.run({"Q.ADD", "q", "job", "payload"});
  it.reader.run({"Q.POP", "1", "q"});
  it.writer.run({"Q.CANCEL", "q", "job"});
  CHECK(inbox->text.find("q.cancel") != std::string::npos);
  CHECK(inbox->gates == std::vector<Lsn>{it.journal.last_lsn()});
}

TEST_CASE("what is read of a queue without a command waits for the unit that it shows") {
  Fixture it;
  it.writer.run({"SET", "before", "1"});
  it.writer.run({"Q.ADD", "q", "job", "payload", "GROUP", "g"});
  const QueueName queue{0, "q"};
  CHECK(last_event(it.engine, queue).gate == 2);
  CHECK(find_in_queue(it.engine, queue, "job").gate == 2);
  CHECK(find_groups_of(it.engine, queue, "", 0, 10).gate == 2);
}

TEST_CASE("a script that wakes a BLMOVE holds the shard to which it moves") {
  Fixture it;
  const auto inbox = std::make_shared<Inbox>();
  it.reader.client.port = inbox;
  REQUIRE(KeyRef("here").shard != KeyRef("there").shard);
  it.reader.run({"BLMOVE", "here", "there", "LEFT", "LEFT", "0"});
  // A key that the script does not declare: its shard is locked late.
  const Words script{"EVAL", "#!lua\nreturn redis.call('RPUSH', 'here', 'x')", "1", "own"};
  CHECK(it.writer.run_unfinished(script) == ":1\r\n");
  CHECK(it.writing.locked() == kAllShards);
  it.writing.finish();
  CHECK(inbox->blocked_reply == "$1\r\nx\r\n");
}

}  // namespace
