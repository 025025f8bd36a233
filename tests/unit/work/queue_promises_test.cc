// What a queue has promised for a job remains true: its place, its time, its ends, its limits.
#include <functional>
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

TEST_CASE("MOVE: the present band changes nothing, another one ends FRONT and BACK") {
  QueueTalk q;
  q.add("a b c");
  q.say("Q.MOVE q c FRONT");
  q.say("Q.MOVE q a BACK");
  const std::string moved = "Q.EVENTS q - TYPE moved";
  const std::string before = q.say(moved);
  CHECK(q.say("Q.MOVE q c PRI NORMAL") == "0");
  CHECK(q.say("Q.MOVE q a PRI 2") == "2");
  CHECK(q.say("Q.MOVE q b") == "1");
  CHECK(q.say(moved) == before);
  // It arrived first, however often it has been moved behind all others since.
  for (const char* id : {"c", "a", "a"}) {
    q.say("Q.MOVE q " + std::string(id) + " PRI LOW");
    if (*id == 'a') q.say("Q.MOVE q a BACK");
    q.say("Q.MOVE q " + std::string(id) + " PRI NORMAL");
  }
  CHECK(q.drain() == "a b c");
  q.add("late", "DELAY 1000");
  CHECK(q.say("Q.MOVE q late PRI NORMAL") == "null");
  CHECK(q.state("late") == "delayed");
  // A boost applies to the release, not to the place at the back.
  q.add("d e");
  q.say("Q.MOVE q d BACK");
  CHECK(q.say("Q.MOVE q d BOOST 0") == "0");
  q.say("Q.MOVE q e FRONT");
  q.say("Q.ADD q e new IFDUP UPDATE PRI LOW");
  q.say("Q.MOVE q d PRI LOW");
  CHECK(q.drain() == "d e");
}

TEST_CASE("MOVE: in a LIFO group another band keeps the ticket that the job had") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("a b", "GROUP g");
  q.pass(5);
  q.add("between");
  // The newest of the group has the earliest ticket.
  q.say("Q.MOVE q b BACK");
  q.say("Q.MOVE q b PRI LOW");
  CHECK(q.say("Q.MOVE q b PRI NORMAL") == "0");
  CHECK(q.say("Q.MOVE q a PRI NORMAL") == "1");
  CHECK(q.drain() == "b a between");
}

TEST_CASE("MOVE: in another band a retried job comes after those that came before the retry") {
  QueueTalk q;
  q.add("retried");
  q.say("Q.MOVE q retried BACK");
  q.pop();
  q.nack("retried", "FATAL");
  q.add("before", "PRI HIGH");
  CHECK(q.say("Q.RETRY q retried") == "pending");
  CHECK(q.say("Q.MOVE q retried PRI HIGH") == "1");
  CHECK(q.drain() == "before retried");
}

TEST_CASE("MOVE: a delay that FRONT or BACK ends is over at that moment") {
  const auto moved = [](const std::function<void(QueueTalk&)>& meanwhile) {
    QueueTalk q;
    q.begin_following();
    q.add("a b c d", "DELAY 3600000");
    q.pass(100);
    CHECK(q.say("Q.MOVE q a FRONT") == "0");
    CHECK(q.say("Q.MOVE q b BACK") == "1");
    CHECK(q.say("Q.MOVE q c FRONT") == "0");
    q.pass(100);
    meanwhile(q);
    CHECK(q.stat("oldest_ms") == "100");
    // Another band goes by the release, in whatever way it is named.
    CHECK(q.say("Q.MOVE q a PRI LOW") == "2");
    CHECK(q.say("Q.ADD q b x PRI LOW IFDUP UPDATE", "result") == "updated");
    CHECK(q.say("Q.ADD q e x PRI LOW", "position") == "3");
    CHECK(q.say("Q.ADD q c x DELAY 3600000 IFDUP UPDATE") == "-BADFIELD field=delay");
    CHECK(q.say("Q.ADD q d x DELAY 3600000 IFDUP UPDATE", "result") == "updated");
    CHECK(q.drain() == "c a b e");
    CHECK(q.ask("Q.STATS q").find("wait_ms")->field("max") == "100");
  };
  moved([](QueueTalk&) {});
  moved([](QueueTalk& q) { q.restart(4); });
  moved([](QueueTalk& q) { q.restart_from_checkpoint(4); });
  moved([](QueueTalk& q) { q.take_over(4); });
}

