// Workers: quiet ones, those of which little is heard, and the end of all their runs.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

struct Fixture : QueueTalk {
  void quiet(const std::string& glob, const std::string& value = "on") {
    REQUIRE(say("Q.CONFIG q WORKER " + glob + " SET quiet " + value) == "OK");
  }
  std::string heard(int connection) {
    const auto deliveries = take_deliveries();
    const auto found = deliveries.find(connection);
    return found == deliveries.end() ? "(nothing)" : ids_of(found->second);
  }
  std::string pushed(size_t connection) {
    std::string out;
    for (const RespValue& push : take_messages(connection)) out += push.show();
    return out;
  }
  // A field of a worker's line; "absent" if there is no line.
  std::string worker(const std::string& name, const std::string& field) {
    const RespValue lines = ask("Q.STATS q BY WORKER");
    const RespValue* line = lines.find(name);
    return line == nullptr ? "absent" : line->field(field);
  }
};

// --- Quiet ---

TEST_CASE_FIXTURE(Fixture, "a quiet worker gets nothing, others do, and it is heard no less") {
  add("a b c");
  CHECK(pop("WORKER w1") == "a");
  quiet("w1");
  CHECK(pop("WORKER w1") == "null");
  CHECK(pop("WORKER w1 ID b") == "null");
  CHECK(pop("WORKER w1 ID a") == "-GONE id=a state=active");
  CHECK(touch("a", "WORKER w1") == "{left_ms=30000 cancel=null quiet=t}");
  CHECK(say("Q.TOUCH q a " + lease("a") + " AND x 1 WORKER w1") == "[t [null -NOJOB id=x]]");
  CHECK(say("Q.TOUCH q a " + lease("a") + " AND x 1") == "[f [null -NOJOB id=x]]");
  CHECK(touch("a", "WORKER w2") == "{left_ms=30000 cancel=null quiet=f}");
  CHECK(ack("a", "POP WORKER w1") == "null");
  CHECK(state("a") == "completed");
  CHECK(pop("WORKER w2") == "b");
  CHECK(pop() == "c");
  add("d");
  quiet("w1", "off");
  CHECK(pop("WORKER w1") == "d");
}

TEST_CASE_FIXTURE(Fixture, "the exact name wins, then the longest glob, then the later one") {
  add("a b c d");
  quiet("w*");
  quiet("w1", "off");
  CHECK(pop("WORKER w1") == "a");
  CHECK(pop("WORKER w2") == "null");
  quiet("w2?", "off");
  CHECK(pop("WORKER w22") == "b");
  quiet("w?2");
  CHECK(pop("WORKER w22") == "null");
  CHECK(pop() == "c");
  CHECK(say("Q.CONFIG q WORKER w* RESET") == "OK");
  CHECK(pop("WORKER w3") == "d");
}

TEST_CASE_FIXTURE(Fixture, "rules for workers are read, refused and reset as those of groups") {
  CHECK(say("Q.CONFIG q WORKER w1 GET") == "{}");
  quiet("w1");
  CHECK(say("Q.CONFIG q WORKER w1 GET") == "{quiet=on}");
  CHECK(say("Q.CONFIG q WORKER w1 GET quiet") == "{quiet=on}");
  CHECK(say("Q.CONFIG q WORKER w1 GET max_active") == "-BADFIELD field=max_active");
  CHECK(say("Q.CONFIG q WORKER w1 SET quiet maybe") == "-BADFIELD field=quiet");
  CHECK(say("Q.CONFIG q WORKER w1 SET lease_ms 1000") == "-BADFIELD field=lease_ms");
  CHECK(say("Q.CONFIG q WORKER '' SET quiet on") == "-BADFIELD field=worker");
  CHECK(say("Q.CONFIG q GROUP g SET quiet on") == "-BADFIELD field=quiet");
  CHECK(say("Q.CONFIG q SET quiet on") == "-BADFIELD field=quiet");
  CHECK(say("Q.CONFIG q WORKER w1") == "-ERR syntax error");
  CHECK(say("Q.CONFIG q WORKER w1 RESET") == "OK");
  CHECK(say("Q.CONFIG q WORKER w1 GET") == "{}");
  CHECK(say("Q.CONFIG q GET worker_ttl_ms") == "{worker_ttl_ms=60000}");
}

