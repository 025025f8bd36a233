// Q.POP, Q.ACK, Q.NACK, Q.TOUCH, Q.CANCEL: leases, their ends, and waiting clients.
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

std::string heard(QueueTalk& q, int connection) {
  const auto deliveries = q.take_deliveries();
  const auto found = deliveries.find(connection);
  return found == deliveries.end() ? "(nothing)" : q.ids_of(found->second);
}

// --- Q.POP ---

TEST_CASE("Q.POP tells everything that a worker needs") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_run_ms 7000");
  q.say("Q.ADD q a body PRI HIGH GROUP g KEY k2 KEY k1 COST 2 TAG lang python LEASE 5000");
  q.pass(10);
  const RespValue reply = q.ask("Q.POP 1 q WORKER w");
  REQUIRE(reply.items.size() == 1);
  const RespValue& job = reply.items[0];
  const std::vector<std::pair<const char*, const char*>> expected = {{"queue", "q"},
                                                                     {"id", "a"},
                                                                     {"deadline", "1700000005010"},
                                                                     {"attempt", "1"},
                                                                     {"crashes", "0"},
                                                                     {"pri", "HIGH"},
                                                                     {"group", "g"},
                                                                     {"keys", "[k1 k2]"},
                                                                     {"tags", "{lang=python}"},
                                                                     {"cost", "2"},
                                                                     {"enqueued", "1700000000000"},
                                                                     {"max_run_ms", "7000"},
                                                                     {"progress", "null"},
                                                                     {"payload", "body"}};
  for (const auto& [field, value] : expected) CHECK_MESSAGE(job.field(field) == value, field);
  CHECK(job.number("lease") >= 1);
  CHECK(job.size() == 15);
}

TEST_CASE("attempts are counted beyond 2^16, and a restart keeps them") {
  QueueTalk q;
  q.say("Q.CONFIG q SET crash_limit 10000");
  q.add("a");
  q.find_queue("q")->find("a")->extras().attempts = UINT16_MAX;
  CHECK(q.ask("Q.POP 1 q").items.at(0).field("attempt") == "65536");
  q.restart(4);
  CHECK(q.job("a", {"state", "attempts"}) == "active 65536");
}

TEST_CASE("COUNT pops in one step and stops at the first job that does not fit") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 4");
  q.add("a b");
  q.add("big", "COST 3");
  q.add("c");
  CHECK(q.pop("COUNT 10") == "a b");
  CHECK(q.pop() == "null");
  CHECK(q.job("big", {"why"}) == "queue_cap 2/4");
  q.ack("a");
  CHECK(q.pop("COUNT 10") == "big");
  q.ack("b");
  CHECK(q.pop("COUNT 10") == "c");
}

TEST_CASE("options of Q.POP have bounds") {
  QueueTalk q;
  CHECK(q.say("Q.POP 0 q") == "-BADFIELD field=numqueues");
  CHECK(q.say("Q.POP x q") == "-BADFIELD field=numqueues");
  CHECK(q.say("Q.POP 2 q") == "-ERR syntax error");
  CHECK(q.say("Q.POP 1 q NOSUCH") == "-ERR syntax error");
  for (const char* option :
       {"COUNT 0", "COUNT 257", "LEASE 99", "LEASE 604800001", "BLOCK -1", "CAP 0", "WORKER ''"}) {
    CHECK_MESSAGE(q.say(std::string("Q.POP 1 q ") + option).rfind("-BADFIELD field=", 0) == 0,
                  option);
  }
  CHECK(q.say("Q.POP 1 q REQID r") == "-BADFIELD field=worker");
}

TEST_CASE("several queues are tried in the order named; all jobs come from one") {
  QueueTalk q;
  q.add("a");
  q.say("Q.ADD p b x");
  q.say("Q.ADD p c x");
  CHECK(q.ids_of(q.ask("Q.POP 3 none p q COUNT 9")) == "b c");
  CHECK(q.ids_of(q.ask("Q.POP 2 p q COUNT 9")) == "a");
  q.say("SET s x");
  CHECK(q.say("Q.POP 2 q s").rfind("-WRONGTYPE", 0) == 0);
}