TEST_CASE("a job keeps the TTL that held when it was added") {
  QueueTalk q;
  q.say("Q.CONFIG q SET ttl_ms 1000 retry 1 backoff 0:0");
  q.say("Q.CONFIG q GROUP g SET ttl_ms 300");
  q.add("a", "DELAY 10");
  q.add("b", "GROUP g DELAY 10");
  q.add("c", "TTL 0 DELAY 10");
  q.say("Q.CONFIG q SET ttl_ms 50");
  q.say("Q.CONFIG q GROUP g SET ttl_ms 50");
  q.add("d", "DELAY 10");
  const auto left = [&](const char* id) { return q.job(id, {"ttl_left_ms"}); };
  CHECK(left("a") + " " + left("b") + " " + left("c") + " " + left("d") == "1000 300 null 50");
  q.say("Q.MOVE q a PRI LOW");
  q.say("Q.ADD q a new IFDUP UPDATE PRI HIGH");
  q.pass(10);
  CHECK(left("a") + " " + left("b") + " " + left("c") + " " + left("d") == "1000 300 null 50");
  q.pass(40);
  CHECK(q.pop() == "a");
  q.nack("a");
  CHECK(left("a") == "960");
  q.say("Q.CANCEL q a");
  q.say("Q.RETRY q a");
  CHECK(left("a") == "1000");
  q.say("Q.CONFIG q SET ttl_ms 0");
  q.restart(4);
  CHECK(left("a") + " " + left("b") + " " + left("c") == "1000 260 null");
  CHECK(q.state("d") == "pending");
  q.pass(10);
  CHECK(q.state("d") == "expired");
}

TEST_CASE("in a LIFO group a TTL rests while a newer job has the ticket, over restarts as well") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("old", "GROUP g TTL 1000");
  q.pass(400);
  q.add("new", "GROUP g DELAY 2000");
  REQUIRE(q.state("new") == "pending");
  CHECK(q.job("old", {"state", "ttl_left_ms"}) == "delayed 600");
  q.restart(4);
  q.pass(700);
  CHECK(q.job("old", {"state", "ttl_left_ms"}) == "delayed 600");
  q.pass(1300);
  CHECK(q.job("old", {"state", "ttl_left_ms"}) == "pending 600");
  q.restart(4);
  q.pass(599);
  CHECK(q.job("old", {"state", "ttl_left_ms"}) == "pending 1");
  q.pass(1);
  CHECK(q.state("old") == "expired");
}

TEST_CASE("a successor has the TTL of its predecessor, a replacement that of its own addition") {
  QueueTalk q;
  q.say("Q.CONFIG q SET ttl_ms 1000");
  q.add("a b");
  q.pop("COUNT 2");
  q.say("Q.CONFIG q SET ttl_ms 400");
  q.say("Q.ADD q a new IFDUP UPDATE");
  q.say("Q.ADD q b new IFDUP REPLACE");
  q.say("Q.CONFIG q SET ttl_ms 10");
  q.ack("a");
  q.ack("b");
  CHECK(q.job("a", {"payload", "ttl_left_ms"}) == "new 1000");
  CHECK(q.job("b", {"payload", "ttl_left_ms"}) == "new 400");
}

