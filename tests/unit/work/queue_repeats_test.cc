// Repeated commands have the effect of one.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

TEST_CASE("a repeated Q.ACK POP acknowledges no other run, where * stands for the lease") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fencing off");
  q.add("a b");
  CHECK(q.pop() == "a");
  const std::string line = "Q.ACK q a * POP WORKER w REQID r1";
  CHECK(q.ids_of(q.ask(line)) == "b");
  CHECK(q.say("Q.ADD q a again IFDUP UPDATE", "result") == "added");
  CHECK(q.pop("WORKER other") == "a");
  CHECK(q.ids_of(q.ask(line)) == "b");
  CHECK(q.state("a") == "active");
  CHECK(q.stat("completed") == "1");
}

TEST_CASE("a repeated Q.ACK POP acknowledges no other run, although the first one got nothing") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fencing off");
  q.add("a");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  std::string line = "Q.ACK q a * POP WORKER w REQID r2";
  SUBCASE("null was replied") { CHECK(q.say(line) == "null"); }
  SUBCASE("it waited, and its connection was lost") {
    line += " BLOCK 0";
    CHECK(q.say_as(1, line) == "(waits)");
    q.disconnect(1);
  }
  SUBCASE("its job has ended since") {
    q.add("b");
    CHECK(q.ids_of(q.ask(line)) == "b");
    CHECK(q.ack("b") == "OK");
  }
  CHECK(q.say("Q.ADD q a again IFDUP UPDATE", "result") == "added");
  CHECK(q.pop("WORKER other") == "a");
  CHECK(q.say_as(1, line) == (line.ends_with("BLOCK 0") ? "(waits)" : "null"));
  CHECK(q.state("a") == "active");
}

TEST_CASE("a repeated Q.ACK POP takes the next job where the acknowledged one is not kept") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 0");
  q.add("a");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  const std::string line = "Q.ACK q a " + q.lease("a") + " POP WORKER w REQID r2";
  CHECK(q.say(line) == "null");
  q.add("b");
  CHECK(q.ids_of(q.ask(line)) == "b");
  // An acknowledgement that failed took nothing, so it is not skipped.
  const std::string failing = "Q.ACK q a 1 POP WORKER w REQID r3";
  CHECK(q.say(failing) == "-NOJOB id=a");
  CHECK(q.say(failing) == "-NOJOB id=a");
}

TEST_CASE("a worker's new request forgets the one before, also if it gets nothing") {
  QueueTalk q;
  q.add("a");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.pop("WORKER w REQID r2") == "null");
  CHECK(q.pop("WORKER w REQID r1") == "null");
  // Only leases are journaled.
  q.restart(4);
  CHECK(q.pop("WORKER w REQID r1") == "a");
}

TEST_CASE("what is recorded of an older run later does not make its request the last one") {
  QueueTalk q;
  q.add("a b");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.pop("WORKER w REQID r2") == "b");
  CHECK(q.ack("b") == "OK");
  q.say("Q.TOUCH q a " + q.lease("a") + " PROGRESS half");
  q.restart(4);
  CHECK(q.pop("WORKER w REQID r1") == "null");
}

TEST_CASE("DEBUG RELOAD keeps the request of a pop that got nothing") {
  QueueTalk q;
  q.engine().options().debug_access = sluice::DebugAccess::kEverybody;
  q.say("Q.CONFIG q SET fencing off");
  q.add("a");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  const std::string line = "Q.ACK q a * POP WORKER w REQID r2";
  CHECK(q.say(line) == "null");
  CHECK(q.say("DEBUG RELOAD") == "OK");
  CHECK(q.say("Q.ADD q a again IFDUP UPDATE", "result") == "added");
  CHECK(q.pop("WORKER other") == "a");
  CHECK(q.say(line) == "null");
  CHECK(q.state("a") == "active");
}

TEST_CASE("a repeated update changes nothing but the payload, also when its time has passed") {
  QueueTalk q;
  const std::string at = std::to_string(q.wall_ms() + 700);
  const std::string passed = std::to_string(q.wall_ms() - 700);
  q.add("a", "DELAY 500");
  q.add("b", "AT " + at);
  q.add("c", "AT " + passed);
  const auto update = [&](const std::string& id, const std::string& options) {
    const std::string line = "Q.ADD q " + id + " again IFDUP UPDATE " + options;
    const auto reply = q.ask(line);
    return reply.is_error() ? reply.show() : reply.field("result") + " " + reply.field("state");
  };
  CHECK(update("a", "DELAY 500") == "updated delayed");
  CHECK(update("a", "DELAY 0") == "-BADFIELD field=delay");
  CHECK(update("b", "AT " + at) == "updated delayed");
  CHECK(update("c", "AT " + passed) == "updated pending");
  q.pass(800);
  CHECK(update("a", "DELAY 500") == "updated pending");
  CHECK(update("a", "DELAY 501") == "-BADFIELD field=delay");
  CHECK(update("b", "AT " + at) == "updated pending");
  CHECK(update("b", "AT " + at + "0") == "-BADFIELD field=at");
  CHECK(q.pop("COUNT 9") == "c a b");
  CHECK(update("a", "DELAY 500") == "queued active");
  CHECK(update("b", "AT " + at) == "queued active");
  // A delay that it was given later differs from the repeated one.
  q.nack("c", "SILENT");
  q.say("Q.MOVE q c DELAY 1000");
  CHECK(update("c", "AT " + at) == "-BADFIELD field=at");
}

TEST_CASE("a repeated update may name the needs in another order") {
  QueueTalk q;
  q.add("a b c");
  q.add("d", "NEED a NEED b");
  CHECK(q.say("Q.ADD q d x IFDUP UPDATE NEED b NEED a", "result") == "updated");
  CHECK(q.say("Q.ADD q d x IFDUP UPDATE NEED a") == "-BADFIELD field=need");
  CHECK(q.say("Q.ADD q d x IFDUP UPDATE NEED a NEED c") == "-BADFIELD field=need");
  CHECK(q.say("Q.ADD q d x IFDUP UPDATE NEED a NEED b NEED c") == "-BADFIELD field=need");
}

}  // namespace
