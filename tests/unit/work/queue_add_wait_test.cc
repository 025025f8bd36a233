// Q.ADD ... WAIT: one command from the job to its result.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

// "a added pending; completed done": what Q.ADD replied, and the job.
std::string brief(const RespValue& reply) {
  if (reply.kind != RespValue::Kind::kArray || reply.size() != 2) return reply.show();
  const RespValue& added = reply.items[0];
  const RespValue& job = reply.items[1];
  const std::string first =
      added.field("id") + " " + added.field("result") + " " + added.field("state") + "; ";
  if (job.is_null()) return first + "null";
  return first + job.field("state") + " " + job.field("result");
}

// What connection 1 is told.
std::string told(QueueTalk& q, int connection = 1) {
  const auto deliveries = q.take_deliveries();
  const auto found = deliveries.find(connection);
  return found == deliveries.end() ? "(nothing)" : brief(found->second);
}

TEST_CASE("the reply is that of Q.ADD and the job at its end, kept or not") {
  for (const char* kept : {"1000", "0"}) {
    QueueTalk q;
    q.say(std::string("Q.CONFIG q SET retain_completed ") + kept);
    q.add("first");
    CHECK(q.say_as(1, "Q.ADD q a p GROUP ann WAIT 0") == "(waits)");
    CHECK(q.pop("COUNT 2") == "first a");
    CHECK(told(q) == "(nothing)");
    q.ack("first", "RESULT other");
    CHECK(told(q) == "(nothing)");
    q.ack("a", "RESULT done");
    const auto deliveries = q.take_deliveries();
    REQUIRE(deliveries.contains(1));
    const RespValue& reply = deliveries.at(1);
    CHECK(brief(reply) == "a added pending; completed done");
    CHECK(reply.items[0].field("position") == "1");
    CHECK(reply.items[0].field("eta_ms") == "null");
    CHECK(reply.items[1].field("group") == "ann");
    CHECK(q.state("a") == (kept[0] == '0' ? "null" : "completed"));
  }
}

TEST_CASE("a failure that is retried does not end the job; every end does") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q a p RETRY 1 BACKOFF 0 0 WAIT 0") == "(waits)");
  q.pop();
  q.nack("a");
  CHECK(told(q) == "(nothing)");
  q.pop();
  q.nack("a");
  CHECK(told(q) == "a added pending; failed null");
  CHECK(q.say_as(1, "Q.ADD q b p WAIT 0") == "(waits)");
  q.say("Q.CANCEL q b");
  CHECK(told(q) == "b added pending; cancelled null");
  CHECK(q.say_as(1, "Q.ADD q c p TTL 100 WAIT 0") == "(waits)");
  q.pass(100);
  CHECK(told(q) == "c added pending; expired null");
  CHECK(q.say_as(1, "Q.ADD q d p WAIT 0") == "(waits)");
  q.say("Q.ADD q d p IFDUP REPLACE");
  CHECK(told(q) == "d added pending; cancelled null");
}

TEST_CASE("an id of the queue's own choice is awaited like any other") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q * p WAIT 0") == "(waits)");
  const std::string id = q.pop();
  q.ack(id, "RESULT done");
  CHECK(told(q) == id + " added pending; completed done");
}

TEST_CASE("when the time is over the job is shown as it is then") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q a p WAIT 1000") == "(waits)");
  CHECK(q.give_up(1));
  CHECK(told(q) == "a added pending; pending null");
  CHECK(q.say_as(1, "Q.ADD q b p DELAY 5000 WAIT 1000") == "(waits)");
  q.pop();
  CHECK(q.give_up(1));
  CHECK(told(q) == "b added delayed; delayed null");
  CHECK(q.say_as(1, "Q.ADD q c p WAIT 1000") == "(waits)");
  CHECK(q.pop() == "c");
  CHECK(q.give_up(1));
  CHECK(told(q) == "c added pending; active null");
  // Nothing of it is left to be told of the end.
  q.ack("c");
  CHECK(told(q) == "(nothing)");
}

TEST_CASE("an end that comes before a time-out that is due wins") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q a p WAIT 1000") == "(waits)");
  q.pop();
  q.engine().departures().leave_late(q.session(1).client.waiter);
  q.ack("a", "RESULT done");
  q.run_timers();
  CHECK(told(q) == "a added pending; completed done");
  CHECK_FALSE(q.engine().departures().has_late());
}

TEST_CASE("many time-outs are served in several calls of the timers") {
  QueueTalk q;
  q.connect(200);
  for (size_t i = 4; i < 204; ++i)
    q.run(i, {"Q.ADD", "q", "j" + std::to_string(i), "", "WAIT", "9"});
  for (size_t i = 4; i < 204; ++i) q.engine().departures().leave_late(q.session(i).client.waiter);
  CHECK(q.engine().next_due().steady_ms == 0);
  CHECK(q.run_some_timers());
  CHECK(q.take_deliveries().size() == 64);
  q.run_timers();
  CHECK(q.take_deliveries().size() == 136);
  CHECK(q.engine().next_due().steady_ms != 0);
}

TEST_CASE("if the queue goes, the job is null; what the name holds then does not matter") {
  QueueTalk q;
  for (const char* line : {"DEL q", "RENAME q elsewhere", "FLUSHALL", "SET q x"}) {
    INFO(line);
    q.say("DEL q");
    CHECK(q.say_as(1, "Q.ADD q a p WAIT 0") == "(waits)");
    q.say(line);
    CHECK(told(q) == "a added pending; null");
  }
  q.say("DEL q");
  CHECK(q.say_as(1, "Q.ADD q a p WAIT 0") == "(waits)");
  q.say("MULTI");
  q.say("DEL q");
  q.say("Q.ADD q b p");
  q.say("EXEC");
  CHECK(told(q) == "a added pending; null");
}