TEST_CASE("a replacement has nothing of the active job but its id, and all of its own addition") {
  QueueTalk q;
  q.say("Q.CONFIG q SET lease_ms 5000");
  q.add("a", "PRI HIGH COST 2 LEASE 1000 TTL 9000");
  q.pass(100);
  q.pop();
  q.touch("a", "PROGRESS half");
  q.say("Q.ADD q a new IFDUP REPLACE DELAY 500");
  q.pass(100);
  q.nack("a", "FAIL ERROR broken");
  CHECK(q.job("a", {"state", "pri", "cost", "lease_ms"}) == "delayed NORMAL 1 5000");
  CHECK(q.job("a", {"error", "progress", "enqueued"}) ==
        "null null " + std::to_string(q.wall_ms()));
  q.pass(400);
  CHECK(q.job("a", {"state", "ttl_left_ms"}) == "pending null");
  q.pop();
  q.add("b");
  q.say("Q.ADD q a newer IFDUP REPLACE BOOST 60000");
  q.ack("a");
  CHECK(q.drain() == "a b");
}

TEST_CASE("an acknowledgement may be repeated when a successor has taken over") {
  QueueTalk q;
  q.add("a");
  q.pop();
  q.say("Q.ADD q a second IFDUP UPDATE");
  CHECK(q.ack("a") == "OK");
  const std::string first = q.lease("a");
  CHECK(q.say("Q.ACK q a " + first) == "OK");
  q.pop();
  REQUIRE(q.lease("a") != first);
  CHECK(q.say("Q.ACK q a " + first) == "OK");
  CHECK(q.state("a") == "active");
  q.restart(4);
  CHECK(q.say("Q.ACK q a " + first) == "OK");
  CHECK(q.say("Q.ACK q a 999") == "-STALELEASE id=a state=active");
  CHECK(q.ack("a") == "OK");
  CHECK(q.ack("a") == "OK");
  CHECK(q.say("Q.ACK q a " + first) == "OK");
  // A lease that has failed cannot acknowledge.
  q.add("b");
  q.pop();
  q.say("Q.ADD q b second IFDUP UPDATE");
  q.nack("b", "FATAL");
  CHECK(q.ack("b") == "-STALELEASE id=b state=pending");
}

TEST_CASE("a replacement of another group meets its limits, and counts there") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP full SET max_waiting 1");
  q.say("Q.CONFIG q GROUP shut SET paused in");
  const auto waiting = [&](const char* group) {
    return q.say("Q.STATS q GROUP " + std::string(group), "waiting");
  };
  q.add("a b", "GROUP own");
  q.pop("COUNT 2");
  CHECK(q.say("Q.ADD q a x IFDUP REPLACE GROUP shut") == "-PAUSED direction=in");
  CHECK(q.say("Q.ADD q a x IFDUP REPLACE GROUP full", "result") == "queued");
  CHECK(waiting("full") + waiting("own") == "10");
  CHECK(q.say("Q.ADD q c x GROUP full") == "-GROUPFULL group=full limit=max_waiting value=1");
  CHECK(q.say("Q.ADD q b x IFDUP REPLACE GROUP full") ==
        "-GROUPFULL group=full limit=max_waiting value=1");
  // It replaces the existing successor.
  CHECK(q.say("Q.ADD q a y IFDUP REPLACE GROUP full", "result") == "queued");
  q.restart(4);
  CHECK(waiting("full") + waiting("own") == "10");
  q.find_queue("q")->check();
  CHECK(q.ack("a") == "OK");
  CHECK(waiting("full") + waiting("own") == "10");
  CHECK(q.job("a", {"state", "group"}) == "pending full");
  // A cancel also removes the successor.
  q.say("Q.ADD q b x IFDUP REPLACE GROUP other");
  CHECK(waiting("other") == "1");
  q.say("Q.CANCEL q b");
  CHECK(waiting("other") == "0");
  q.find_queue("q")->check();
}

TEST_CASE("the group of a successor is forgotten with it") {
  QueueTalk q;
  q.add("a");
  q.pop();
  q.say("Q.ADD q a new IFDUP REPLACE GROUP g");
  q.say("Q.CANCEL q a GRACE 0");
  q.say("Q.PURGE q WHERE ALL");
  CHECK(q.find_queue("q")->lanes.groups().size() == 0);
}