TEST_CASE("CAP admits only below it, whatever max_active is") {
  QueueTalk q;
  q.add("a b c d");
  CHECK(q.pop("CAP 2 COUNT 9") == "a b");
  CHECK(q.pop("CAP 2") == "null");
  CHECK(q.pop("CAP 3") == "c");
  q.say("Q.CONFIG q SET max_active 3");
  CHECK(q.pop("CAP 9") == "null");
}

TEST_CASE("MATCH takes only jobs that carry one of the keys, in order") {
  QueueTalk q;
  q.add("plain");
  q.add("py1", "KEY lang:python");
  q.add("js", "KEY lang:js KEY slow");
  q.add("py2", "KEY lang:python");
  CHECK(q.pop("MATCH lang:js") == "js");
  CHECK(q.pop("MATCH lang:go MATCH lang:python COUNT 9") == "py1 py2");
  CHECK(q.pop("MATCH lang:python") == "null");
  CHECK(q.pop() == "plain");
}

TEST_CASE("MATCH of a key in many sets takes the first of all of them, and none that is full") {
  QueueTalk q;
  for (int i = 0; i < 12; ++i) {
    const std::string own = "k" + std::to_string(i % 6);
    q.add("j" + std::to_string(i), "KEY all KEY " + own + (i < 8 ? "" : " PRI HIGH"));
    q.find_queue("q")->check();
  }
  q.say("Q.CONFIG q KEY k3 SET max_active 1");
  CHECK(q.pop("MATCH all COUNT 6") == "j8 j9 j10 j11 j0 j1");
  q.find_queue("q")->check();
  CHECK(q.pop("MATCH k1 MATCH all COUNT 3") == "j2 j4 j5");
  q.ack("j9");
  CHECK(q.pop("MATCH all COUNT 3") == "j3 j6 j7");
  q.find_queue("q")->check();
}

TEST_CASE("tokens grow, also across restarts, DEL and RENAME") {
  QueueTalk q;
  int64_t last = 0;
  const auto next = [&](const std::string& queue) {
    q.say("Q.ADD " + queue + " * x");
    const int64_t token = q.ask("Q.POP 1 " + queue).items.at(0).number("lease");
    const bool grows = token > last;
    last = token;
    return grows;
  };
  CHECK(next("q"));
  CHECK(next("q"));
  q.say("DEL q");
  CHECK(next("q"));
  q.restart(4);
  CHECK(next("q"));
  q.say("DEL q");
  q.restart(4);
  CHECK(next("q"));
  const int64_t before = last;
  q.say("RENAME q other");
  CHECK(next("q"));
  last = before;
  CHECK(next("other"));
  q.say("FLUSHALL");
  last = before + 1;
  CHECK(next("q"));
}

// --- Waiting ---

TEST_CASE("a waiting pop is served by add, release, due delay, raised cap, resumed queue") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  CHECK(q.say("Q.ADD q a x", "position") == "0");
  CHECK(heard(q, 1) == "a");
  q.say("Q.CONFIG q SET max_active 1");
  q.add("b c");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.ack("a");
  CHECK(heard(q, 1) == "b");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.say("Q.CONFIG q SET max_active 2");
  CHECK(heard(q, 1) == "c");
  q.say("Q.CONFIG q SET max_active 0 paused out");
  q.add("d");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.say("Q.CONFIG q SET paused none");
  CHECK(heard(q, 1) == "d");
  q.add("e", "DELAY 30");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.pass(29);
  CHECK(heard(q, 1) == "(nothing)");
  q.pass(1);
  CHECK(heard(q, 1) == "e");
}

TEST_CASE("waiting pops are served in the order in which they came") {
  QueueTalk q;
  for (size_t i = 1; i <= 3; ++i) CHECK(q.say_as(i, "Q.POP 1 q BLOCK 0") == "(waits)");
  CHECK(q.stat("waiting_pops") == "3");
  q.add("a");
  CHECK(heard(q, 1) == "a");
  q.add("b");
  CHECK(heard(q, 2) == "b");
  q.give_up(3);
  CHECK(q.stat("waiting_pops") == "0");
}

