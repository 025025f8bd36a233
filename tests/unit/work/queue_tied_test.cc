// Leases that end with a connection: TIED.

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

TEST_CASE("TIED: the lease also ends the grace time after its connection is lost") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50");
  q.add("a b");
  q.ids_of(q.run(1, QueueTalk::words("Q.POP 1 q TIED")).value_or(RespValue()));
  q.ids_of(q.run(2, QueueTalk::words("Q.POP 1 q")).value_or(RespValue()));
  q.disconnect(1);
  q.disconnect(2);
  q.pass(49);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.state("a") == "pending");
  CHECK(q.state("b") == "active");
}

TEST_CASE("a lost connection makes no lease longer") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 5000");
  q.add("a");
  q.run(1, QueueTalk::words("Q.POP 1 q TIED LEASE 200"));
  q.disconnect(1);
  q.pass(199);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.state("a") == "pending");
}

TEST_CASE("a lost connection is known by its own leases") {
  QueueTalk q;
  q.add("a b c d e");
  q.pop("COUNT 2 TIED");
  q.pop();
  q.ids_of(*q.run(1, QueueTalk::words("Q.POP 1 q TIED")));
  sluice::Queue& queue = *q.find_queue("q");
  CHECK(queue.tied.size() == 3);
  q.touch("b");
  CHECK(q.say_as(2, "Q.TOUCH q d " + q.lease("d")).rfind("{left_ms=", 0) == 0);
  queue.check();
  CHECK(queue.tied.size() == 3);
  q.ack("a");
  CHECK(queue.tied.size() == 2);
  q.say("RENAME q r");
  q.say("RENAME r q");
  q.disconnect(2);
  q.pass(5000);
  CHECK(q.state("d") == "pending");
  CHECK(q.state("b") == "active");
  q.find_queue("q")->check();
  CHECK(q.find_queue("q")->tied.size() == 1);
}

TEST_CASE("a lost connection is known by its leases in a database that SWAPDB has moved") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50");
  q.add("a");
  q.say_as(1, "Q.POP 1 q TIED");
  q.say("SWAPDB 0 1");
  q.disconnect(1);
  q.pass(50);
  q.say("SELECT 1");
  CHECK(q.state("a") == "pending");
}

TEST_CASE("a repeated pop ties its leases to the connection that repeats it") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50");
  q.add("a");
  q.say_as(1, "Q.POP 1 q TIED WORKER w REQID r");
  q.say_as(2, "Q.POP 1 q TIED WORKER w REQID r");
  q.disconnect(1);
  q.pass(50);
  CHECK(q.state("a") == "active");
  q.disconnect(2);
  q.pass(50);
  CHECK(q.state("a") == "pending");
}

TEST_CASE("a lease that a script takes TIED ends with the script's connection") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50");
  q.add("a b c");
  const std::string script = "return #redis.call('Q.POP', '1', 'q', 'TIED')";
  CHECK(q.run(1, {"EVAL", script, "0"})->show() == "1");
  CHECK(q.run(2, {"EVAL", script, "0"})->show() == "1");
  q.disconnect(1);
  q.pass(50);
  CHECK(q.state("a") == "pending");
  CHECK(q.state("b") == "active");
}

TEST_CASE("a TOUCH ties no lease that was not tied") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50");
  q.add("a");
  q.pop();
  q.say_as(1, "Q.TOUCH q a " + q.lease("a"));
  q.disconnect(1);
  q.pass(50);
  CHECK(q.state("a") == "active");
}

TEST_CASE("a TOUCH ties the lease to the connection that sent it") {
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 0");
  q.add("a");
  q.ids_of(q.run(1, QueueTalk::words("Q.POP 1 q TIED")).value_or(RespValue()));
  q.say_as(2, "Q.TOUCH q a " + q.lease("a"));
  q.disconnect(1);
  q.pass(1);
  CHECK(q.state("a") == "active");
  q.disconnect(2);
  q.pass(1);
  CHECK(q.state("a") == "pending");
}

}  // namespace