TEST_CASE("a job that has ended tells how long it ran") {
  QueueTalk q;
  q.add("a");
  q.pop();
  q.pass(30);
  q.ack("a");
  CHECK(q.job("a", {"run_ms"}) == "30");
}

TEST_CASE("why: no slot is left, whoever is first") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  q.add("a b c");
  CHECK(q.job("c", {"why"}) == "behind 2");
  q.pop();
  CHECK(q.job("b", {"why"}) == "queue_cap 1/1");
  CHECK(q.job("c", {"why"}) == "queue_cap 1/1");
}

TEST_CASE("the backoff of a job has its own bound") {
  QueueTalk q;
  q.add("a", "RETRY 9 BACKOFF 1 1");
  for (int i = 0; i < 9; ++i) {
    q.pop();
    q.nack("a");
    q.pass(1);
    CHECK(q.state("a") == "pending");
  }
}

TEST_CASE("a full queue says so before a full group does, also where it displaces") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 2 full displace");
  q.say("Q.CONFIG q GROUP g SET max_waiting 1");
  q.add("a", "GROUP g PRI HIGH");
  q.add("b", "PRI HIGH");
  CHECK(q.say("Q.ADD q c x GROUP g PRI HIGH").substr(0, 6) == "-QFULL");
  CHECK(q.say("Q.ADD q c x PRI HIGH MAXWAIT 0").substr(0, 6) == "-QFULL");
  // A job could be dropped, but not for a job that its group rejects.
  CHECK(q.say("Q.ADD q c x GROUP g PRI CRITICAL").substr(0, 10) == "-GROUPFULL");
  CHECK(q.state("b") == "pending");
  CHECK(q.say("Q.ADD q c x PRI CRITICAL", "result") == "added");
  CHECK(q.state("b") == "cancelled");
}

TEST_CASE("ready is told once: when need and delay are over") {
  QueueTalk q;
  q.add("base");
  q.add("late", "NEED base DELAY 100");
  q.add("soon", "NEED base");
  q.pop();
  q.ack("base");
  const auto ready = [&] { return q.ask("Q.EVENTS q - TYPE ready").size(); };
  CHECK(ready() == 1);
  CHECK(q.state("late") == "delayed");
  q.pass(100);
  CHECK(ready() == 2);
}

TEST_CASE("the deadline that is told is that of the run, where it comes first") {
  QueueTalk q;
  q.add("a", "LEASE 5000 MAXRUN 1000 RETRY 0");
  const RespValue popped = q.ask("Q.POP 1 q");
  CHECK(popped.items.at(0).number("deadline") == 1'700'000'001'000);
  CHECK(q.job("a", {"deadline"}) == "1700000001000");
  q.pass(999);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.state("a") == "failed");
}

TEST_CASE("a pop by ID takes a job that is shown as pending, in a LIFO group as well") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("old");
  q.add("new", "DELAY 1000");
  CHECK(q.state("old") == "delayed");
  CHECK(q.pop("ID old") == "null");
  CHECK(q.state("new") == "pending");
  CHECK(q.pop("ID new") == "new");
}

TEST_CASE("a pop by ID with MATCH takes no job without the key") {
  QueueTalk q;
  q.add("a", "KEY k");
  CHECK(q.pop("ID a MATCH other") == "null");
  CHECK(q.pop("ID a MATCH k") == "a");
}

TEST_CASE("Q.CANCEL WHERE tells a run once, and bounds it whenever GRACE is given") {
  QueueTalk q;
  q.add("a");
  CHECK(q.pop() == "a");
  CHECK(q.say("Q.CANCEL q WHERE ALL") == "[0 1]");
  CHECK(q.say("Q.CANCEL q WHERE ALL") == "[0 0]");
  CHECK(q.state("a") == "active");
  CHECK(q.say("Q.CANCEL q WHERE ALL GRACE 0") == "[0 1]");
  CHECK(q.state("a") == "cancelled");
}