TEST_CASE("the first job that any waiter accepts goes to the earliest waiter that accepts it") {
  QueueTalk q;
  q.say("Q.CONFIG q SET paused out");
  q.say_as(1, "Q.POP 1 q BLOCK 0 MATCH k");
  q.say_as(2, "Q.POP 1 q BLOCK 0");
  q.say_as(3, "Q.POP 1 q BLOCK 0");
  q.add("plain");
  q.add("keyed", "KEY k");
  q.say("Q.CONFIG q SET paused none max_active 1");
  auto deliveries = q.take_deliveries();
  REQUIRE(deliveries.size() == 1);
  CHECK(q.ids_of(deliveries.at(2)) == "plain");
  q.ack("plain");
  deliveries = q.take_deliveries();
  REQUIRE(deliveries.size() == 1);
  CHECK(q.ids_of(deliveries.at(1)) == "keyed");
}

TEST_CASE("Q.ADD answers for the moment before waiters are served") {
  QueueTalk q;
  q.say_as(1, "Q.POP 1 q BLOCK 0");
  CHECK(q.say("Q.ADD q a x") == "{id=a result=added state=pending position=0 eta_ms=null}");
  CHECK(q.state("a") == "active");
}

TEST_CASE("a pop by ID waits for its own turn, and hears when the job has ended") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  q.add("a b c");
  CHECK(q.pop() == "a");
  CHECK(q.say_as(1, "Q.POP 1 q ID c BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.POP 1 q ID b BLOCK 0") == "(waits)");
  q.ack("a");
  CHECK(heard(q, 2) == "b");
  q.say("Q.CANCEL q c");
  const auto deliveries = q.take_deliveries();
  REQUIRE(deliveries.contains(1));
  CHECK(deliveries.at(1).show() == "-GONE id=c state=cancelled");
  CHECK(q.say("Q.POP 1 q ID b") == "-GONE id=b state=active");
  q.ack("b");
  CHECK(q.say("Q.POP 1 q ID b BLOCK 0") == "-GONE id=b state=completed");
}

TEST_CASE("blocking forms do not block in MULTI and in scripts") {
  QueueTalk q;
  q.say("MULTI");
  q.say("Q.POP 1 q BLOCK 0");
  q.say("Q.ADD q a x");
  q.say("Q.POP 1 q BLOCK 0");
  const RespValue reply = q.ask("EXEC");
  REQUIRE(reply.items.size() == 3);
  CHECK(reply.items[0].is_null());
  CHECK(q.ids_of(reply.items[2]) == "a");
  const auto script =
      q.run(0, {"EVAL", "return redis.call('Q.POP', 1, 'q', 'BLOCK', 0)", "1", "q"});
  REQUIRE(script.has_value());
  CHECK(script->is_null());
}

TEST_CASE("after DEL leases are stale and pops go on waiting") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.say("DEL q");
  CHECK(q.ack("a") == "-NOJOB id=a");
  CHECK(heard(q, 1) == "(nothing)");
  q.add("b");
  CHECK(heard(q, 1) == "b");
}

// --- REQID ---

TEST_CASE("the same worker asking again with the same REQID gets the same jobs and leases") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.pop("WORKER w REQID r1 COUNT 2 LEASE 1000") == "a b");
  const std::string lease = q.lease("a");
  q.pass(600);
  CHECK(q.say("Q.POP 1 q WORKER w REQID r1 COUNT 2 LEASE 1000").find("deadline=1700000001600") !=
        std::string::npos);
  CHECK(q.pop("WORKER w REQID r1 COUNT 2") == "a b");
  CHECK(q.lease("a") == lease);
  CHECK(q.job("a", {"attempts"}) == "1");
  q.ack("a");
  CHECK(q.pop("WORKER w REQID r1 COUNT 2") == "b");
  CHECK(q.pop("WORKER other REQID r1") == "c");
  q.ack("b");
  CHECK(q.pop("WORKER w REQID r1") == "null");
}