TEST_CASE("what refuses an add refuses it at once, and a refused add makes no queue") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q a p NEED nobody WAIT 0") == "-NOJOB id=nobody");
  CHECK(q.say("EXISTS q") == "0");
  CHECK(q.say("Q.ADD q a p WAIT -1") == "-BADFIELD field=wait");
  CHECK(q.say("Q.ADD q a p WAIT") == "-ERR syntax error");
  CHECK(q.say("Q.ADD q a p WAIT 0 BRIEF") == "-ERR syntax error");
  CHECK(q.say("Q.ADD q a p BRIEF WAIT 0") == "-ERR syntax error");
  CHECK(q.say("EXISTS q") == "0");
  q.add("a");
  CHECK(q.say_as(1, "Q.ADD q a p WAIT 0") == "-DUPLICATE id=a state=pending");
  q.say("Q.CONFIG q SET paused in");
  CHECK(q.say_as(1, "Q.ADD q b p WAIT 0") == "-PAUSED direction=in");
}

TEST_CASE("in a transaction and in a script the job is shown as it is") {
  QueueTalk q;
  q.say("MULTI");
  q.say("Q.ADD q a p WAIT 0");
  const RespValue reply = q.ask("EXEC");
  REQUIRE(reply.size() == 1);
  CHECK(brief(reply.items[0]) == "a added pending; pending null");
  const auto script = q.run(0, {"EVAL",
                                "local r = redis.call('Q.ADD', 'q', 'b', 'p', 'WAIT', 0) "
                                "return {r[1][2], r[2][4]}",
                                "1", "q"});
  REQUIRE(script.has_value());
  CHECK(script->show() == "[b pending]");
}

TEST_CASE("KEEP waits for the job that is there, and shows at once one that has ended") {
  QueueTalk q;
  q.add("a");
  CHECK(q.say_as(1, "Q.ADD q a other IFDUP KEEP WAIT 0") == "(waits)");
  q.pop();
  CHECK(q.say_as(2, "Q.ADD q a other IFDUP KEEP WAIT 0") == "(waits)");
  // The successor of the job is not the job that is there.
  CHECK(q.say("Q.ADD q a next IFDUP UPDATE", "result") == "queued");
  q.ack("a", "RESULT done");
  auto deliveries = q.take_deliveries();
  REQUIRE(deliveries.size() == 2);
  CHECK(brief(deliveries.at(1)) == "a kept pending; completed done");
  CHECK(brief(deliveries.at(2)) == "a kept active; completed done");
  q.pop();
  q.ack("a", "RESULT again");
  CHECK(brief(q.ask("Q.ADD q a p IFDUP KEEP WAIT 0")) == "a kept completed; completed again");
}

TEST_CASE("an update waits for the job that it changes") {
  QueueTalk q;
  q.add("a");
  CHECK(q.say_as(1, "Q.ADD q a new IFDUP UPDATE WAIT 0") == "(waits)");
  q.pop();
  q.ack("a", "RESULT done");
  CHECK(told(q) == "a updated pending; completed done");
}

TEST_CASE("`queued` waits for the end of the successor, however the run before it ends") {
  for (const char* end : {"ack", "nack", "lost"}) {
    INFO(end);
    QueueTalk q;
    q.add("a");
    q.pop("LEASE 1000");
    CHECK(q.say_as(1, "Q.ADD q a next IFDUP UPDATE WAIT 0") == "(waits)");
    if (end[0] == 'a') q.ack("a", "RESULT first");
    if (end[0] == 'n') q.nack("a", "SILENT");
    if (end[0] == 'l') q.pass(1000);
    CHECK(told(q) == "(nothing)");
    CHECK(q.job("a", {"state", "payload"}) == "pending next");
    q.pop();
    // One that is queued behind it is not what was added.
    CHECK(q.say_as(2, "Q.ADD q a third IFDUP UPDATE WAIT 0") == "(waits)");
    q.ack("a", "RESULT second");
    CHECK(told(q) == "a queued active; completed second");
    q.pop();
    q.ack("a", "RESULT third");
    CHECK(told(q, 2) == "a queued active; completed third");
  }
}

TEST_CASE("a cancel takes the successor along, and who waits for it hears of the end of both") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.ADD q a next IFDUP UPDATE WAIT 0") == "(waits)");
  q.say("Q.CANCEL q a GRACE 0");
  CHECK(told(q) == "a queued active; cancelled null");
  q.add("b");
  q.pop();
  CHECK(q.say_as(1, "Q.ADD q b next IFDUP UPDATE WAIT 0") == "(waits)");
  q.say("Q.CANCEL q b");
  CHECK(told(q) == "(nothing)");
  q.ack("b", "RESULT late");
  CHECK(told(q) == "b queued active; completed late");
}

TEST_CASE("a client that is gone takes nothing along") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q a p WAIT 0") == "(waits)");
  CHECK(q.say_as(2, "Q.ADD q b p WAIT 0") == "(waits)");
  q.disconnect(1);
  q.engine().departures().leave_late(q.session(2).client.waiter);
  q.disconnect(2);
  q.run_timers();
  CHECK(q.drain() == "a b");
  CHECK(q.take_deliveries().empty());
}

TEST_CASE("ids may be words of the grammar") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.ADD q WAIT WAIT WAIT 0") == "(waits)");
  CHECK(q.pop() == "WAIT");
  q.ack("WAIT", "RESULT done");
  CHECK(told(q) == "WAIT added pending; completed done");
}

}  // namespace