TEST_CASE("MAXRUN goes on over DEBUG RELOAD") {
  QueueTalk q;
  q.engine().options().debug_access = DebugAccess::kEverybody;
  q.add("a", "MAXRUN 300 LEASE 90000 RETRY 0");
  q.pass(1000);
  q.pop();
  q.pass(100);
  CHECK(q.say("DEBUG RELOAD") == "OK");
  q.pass(199);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.job("a", {"state", "error"}) == "failed max_run");
}

TEST_CASE("MAXRUN holds for a run that a restart has met") {
  QueueTalk q;
  q.pass(5000);
  q.add("a", "MAXRUN 1000 LEASE 60000 RETRY 0");
  q.pop();
  q.restart(4);
  q.pass(1000);
  CHECK(q.job("a", {"state", "error"}) == "failed max_run");
}

TEST_CASE("max_run_ms of the queue bounds each run whose job has no MAXRUN of its own") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    QueueTalk q;
    q.say("Q.CONFIG q SET max_run_ms 1000 lease_ms 60000 retry 0");
    q.add("a");
    q.add("b", "MAXRUN 0");
    CHECK(q.pop("COUNT 2") == "a b");
    if (restarts) q.restart(4);
    q.pass(999);
    CHECK(q.state("a") == "active");
    q.pass(1);
    CHECK(q.job("a", {"state", "error"}) == "failed max_run");
    CHECK(q.state("b") == "active");
  }
}

TEST_CASE("numbers are numbers in the fields of events, whatever texts look like") {
  QueueTalk q;
  q.add("a", "RETRY 1");
  q.pop("WORKER 7");
  q.nack("a", "DELAY 5 ERROR 12");
  // As seen by a script: a RESP2 reply, where the fields are a flat array.
  const auto kinds = [&](const std::string& type) {
    const std::string script =
        "local out = '' for i, value in ipairs(redis.call('Q.EVENTS', 'q', '-', 'TYPE', '" + type +
        "')[1][5]) do out = out .. (i % 2 == 1 and value or '=' .. type(value) .. ' ') end "
        "return out";
    return q.run(0, {"EVAL", script, "0"})->text;
  };
  CHECK(kinds("started") == "lease=number worker=string attempt=number ");
  CHECK(kinds("retrying") == "lease=number error=string delay_ms=number ");
}

TEST_CASE("a queue has at least one band") {
  QueueTalk q;
  CHECK(q.say("Q.CONFIG q SET bands ''") == "-BADFIELD field=bands");
  CHECK(q.say("Q.CONFIG q SET bands only") == "OK");
}

// --- Numbers of events ---

// Numbers and ids of the events after `after`: "1 a, 2 a".
std::string events(QueueTalk& q, const std::string& queue, const std::string& after) {
  const RespValue reply = q.ask("Q.EVENTS " + queue + " " + after);
  if (reply.is_error()) return reply.show();
  std::string out;
  for (const RespValue& event : reply.items) {
    out += (out.empty() ? "" : ", ") + event.items[0].text + " " + event.items[3].text;
  }
  return out;
}

TEST_CASE("numbers of events never come again under a name") {
  QueueTalk q;
  const auto lives = [&](const char* id) { q.say("Q.ADD q " + std::string(id) + " x"); };
  lives("a");
  lives("b");
  CHECK(events(q, "q", "0") == "1 a, 2 b");
  q.say("DEL q");
  CHECK(events(q, "q", "-").empty());
  // A number is skipped, so that a reader of the whole first queue notices that the next is
  // another.
  CHECK(events(q, "q", "2") == "-TRIMMED oldest=4");
  CHECK(events(q, "q", "4") == "-TRIMMED oldest=4");
  CHECK(events(q, "q", "3").empty());
  lives("c");
  CHECK(events(q, "q", "3") == "4 c");
  CHECK(events(q, "q", "2") == "-TRIMMED oldest=4");
  CHECK(events(q, "q", "0") == "4 c");
  q.say("FLUSHALL");
  lives("d");
  CHECK(events(q, "q", "-") == "6 d");
  CHECK(events(q, "q", "4") == "-TRIMMED oldest=6");
  q.say("PEXPIRE q 10");
  q.pass(10);
  // One floor for all: it also applies to a queue of another name.
  q.say("Q.ADD r e x");
  CHECK(events(q, "r", "-") == "8 e");
  q.say("DEL r");
  lives("f");
  CHECK(events(q, "q", "6") == "-TRIMMED oldest=10");
  q.restart(4);
  CHECK(events(q, "q", "-") == "10 f");
  q.say("DEL q");
  q.restart_from_checkpoint(4);
  lives("g");
  CHECK(events(q, "q", "-") == "12 g");
  CHECK(events(q, "q", "10") == "-TRIMMED oldest=12");
}