TEST_CASE_FIXTURE(Fixture, "rules for workers survive a restart, a checkpoint, COPY and RENAME") {
  quiet("w*");
  quiet("w1", "off");
  add("a");
  restart(4);
  CHECK(pop("WORKER w2") == "null");
  restart_from_checkpoint(4);
  CHECK(pop("WORKER w2") == "null");
  CHECK(say("COPY q p") == "1");
  CHECK(say("Q.POP 1 p WORKER w2") == "null");
  CHECK(say("Q.CONFIG p WORKER w1 GET") == "{quiet=off}");
  CHECK(say("RENAME q r") == "OK");
  CHECK(say("Q.POP 1 r WORKER w2") == "null");
  CHECK(ids_of(ask("Q.POP 1 r WORKER w1")) == "a");
}

TEST_CASE_FIXTURE(Fixture, "a repeated request still gets its jobs") {
  add("a b");
  CHECK(pop("WORKER w REQID r1") == "a");
  quiet("w");
  CHECK(pop("WORKER w REQID r1") == "a");
  CHECK(ids_of(ask("Q.ACK q x 9 POP WORKER w REQID r1")) == "a");
  CHECK(pop("WORKER w REQID r2") == "null");
  ack("a");
  CHECK(pop("WORKER w REQID r1") == "null");
}

TEST_CASE_FIXTURE(Fixture, "pops that wait stay waiting, and stand before nobody") {
  CHECK(say_as(1, "Q.POP 1 q WORKER w1 BLOCK 0") == "(waits)");
  CHECK(say_as(2, "Q.POP 1 q WORKER w2 BLOCK 0") == "(waits)");
  CHECK(say_as(3, "Q.POP 1 q WORKER w1 ID b BLOCK 0") == "-GONE id=b state=unknown");
  quiet("w1");
  CHECK(stat("waiting_pops") == "1");
  add("a");
  CHECK(heard(2) == "a");
  add("b");
  CHECK(heard(1) == "(nothing)");
  CHECK(job("b", {"why"}) == "no_worker");
  CHECK(say_as(2, "Q.POP 1 q WORKER w1 BLOCK 0") == "(waits)");
  CHECK(say_as(3, "Q.POP 1 q WORKER w1 ID b BLOCK 0") == "(waits)");
  CHECK(worker("w1", "waiting_pops") == "3");
  SUBCASE("until it is not quiet any more") {
    quiet("w1", "off");
    CHECK(heard(1) == "b");
    add("c");
    CHECK(heard(2) == "c");
    CHECK(heard(3) == "(nothing)");
  }
  SUBCASE("until its rule is reset") {
    say("Q.CONFIG q WORKER w1 RESET");
    CHECK(heard(1) == "b");
  }
  SUBCASE("until the queue is another one") {
    say("DEL q");
    CHECK(stat("waiting_pops") == "2");
    add("c");
    CHECK(heard(1) == "c");
  }
  SUBCASE("a queue with rules that is renamed to where they wait makes them quiet") {
    say("DEL q");
    say("Q.CONFIG p WORKER w1 SET quiet on");
    say("Q.ADD p c x");
    say("RENAME p q");
    CHECK(heard(1) == "(nothing)");
    CHECK(stat("waiting_pops") == "0");
    CHECK(pop() == "c");
  }
  SUBCASE("or until they are lost or give up") {
    disconnect(1);
    CHECK(give_up(2));
    CHECK(give_up(3));
    quiet("w1", "off");
    CHECK(job("b", {"state"}) == "pending");
    CHECK(worker("w1", "waiting_pops") == "0");
  }
}