TEST_CASE("a new REQID forgets the old one") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.pop("WORKER w REQID r2") == "b");
  CHECK(q.pop("WORKER w REQID r1") == "c");
}

TEST_CASE("a pop without REQID forgets no token") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.pop("WORKER w") == "b");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  q.restart(4);
  CHECK(q.pop("WORKER w REQID r1") == "a");
}

TEST_CASE("a repeated pop of several queues finds the jobs where they are") {
  QueueTalk q;
  q.say("Q.ADD p b x");
  CHECK(q.ids_of(q.ask("Q.POP 2 q p WORKER w REQID r1")) == "b");
  q.add("a");
  CHECK(q.ids_of(q.ask("Q.POP 2 q p WORKER w REQID r1")) == "b");
}

TEST_CASE("a repeated Q.ACK POP skips the acknowledgement and gives the same job") {
  QueueTalk q;
  q.add("a b c");
  q.pop();
  const std::string line = "Q.ACK q a " + q.lease("a") + " POP WORKER w REQID r1";
  CHECK(q.ids_of(q.ask(line)) == "b");
  CHECK(q.ids_of(q.ask(line)) == "b");
  CHECK(q.stat("completed") == "1");
  CHECK(q.stat("started") == "2");
}

TEST_CASE("REQID survives a restart") {
  QueueTalk q;
  q.add("a b");
  CHECK(q.pop("WORKER w REQID r1") == "a");
  const std::string lease = q.lease("a");
  q.restart(4);
  CHECK(q.pop("WORKER w REQID r1") == "a");
  CHECK(q.lease("a") == lease);
}

// --- Q.ACK ---

TEST_CASE("an acknowledgement needs the lease; again by the lease that completed it is OK") {
  QueueTalk q;
  q.add("a");
  q.pop();
  CHECK(q.say("Q.ACK q a 999999") == "-STALELEASE id=a state=active");
  CHECK(q.say("Q.ACK q a *").rfind("-", 0) == 0);
  CHECK(q.ack("a", "RESULT done") == "OK");
  CHECK(q.job("a", {"state", "result"}) == "completed done");
  CHECK(q.ack("a") == "OK");
  CHECK(q.say("Q.ACK q a 999999") == "-STALELEASE id=a state=completed");
  CHECK(q.say("Q.ACK q b 1") == "-NOJOB id=b");
  CHECK(q.stat("completed") == "1");
}

TEST_CASE("with fencing off * is the current lease") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fencing off");
  q.add("a b");
  CHECK(q.say("Q.ACK q a *") == "-STALELEASE id=a state=pending");
  q.pop("COUNT 2");
  CHECK(q.say("Q.ACK q a *") == "OK");
  CHECK(q.say("Q.NACK q b * FATAL", "state") == "failed");
}

TEST_CASE("Q.ACK POP takes effect before the pop; if it fails nothing is popped") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  q.add("a b");
  q.pop();
  CHECK(q.say("Q.ACK q a 999999 POP").rfind("-STALELEASE", 0) == 0);
  CHECK(q.state("b") == "pending");
  CHECK(q.ids_of(q.ask("Q.ACK q a " + q.lease("a") + " POP")) == "b");
  CHECK(q.say("Q.ACK q b " + q.lease("b") + " POP") == "null");
}

// --- Expired leases ---

TEST_CASE("a lost lease returns the job at its old rank, and its token is stale") {
  QueueTalk q;
  q.add("a", "LEASE 200");
  q.pass(1);
  q.add("b");
  q.pop();
  q.pass(199);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.job("a", {"state", "position", "crashes"}) == "pending 0 1");
  CHECK(q.ack("a") == "-STALELEASE id=a state=pending");
  const std::string old = q.lease("a");
  CHECK(q.pop() == "a");
  CHECK(q.say("Q.ACK q a " + old) == "-STALELEASE id=a state=active");
  CHECK(q.stat("reclaimed") == "1");
}