TEST_CASE("what is kept stays readable under new numbers where a queue gets another name") {
  QueueTalk q;
  q.say("Q.ADD q a x");
  q.say("Q.ADD q b x");
  q.say("Q.ADD src c x");
  q.say("RENAME src q");
  CHECK(events(q, "q", "-") == "4 c");
  CHECK(events(q, "q", "3") == "4 c");
  CHECK(events(q, "q", "2") == "-TRIMMED oldest=4");
  q.say("Q.ADD q d x");
  q.say("Q.ADD src e x");
  CHECK(events(q, "src", "1") == "-TRIMMED oldest=4");
  CHECK(events(q, "src", "-") == "4 e");
  q.say("MOVE q 1");
  q.say("Q.ADD q f x");
  CHECK(events(q, "q", "-") == "7 f");
  q.say("SWAPDB 0 1");
  CHECK(events(q, "q", "-") == "10 c, 11 d");
  CHECK(events(q, "q", "7") == "-TRIMMED oldest=10");
  q.say("Q.ADD q g x");
  CHECK(events(q, "q", "11") == "12 g");
  for (const bool checkpoint : {false, true}) {
    checkpoint ? q.restart_from_checkpoint(4) : q.restart(4);
    CHECK(events(q, "q", "-") == "10 c, 11 d, 12 g");
    q.say("SELECT 1");
    CHECK(events(q, "q", "-") == "10 f");
    q.say("SELECT 0");
  }
}

TEST_CASE("the numbers that SWAPDB gave out do not come again after FLUSHALL") {
  QueueTalk q;
  q.add("a b c");
  q.say("SWAPDB 0 1");
  q.say("SELECT 1");
  CHECK(events(q, "q", "-") == "5 a, 6 b, 7 c");
  q.say("FLUSHALL");
  q.add("d");
  CHECK(events(q, "q", "-") == "9 d");
  CHECK(events(q, "q", "7") == "-TRIMMED oldest=9");
}

TEST_CASE("numbers of a transaction that flushes do not come again after it") {
  for (const char* flush : {"FLUSHDB", "FLUSHALL", "SWAPDB 0 1"}) {
    QueueTalk q;
    q.add("a b");
    for (const char* line : {"MULTI", "Q.ADD q c x", "Q.ADD q d x", flush, "Q.ADD q e x", "EXEC"}) {
      q.say(line);
    }
    CHECK(events(q, "q", "-") == "6 e");
    CHECK(events(q, "q", "4") == "-TRIMMED oldest=6");
  }
}

TEST_CASE("who waits for the events of a queue that is not there gets all of them") {
  QueueTalk q;
  q.say("Q.ADD q a x");
  q.say("DEL q");
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q 2 BLOCK 0") == "(waits)");
  q.say("Q.ADD other b x");
  q.say("DEL other");
  q.say("Q.ADD q c x");
  const auto served = q.take_deliveries();
  REQUIRE(served.size() == 2);
  CHECK(served.at(1).items.at(0).items.at(0).text == "5");
  // It is unknown whether there was an event between its number and the first one.
  CHECK(served.at(2).show() == "-TRIMMED oldest=5");
}

}  // namespace

}  // namespace sluice::test