TEST_CASE_FIXTURE(Fixture, "of several queues those where it is not quiet serve it") {
  quiet("w");
  add("a");
  CHECK(say_as(1, "Q.POP 2 q p WORKER w BLOCK 0") == "(waits)");
  say("Q.ADD p b x");
  CHECK(heard(1) == "b");
  CHECK(state("a") == "pending");
}

TEST_CASE_FIXTURE(Fixture, "turns that are owed pass over quiet workers") {
  connect(210);
  say("Q.CONFIG q SET paused out");
  for (size_t i = 0; i < 200; ++i) {
    say_as(4 + i, "Q.POP 1 q BLOCK 0 WORKER w" + std::to_string(i % 2));
    add("j" + std::to_string(i));
  }
  quiet("w0");
  say("Q.CONFIG q SET paused none");
  run_timers();
  const auto deliveries = take_deliveries();
  CHECK(deliveries.size() == 100);
  for (const auto& [connection, jobs] : deliveries) CHECK(connection % 2 == 1);
  CHECK(stat("pending") == "100");
}

TEST_CASE_FIXTURE(Fixture, "connections that wait or hold leases are told by a push, once each") {
  add("a b c");
  CHECK(ids_of(*run(1, {"Q.POP", "1", "q", "WORKER", "w1", "COUNT", "2"})) == "a b");
  CHECK(ids_of(*run(2, {"Q.POP", "1", "q", "WORKER", "w2"})) == "c");
  CHECK(say_as(1, "Q.POP 1 q WORKER w1 BLOCK 0") == "(waits)");
  quiet("w1");
  CHECK(pushed(1) == "[q.quiet q w1]");
  CHECK(pushed(2) == "");
  quiet("w1");
  CHECK(pushed(1) == "");
  quiet("w*");
  CHECK(pushed(1) == "[q.quiet q w1]");
  CHECK(pushed(2) == "[q.quiet q w2]");
  quiet("w2", "off");
  quiet("w1", "off");
  CHECK(pushed(1) == "");
  CHECK(pushed(2) == "");
  // The end of an exception makes it quiet again.
  say("Q.CONFIG q WORKER w2 RESET");
  CHECK(pushed(2) == "[q.quiet q w2]");
  // A connection that begins to wait for a quiet worker is told as well.
  CHECK(say_as(2, "Q.POP 1 q WORKER w2 BLOCK 0") == "(waits)");
  CHECK(pushed(2) == "[q.quiet q w2]");
}

TEST_CASE_FIXTURE(Fixture, "a rule for a name goes when nothing was heard of it for a day") {
  constexpr int64_t kDay = 24 * 3600 * 1000;
  quiet("w1");
  quiet("w2");
  quiet("w3");
  quiet("old-*");
  add("a");
  CHECK(say_as(1, "Q.POP 1 q WORKER w3 BLOCK 0") == "(waits)");
  pass(kDay - 1000);
  CHECK(pop("WORKER w2") == "null");
  pass(1000);
  CHECK(say("Q.CONFIG q WORKER w1 GET") == "{}");
  CHECK(say("Q.CONFIG q WORKER w2 GET") == "{quiet=on}");
  CHECK(say("Q.CONFIG q WORKER w3 GET") == "{quiet=on}");
  CHECK(say("Q.CONFIG q WORKER old-* GET") == "{quiet=on}");
  pass(kDay);
  CHECK(say("Q.CONFIG q WORKER w2 GET") == "{}");
  CHECK(say("Q.CONFIG q WORKER w3 GET") == "{quiet=on}");
  // A restart begins the day anew, and what is gone stays gone.
  restart(4);
  pass(0);
  CHECK(say("Q.CONFIG q WORKER w1 GET") == "{}");
  pass(kDay - 1);
  CHECK(say("Q.CONFIG q WORKER w3 GET") == "{quiet=on}");
  pass(1);
  CHECK(say("Q.CONFIG q WORKER w3 GET") == "{}");
  CHECK(say("Q.CONFIG q WORKER old-* GET") == "{quiet=on}");
}