TEST_CASE("a lost lease spends crash_limit, never retry; beyond it the job has failed") {
  QueueTalk q;
  q.say("Q.CONFIG q SET crash_limit 2 lease_ms 100 retry 5");
  q.add("a");
  for (int i = 0; i < 2; ++i) {
    CHECK(q.pop() == "a");
    q.pass(100);
    CHECK(q.job("a", {"state", "retries_left"}) == "pending 5");
  }
  CHECK(q.pop() == "a");
  q.pass(100);
  CHECK(q.job("a", {"state", "error"}) == "failed lease lost");
}

TEST_CASE("after a restart every lease gets its full term again") {
  QueueTalk q;
  q.add("a", "LEASE 1000");
  q.pop();
  q.pass(900);
  q.restart(4);
  q.pass(999);
  CHECK(q.state("a") == "active");
  q.touch("a", "LEASE 3000");
  q.pass(2000);
  q.restart(4);
  q.pass(2999);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.state("a") == "pending");
}

TEST_CASE("leases are on the steady clock: a jump of the wall clock ends none") {
  QueueTalk q;
  q.add("a", "LEASE 1000");
  q.pop();
  q.set_clock(q.wall_ms() + 86'400'000, q.steady_ms() + 1);
  q.run_timers();
  CHECK(q.state("a") == "active");
}

TEST_CASE("beyond MAXRUN a run fails, whatever its lease says") {
  QueueTalk q;
  q.add("a", "MAXRUN 300 LEASE 200 RETRY 1 BACKOFF 0 0");
  q.pop();
  q.pass(150);
  q.touch("a");
  q.pass(150);
  CHECK(q.job("a", {"state", "error", "retries_left", "crashes"}) == "pending max_run 0 0");
  q.pop();
  q.pass(150);
  q.touch("a");
  q.pass(150);
  CHECK(q.job("a", {"state", "error"}) == "failed max_run");
}

// --- Q.NACK ---

TEST_CASE("FAIL spends a retry and backs off, at its rank; then it has failed") {
  QueueTalk q;
  q.add("a", "RETRY 1 BACKOFF 100 100");
  q.pass(1);
  q.add("b");
  q.pop();
  const RespValue reply = q.ask("Q.NACK q a " + q.lease("a") + " ERROR oops");
  CHECK(reply.field("attempts_left") == "1");
  CHECK(q.job("a", {"error"}) == "oops");
  q.pass(100);
  CHECK(q.job("a", {"state", "position"}) == "pending 0");
  q.pop();
  CHECK(q.say("Q.NACK q a " + q.lease("a") + " FAIL", "state") == "failed");
  CHECK(q.stat("failed") == "1");
}

TEST_CASE("the delay of a retry is random up to the backoff, doubled with each, or as given") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retry 9 backoff 100:400");
  int64_t greatest = 0;
  for (int i = 0; i < 40; ++i) {
    q.say("Q.ADD q j x IFDUP REPLACE");
    for (const int64_t most : {100, 200, 400, 400}) {
      CHECK(q.pop() == "j");
      const RespValue reply = q.ask("Q.NACK q j " + q.lease("j"));
      const int64_t delay =
          reply.field("not_before") == "null" ? 0 : reply.number("not_before") - q.wall_ms();
      CHECK(delay >= 0);
      CHECK(delay <= most);
      greatest = std::max(greatest, delay);
      q.pass(400);
    }
  }
  CHECK(greatest > 200);
  q.pop();
  const RespValue reply = q.ask("Q.NACK q j " + q.lease("j") + " DELAY 5000");
  CHECK(reply.number("not_before") == q.wall_ms() + 5000);
}

TEST_CASE("FATAL fails at once; SILENT gives the job back as if never popped") {
  QueueTalk q;
  q.add("a b", "RETRY 3");
  q.pop("COUNT 2");
  CHECK(q.say("Q.NACK q a " + q.lease("a") + " FATAL ERROR broken", "state") == "failed");
  CHECK(q.job("a", {"error"}) == "broken");
  CHECK(q.say("Q.NACK q b " + q.lease("b") + " SILENT") ==
        "{state=pending not_before=null attempts_left=4}");
  CHECK(q.job("b", {"attempts", "retries_left"}) == "0 3");
  CHECK(q.nack("b") == "-STALELEASE id=b state=pending");
}