TEST_CASE_FIXTURE(Fixture, "a rule for a name stays while its worker extends a lease") {
  constexpr int64_t kDay = 24 * 3600 * 1000;
  add("a");
  CHECK(pop("WORKER w LEASE 604800000") == "a");
  quiet("w");
  for (int i = 0; i < 3; ++i) {
    pass(kDay - 1000);
    touch("a");
  }
  CHECK(say("Q.CONFIG q WORKER w GET") == "{quiet=on}");
}

// --- BY WORKER ---

TEST_CASE_FIXTURE(Fixture, "a worker is shown from its first pop until it has long been silent") {
  say("Q.CONFIG q SET retry 5 crash_limit 9");
  CHECK(pop("WORKER w") == "null");
  CHECK(say("Q.STATS q BY WORKER") ==
        "{w={active=0 oldest_run_ms=0 waiting_pops=0 completed=0 failed=0 seen=1700000000000 "
        "quiet=f}}");
  add("a b c d");
  pass(1000);
  CHECK(pop("WORKER w COUNT 4") == "a b c d");
  pass(500);
  ack("a");
  nack("b");
  nack("c", "SILENT");
  quiet("w");
  CHECK(say("Q.STATS q BY WORKER") ==
        "{w={active=1 oldest_run_ms=500 waiting_pops=0 completed=1 failed=1 seen=1700000001500 "
        "quiet=t}}");
  pass(30'000);
  CHECK(worker("w", "active") == "0");
  CHECK(worker("w", "failed") == "2");
  CHECK(worker("w", "seen") == "1700000001500");
  pass(29'999);
  CHECK(worker("w", "completed") == "1");
  pass(1);
  CHECK(say("Q.STATS q BY WORKER") == "{}");
  CHECK(find_queue("q")->workers.by_name().empty());
}

TEST_CASE("a worker is heard when it ends its run, however long that was") {
  for (const std::string end : {"Q.ACK", "Q.NACK"}) {
    CAPTURE(end);
    Fixture q;
    q.add("a");
    CHECK(q.pop("WORKER w LEASE 604800000") == "a");
    q.pass(70'000);
    q.say(end + " q a " + q.lease("a"));
    CHECK(q.worker("w", "seen") == std::to_string(q.wall_ms()));
    q.pass(59'999);
    CHECK(q.worker("w", "active") == "0");
  }
}

TEST_CASE("who ends the runs of a dead worker does not speak for it") {
  for (const std::string how : {"SILENT", "FAIL", "LOST"}) {
    CAPTURE(how);
    Fixture q;
    q.add("a");
    CHECK(q.pop("WORKER w") == "a");
    q.pass(1000);
    CHECK(q.say("Q.NACK q WHERE WORKER w " + how) == "[0 1]");
    CHECK(q.worker("w", "seen") == "1700000000000");
  }
}

TEST_CASE_FIXTURE(Fixture, "a worker that has got nothing of a queue without jobs is forgotten") {
  say("Q.CONFIG q SET max_active 1");
  CHECK(pop("WORKER w") == "null");
  pass(60'000);
  CHECK(find_queue("q")->workers.by_name().empty());
}

TEST_CASE_FIXTURE(Fixture, "a worker that waited before the queue began is shown") {
  CHECK(say_as(1, "Q.POP 1 new WORKER w BLOCK 0") == "(waits)");
  CHECK(say_as(2, "Q.POP 1 new WORKER v BLOCK 0 MATCH k") == "(waits)");
  const auto is_shown = [&] {
    const RespValue lines = ask("Q.STATS new BY WORKER");
    REQUIRE(lines.find("v") != nullptr);
    CHECK(lines.find("v")->field("waiting_pops") == "1");
    CHECK(ask("Q.STATS new BY WORKER CURSOR 0").items[1].find("v") != nullptr);
    return lines.find("w") != nullptr;
  };
  say("Q.CONFIG new SET max_active 5");
  CHECK(is_shown());
  say("DEL new");
  say("Q.ADD new a x");
  CHECK(is_shown());
}

TEST_CASE("a worker that waits where a queue gets its name is shown") {
  for (const char* arrival : {"RENAME old new", "COPY old new", "MOVE new 0", "SWAPDB 0 1"}) {
    CAPTURE(arrival);
    Fixture q;
    q.say("Q.CONFIG old SET paused out");
    q.say("SELECT 1");
    q.say("Q.CONFIG new SET paused out");
    const bool from_there = std::string(arrival) == "MOVE new 0";
    if (!from_there) q.say("SELECT 0");
    CHECK(q.say_as(1, "Q.POP 1 new WORKER w BLOCK 0") == "(waits)");
    q.say(arrival);
    q.say("SELECT 0");
    const RespValue lines = q.ask("Q.STATS new BY WORKER");
    REQUIRE(lines.find("w") != nullptr);
    CHECK(lines.find("w")->field("waiting_pops") == "1");
  }
}

TEST_CASE_FIXTURE(Fixture, "a worker that waits is shown as long as it waits") {
  say("Q.CONFIG q SET worker_ttl_ms 1000");
  CHECK(say_as(1, "Q.POP 1 q WORKER w BLOCK 0") == "(waits)");
  pass(5000);
  CHECK(worker("w", "waiting_pops") == "1");
  CHECK(give_up(1));
  pass(1000);
  CHECK(worker("w", "waiting_pops") == "absent");
  // What it says with a touch keeps it too.
  CHECK(pop("WORKER v") == "null");
  pass(900);
  say("Q.TOUCH q x 1 WORKER v");
  pass(900);
  CHECK(worker("v", "active") == "0");
  pass(100);
  CHECK(worker("v", "active") == "absent");
}

TEST_CASE_FIXTURE(Fixture, "a worker that waits makes no timer due without a pause") {
  say("Q.CONFIG q SET worker_ttl_ms 0");
  CHECK(say_as(1, "Q.POP 1 q WORKER w BLOCK 0") == "(waits)");
  for (int i = 0; i < 3; ++i) {
    pass(5000);  // runs timers until none is due
    CHECK(worker("w", "waiting_pops") == "1");
  }
  CHECK(give_up(1));
  CHECK(worker("w", "waiting_pops") == "absent");
}

TEST_CASE_FIXTURE(Fixture, "a restart forgets workers without leases") {
  add("a b");
  pop("WORKER w1 REQID r");
  pop("WORKER w2");
  ack("b");
  restart(4);
  CHECK(worker("w1", "active") == "1");
  CHECK(worker("w1", "seen") == "null");
  CHECK(worker("w2", "active") == "absent");
  CHECK(pop("WORKER w1 REQID r") == "a");
  CHECK(worker("w1", "seen") != "null");
}

TEST_CASE_FIXTURE(Fixture, "what a worker has done counts since the process began") {
  add("a b c");
  CHECK(pop("WORKER w COUNT 3") == "a b c");
  ack("a");
  nack("b");
  CHECK(worker("w", "completed") + " " + worker("w", "failed") == "1 1");
  restart(4);
  CHECK(worker("w", "active") == "1");
  CHECK(worker("w", "completed") + " " + worker("w", "failed") == "0 0");
}

TEST_CASE_FIXTURE(Fixture, "a request whose leases are over takes new jobs") {
  add("a b");
  CHECK(pop("WORKER w REQID r") == "a");
  ack("a");
  CHECK(pop("WORKER w REQID r") == "b");
  CHECK(ids_of(ask("Q.ACK q b 99 POP WORKER w REQID r")) == "b");
}

TEST_CASE_FIXTURE(Fixture, "at most 10,000 workers: the one that was silent longest goes") {
  say("Q.ADD q a x");
  CHECK(pop("WORKER holder") == "a");
  for (int i = 0; i < 10'005; ++i) {
    if (i % 1000 == 0) pass(1);
    pop("WORKER w" + std::to_string(i));
  }
  CHECK(find_queue("q")->workers.by_name().size() == 10'000);
  CHECK(find_queue("q")->workers.find("w5") == nullptr);
  CHECK(find_queue("q")->workers.find("w6") != nullptr);
  CHECK(find_queue("q")->workers.find("holder") != nullptr);
  const RespValue lines = ask("Q.STATS q BY WORKER");
  CHECK(lines.size() == 1001);
  CHECK(lines.items[0].text == "holder");
  CHECK(lines.find("*") != nullptr);
  const RespValue page = ask("Q.STATS q BY WORKER CURSOR 0 COUNT 1000");
  CHECK(page.items.at(1).size() == 1000);
}

// --- Q.NACK ... WHERE ---

TEST_CASE_FIXTURE(Fixture, "the leases of a dead machine end as if they had run out") {
  say("Q.CONFIG q SET crash_limit 1 retry 1 backoff 500:500");
  add("a b c d");
  CHECK(pop("WORKER w1 COUNT 3") == "a b c");
  CHECK(pop("WORKER w2") == "d");
  say("Q.CANCEL q c");
  CHECK(say("Q.NACK q WHERE WORKER w1") == "[0 3]");
  CHECK(job("a", {"state", "crashes", "retries_left"}) == "pending 1 1");
  CHECK(state("c") == "cancelled");
  CHECK(state("d") == "active");
  CHECK(stat("reclaimed") == "2");
  CHECK(say("Q.NACK q WHERE WORKER w1") == "[0 0]");
  CHECK(pop("WORKER w1 COUNT 3") == "a b");
  CHECK(say("Q.NACK q WHERE WORKER w1 LOST ERROR burnt") == "[0 2]");
  CHECK(job("a", {"state", "error"}) == "failed burnt");
  CHECK(say("Q.NACK q WHERE WORKER w2 SILENT CURSOR 0") == "[0 1]");
  CHECK(job("d", {"state", "attempts"}) == "pending 0");
  CHECK(pop("WORKER w2") == "d");
  CHECK(say("Q.NACK q WHERE WORKER w2 FAIL ERROR e") == "[0 1]");
  CHECK(job("d", {"error", "retries_left"}) == "e 0");
  restart(4);
  CHECK(job("a", {"state", "error"}) == "failed burnt");
}

TEST_CASE_FIXTURE(Fixture, "Q.NACK WHERE takes a worker and nothing else") {
  CHECK(say("Q.NACK q WHERE WORKER w") == "[0 0]");
  CHECK(say("EXISTS q") == "0");
  add("a");
  pop("WORKER w");
  for (const char* line : {"WHERE ALL", "WHERE WORKER", "WHERE STATE active", "WHERE LOST SILENT",
                           "WHERE WORKER w FATAL", "WHERE WORKER w LOST SILENT",
                           "WHERE WORKER w DELAY 1", "WHERE WORKER w AND a 1"}) {
    CHECK_MESSAGE(say(std::string("Q.NACK q ") + line) == "-ERR syntax error", line);
  }
  CHECK(say("Q.NACK q WHERE WORKER ''") == "-BADFIELD field=worker");
  CHECK(say("Q.NACK q WHERE WORKER w CURSOR x") == "-ERR invalid cursor");
  CHECK(say("Q.NACK q WHERE 1") == "-BADFIELD field=id");
  CHECK(state("a") == "active");
}

TEST_CASE_FIXTURE(Fixture, "more than a thousand leases end in several calls") {
  say("Q.CONFIG q SET crash_limit 1000");
  for (int i = 0; i < 1500; ++i) add("j" + std::to_string(i));
  for (int i = 0; i < 6; ++i) pop("WORKER w COUNT 250");
  const RespValue first = ask("Q.NACK q WHERE WORKER w");
  CHECK(first.items.at(1).text == "1000");
  CHECK(first.items.at(0).text != "0");
  CHECK(say("Q.NACK q WHERE WORKER w CURSOR " + first.items[0].text) == "[0 500]");
  CHECK(stat("active") == "0");
  CHECK(stat("pending") == "1500");
}

}  // namespace