TEST_CASE("returning jobs are never refused for capacity") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 1");
  q.add("a");
  q.pop();
  q.add("b");
  CHECK(q.say("Q.NACK q a " + q.lease("a") + " SILENT", "state") == "pending");
  CHECK(q.stat("pending") == "2");
}

// --- Q.TOUCH ---

TEST_CASE("TOUCH renews the lease, by LEASE or as much as before, and keeps progress") {
  QueueTalk q;
  q.add("a", "LEASE 1000");
  q.pop();
  q.pass(900);
  CHECK(q.touch("a") == "{left_ms=1000 cancel=null}");
  CHECK(q.touch("a", "LEASE 500 PROGRESS 40%") == "{left_ms=500 cancel=null}");
  CHECK(q.job("a", {"progress"}) == "40%");
  q.pass(500);
  CHECK(q.touch("a") == "-STALELEASE id=a state=pending");
  q.restart(4);
  CHECK(q.job("a", {"progress"}) == "40%");
}

// --- Q.CANCEL ---

TEST_CASE("cancel of a waiting job is at once, of an active one a signal, of others gone") {
  QueueTalk q;
  q.add("a b");
  q.pop();
  CHECK(q.say("Q.CANCEL q b REASON late") == "cancelled");
  CHECK(q.job("b", {"state", "error"}) == "cancelled late");
  CHECK(q.say("Q.CANCEL q b") == "gone");
  CHECK(q.say("Q.CANCEL q nobody") == "gone");
  CHECK(q.say("Q.CANCEL q a REASON stop") == "signalled");
  CHECK(q.touch("a").find("cancel=stop") != std::string::npos);
  CHECK(q.job("a", {"state", "cancel"}) == "active stop");
}

TEST_CASE("a signalled lease cannot be extended; its end is cancelled, never retried") {
  QueueTalk q;
  q.add("a", "LEASE 1000 RETRY 5");
  q.pop();
  q.say("Q.CANCEL q a GRACE 300");
  q.pass(200);
  CHECK(q.touch("a", "LEASE 5000").find("left_ms=100") != std::string::npos);
  q.pass(100);
  CHECK(q.state("a") == "cancelled");
  for (const std::string kept : {"0", "1000"}) {
    q.say("Q.CONFIG q SET retain_completed " + kept);
    q.add("b", "RETRY 5");
    q.pop();
    q.say("Q.CANCEL q b");
    CHECK(q.say("Q.NACK q b " + q.lease("b"), "state") == "cancelled");
  }
  q.add("c");
  q.pop();
  q.say("Q.CANCEL q c");
  CHECK(q.ack("c") == "OK");
  CHECK(q.state("c") == "completed");
}

TEST_CASE("GRACE 0 revokes at once, GRACE never lengthens a lease") {
  QueueTalk q;
  q.add("a b", "LEASE 1000");
  q.pop("COUNT 2");
  CHECK(q.say("Q.CANCEL q a GRACE 0") == "cancelled");
  CHECK(q.ack("a") == "-STALELEASE id=a state=cancelled");
  q.say("Q.CANCEL q b GRACE 60000");
  q.pass(1000);
  CHECK(q.state("b") == "cancelled");
}

TEST_CASE("the holder of a cancelled lease hears it by a push") {
  QueueTalk q;
  q.add("a");
  q.ids_of(q.run(1, QueueTalk::words("Q.POP 1 q")).value_or(RespValue()));
  q.say("Q.CANCEL q a REASON stop");
  const std::vector<RespValue> messages = q.take_messages(1);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].show() == "[q.cancel q a " + q.lease("a") + " stop]");
  q.say("Q.CANCEL q a GRACE 0");
  CHECK(q.take_messages(1).size() == 1);
}

}  // namespace
