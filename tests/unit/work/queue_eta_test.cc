// When a job would start: what MAXWAIT, ETA and retry_after_ms tell. How exact an ETA is, is tested
// in tests/model/queue_forecast_test.cc.
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

// A queue that knows how long its jobs take: 100 ms.
struct Timed : QueueTalk {
  explicit Timed(const std::string& config) {
    say("Q.CONFIG q SET max_active 1");
    for (int i = 0; i < 10; ++i) {
      add("first");
      pop();
      pass(100);
      ack("first");
      say("Q.PURGE q first");
    }
    CHECK(say("Q.CONFIG q SET " + config) == "OK");
  }
  void add_many(const std::string& name, int count, const std::string& options) {
    for (int i = 0; i < count; ++i) add(name + std::to_string(i), options);
  }
  int eta(const std::string& id) { return std::stoi(job(id, {"eta_ms"})); }
};

TEST_CASE("a full queue displaces nobody for a job that would start too late") {
  Timed q("max_active 1 max_waiting 1 full displace");
  q.add("runs");
  CHECK(q.pop() == "runs");
  q.add("low", "PRI LOW");
  CHECK(q.say("Q.ADD q high x PRI HIGH MAXWAIT 99") == "-TOOLATE eta_ms=100 maxwait_ms=99");
  CHECK(q.state("low") == "pending");
  CHECK(q.say("Q.ADD q high x PRI HIGH MAXWAIT 100", "result") == "added");
  CHECK(q.state("low") == "cancelled");
}

TEST_CASE("QFULL sends away for the time in which the slots end one run") {
  Timed q("max_active 4 max_waiting 1");
  q.add("a");
  CHECK(q.say("Q.ADD q b x") == "-QFULL pending=1 max=1 retry_after_ms=25");
}

TEST_CASE("MAXWAIT goes by the caps of the job's keys") {
  Timed q("max_active 10");
  q.say("Q.CONFIG q KEY k SET max_active 1");
  q.add("a b c d", "KEY k");
  CHECK(q.pop() == "a");
  CHECK(q.say("Q.ADD q e x KEY k MAXWAIT 200").starts_with("-TOOLATE"));
  CHECK(q.say("Q.ADD q e x MAXWAIT 200", "result") == "added");
}

TEST_CASE("MAXWAIT goes by the weight of the job's group") {
  Timed q("fair on");
  q.say("Q.CONFIG q GROUP heavy SET weight 10");
  q.add_many("h", 10, "GROUP heavy");
  q.add_many("l", 10, "GROUP light");
  CHECK(q.say("Q.ADD q h x GROUP heavy MAXWAIT 1400", "result") == "added");
  CHECK(q.say("Q.ADD q l x GROUP light MAXWAIT 1400").starts_with("-TOOLATE"));
}

TEST_CASE("a job of a paused group has no ETA, and counts in that of no other") {
  Timed q("max_active 1");
  q.say("Q.CONFIG q GROUP g SET paused out");
  q.add_many("g", 20, "GROUP g");
  q.add("a b", "GROUP other");
  CHECK(q.job("g0", {"eta_ms"}) == "null");
  CHECK(q.say("Q.ADD q g x GROUP g MAXWAIT 1", "result") == "added");
  CHECK(q.eta("b") < 400);
}

TEST_CASE("an ETA goes by a new cap at once") {
  Timed q("max_active 1");
  q.say("Q.CONFIG q GROUP g SET max_active 1");
  q.add_many("g", 10, "GROUP g");
  q.add_many("other", 10, "");
  CHECK(q.eta("other9") > 1500);
  q.say("Q.CONFIG q SET max_active 10");
  CHECK(q.eta("other9") < 500);
}

// Another connection waits in Q.POP.
struct Waiting : Timed {
  using Timed::Timed;
  void wait(size_t connection, const std::string& options = "") {
    CHECK(say_as(connection, "Q.POP 1 q BLOCK 0 " + options) == "(waits)");
  }
};

TEST_CASE("without a cap of the queue a pop that waits takes the job at once") {
  Waiting q("max_active 0");
  q.say("Q.CONFIG q GROUP g SET max_active 1");
  q.add("runs");
  CHECK(q.pop() == "runs");
  CHECK(q.say("Q.ADD q n x MAXWAIT 99") == "-TOOLATE eta_ms=100 maxwait_ms=99");
  for (const size_t connection : {1, 2, 3}) q.wait(connection);
  CHECK(q.say("Q.ADD q n x MAXWAIT 0", "eta_ms") == "0");
  CHECK(q.state("n") == "active");
  // Also beside jobs that a cap holds back, and which no pop can take.
  q.add_many("g", 200, "GROUP g");
  CHECK(q.state("g0") == "active");
  CHECK(q.eta("g1") > 0);
  CHECK(q.say("Q.ADD q g x GROUP g MAXWAIT 15000").starts_with("-TOOLATE"));
  CHECK(q.say("Q.ADD q o x GROUP o MAXWAIT 0", "eta_ms") == "0");
  CHECK(q.state("o") == "active");
}

TEST_CASE("a job is told 0 only if its group and its keys have slots for it") {
  for (const std::string limited : {"GROUP", "KEY"}) {
    for (const std::string cap : {"0", "20"}) {
      Waiting q("max_active " + cap);
      q.say("Q.CONFIG q " + limited + " one SET max_active 1");
      q.wait(1);
      q.wait(2);
      q.add("a", limited + " one");
      CHECK(q.state("a") == "active");
      q.pass(40);
      CHECK(q.say("Q.ADD q b x MAXWAIT 20 " + limited + " one").starts_with("-TOOLATE"));
      CHECK(q.say("Q.ADD q b x MAXWAIT 99 " + limited + " one", "result") == "added");
      CHECK(q.eta("b") > 20);
      CHECK(q.say("Q.ADD q c x MAXWAIT 0", "eta_ms") == "0");
    }
  }
}

TEST_CASE("pops that accept other jobs do not make an ETA shorter") {
  Waiting q("max_active 20");
  q.add_many("c", 40, "KEY cpu");
  CHECK(q.pop() == "c0");
  CHECK(q.eta("c39") == 3900);
  for (const size_t connection : {1, 2, 3}) q.wait(connection, "MATCH gpu MATCH tpu");
  CHECK(q.eta("c39") == 3900);
  CHECK(q.eta("c1") == 100);
  CHECK(q.say("Q.ADD q other x MAXWAIT 3999") == "-TOOLATE eta_ms=4000 maxwait_ms=3999");
  CHECK(q.say("Q.ADD q c x KEY cpu MAXWAIT 3999") == "-TOOLATE eta_ms=4000 maxwait_ms=3999");
  // Theirs pass all others.
  CHECK(q.say("Q.ADD q g x KEY gpu KEY large MAXWAIT 0", "eta_ms") == "0");
  CHECK(q.state("g") == "active");
  CHECK(q.eta("c39") == 2000);
}

TEST_CASE("a pop with CAP, with ID, or of a quiet worker takes no job at once") {
  Waiting q("max_active 0");
  q.add("a later", "DELAY 10");
  q.pass(10);
  CHECK(q.pop() == "a");
  q.say("Q.MOVE q later DELAY 1000");
  q.say("Q.CONFIG q WORKER w SET quiet on");
  q.wait(1, "CAP 2");
  q.wait(2, "ID later");
  q.wait(3, "WORKER w");
  const std::string added = "{id=b result=added state=pending position=0 eta_ms=0}";
  CHECK(q.say("Q.ADD q b x MAXWAIT 0") == added);
  CHECK(q.state("b") == "active");
  CHECK(q.take_deliveries().size() == 1);
  q.wait(1, "CAP 2");
  CHECK(q.say("Q.ADD q c x MAXWAIT 99") == "-TOOLATE eta_ms=100 maxwait_ms=99");
  q.say("Q.CONFIG q WORKER w SET quiet off");
  CHECK(q.say("Q.ADD q c x MAXWAIT 0", "eta_ms") == "0");
}

TEST_CASE("in a transaction as many jobs are told 0 as pops wait") {
  Waiting q("max_active 50");
  q.wait(1);
  q.say("MULTI");
  for (int i = 0; i < 20; ++i) q.say("Q.ADD q a" + std::to_string(i) + " x MAXWAIT 10");
  std::vector<sluice::test::RespValue> replies = q.ask("EXEC").items;
  CHECK(replies[0].field("eta_ms") == "0");
  for (size_t i = 1; i < 20; ++i) CHECK(replies[i].show() == "-TOOLATE eta_ms=100 maxwait_ms=10");
  CHECK(q.state("a0") == "active");
  q.wait(2);
  q.wait(3);
  q.say("MULTI");
  for (int i = 0; i < 8; ++i) q.say("Q.ADD q b" + std::to_string(i) + " x");
  replies = q.ask("EXEC").items;
  std::string told;
  for (const sluice::test::RespValue& reply : replies) told += reply.field("eta_ms") + " ";
  CHECK(told == "0 0 100 100 100 200 200 200 ");
  CHECK(q.eta("b7") == 200);
}

TEST_CASE("a pop with a small CAP hides none with a greater one") {
  Waiting q("max_active 0");
  q.add("runs");
  CHECK(q.pop() == "runs");
  q.wait(1, "CAP 1");
  q.wait(2, "CAP 3");
  q.wait(3, "CAP 3");
  q.say("MULTI");
  for (int i = 0; i < 3; ++i) q.say("Q.ADD q a" + std::to_string(i) + " x MAXWAIT 0");
  const std::vector<sluice::test::RespValue> replies = q.ask("EXEC").items;
  CHECK(replies[0].field("eta_ms") == "0");
  CHECK(replies[1].field("eta_ms") == "0");
  CHECK(replies[2].show().starts_with("-TOOLATE"));
  CHECK(q.state("a1") == "active");
}

// Two pops wait, and the rate of key k has let one of its 30 jobs start.
struct Rated : Waiting {
  explicit Rated(const std::string& rate) : Waiting("max_active 20") {
    say("Q.CONFIG q KEY k SET rate " + rate);
    wait(1);
    wait(2);
    add_many("k", 30, "KEY k");
    CHECK(state("k0") == "active");
    CHECK(state("k1") == "pending");
  }
};

TEST_CASE("what holds all jobs of a queue holds a new one, although pops wait") {
  const std::string eta = "-TOOLATE eta_ms=";
  SUBCASE("its rate") {
    Waiting q("max_active 20 rate 1/10000");
    q.wait(1);
    q.wait(2);
    q.add_many("a", 30, "");
    CHECK(q.state("a0") == "active");
    CHECK(q.say("Q.ADD q n x MAXWAIT 0").starts_with(eta));
    // A pop that has found nothing proves nothing.
    CHECK(q.pop() == "null");
    CHECK(q.say("Q.ADD q n x MAXWAIT 0").starts_with(eta));
    CHECK(q.say("Q.ADD q n x PRI HIGH MAXWAIT 0", "result") == "added");
  }
  SUBCASE("slots that are kept for urgent jobs") {
    Waiting q("max_active 5 reserve HIGH:3");
    for (const size_t connection : {1, 2, 3}) q.wait(connection);
    q.add_many("a", 30, "PRI LOW");
    CHECK(q.state("a1") == "active");
    CHECK(q.say("Q.ADD q n x PRI LOW MAXWAIT 0").starts_with(eta));
    CHECK(q.say("Q.ADD q n x PRI HIGH MAXWAIT 0", "eta_ms") == "0");
  }
  SUBCASE("a large job that is first") {
    Waiting q("max_active 5");
    q.add("a b c");
    CHECK(q.pop("COUNT 3") == "a b c");
    q.wait(1);
    q.add_many("large", 5, "COST 5");
    CHECK(q.say("Q.ADD q n x MAXWAIT 0").starts_with(eta));
  }
  SUBCASE("the rate of a key") {
    Rated q("1/60000");
    CHECK(q.say("Q.ADD q n x KEY k MAXWAIT 0").starts_with(eta));
    CHECK(q.say("Q.ADD q n x MAXWAIT 0", "eta_ms") == "0");
  }
}

TEST_CASE("a job that all pops may have passed over competes with those that came after it") {
  Waiting q("max_active 60 rate 1/60000");
  q.connect(20);
  for (size_t connection = 1; connection <= 20; ++connection) q.wait(connection);
  q.add("runs");
  CHECK(q.state("runs") == "active");
  q.add("n", "PRI LOW");
  q.add_many("high", 200, "PRI HIGH");
  CHECK(q.job("n", {"position"}) == "200");
  CHECK(q.eta("n") > 300);
}

TEST_CASE("a job passes none for which a rate has refilled, although no timer has run yet") {
  Rated q("1/1000");
  q.set_clock(q.times().wall_ms + 1000, q.times().steady_ms + 1000);
  SUBCASE("nor any command") {}
  SUBCASE("but a query") { CHECK(q.job("k1", {"state"}) == "pending"); }
  SUBCASE("but a pop that accepts none") { CHECK(q.pop("MATCH other") == "null"); }
  CHECK(q.say("Q.ADD q n x MAXWAIT 0").starts_with("-TOOLATE"));
  CHECK(q.say("Q.ADD q n x PRI HIGH MAXWAIT 0", "eta_ms") == "0");
}

TEST_CASE("a job passes those that a rate holds, although another timer of the queue is due") {
  Rated q("1/60000");
  q.add("later", "KEY k DELAY 1000");
  q.set_clock(q.times().wall_ms + 1000, q.times().steady_ms + 1000);
  CHECK(q.say("Q.ADD q n x MAXWAIT 0", "eta_ms") == "0");
}

TEST_CASE("a job passes none that start as the one before them is replaced") {
  Waiting q("max_active 20");
  q.say("Q.CONFIG q KEY k SET max_active 2");
  q.add("runs", "KEY k");
  CHECK(q.pop() == "runs");
  q.add("large", "KEY k COST 2");
  q.add_many("s", 5, "KEY k");
  q.wait(1);
  q.wait(2);
  q.say("MULTI");
  q.say("Q.ADD q large x IFDUP REPLACE KEY other");
  q.say("Q.ADD q n x MAXWAIT 0");
  CHECK(q.ask("EXEC").items[1].show().starts_with("-TOOLATE"));
  CHECK(q.state("s0") == "active");
  CHECK(q.state("large") == "active");
}

TEST_CASE("in a transaction a new job passes none that may start again") {
  Waiting q("max_active 1");
  q.add("runs");
  CHECK(q.pop() == "runs");
  q.add_many("a", 20, "");
  q.wait(1);
  q.say("MULTI");
  q.say("Q.ACK q runs " + q.lease("runs"));
  q.say("Q.ADD q n x MAXWAIT 0");
  CHECK(q.ask("EXEC").items[1].show().starts_with("-TOOLATE"));
  CHECK(q.state("a0") == "active");
}

TEST_CASE("an ETA does not depend on the job that was asked about before") {
  const auto told = [](const std::string& before) {
    Waiting q("max_active 100 fair on");
    q.say("Q.CONFIG q KEY licence SET max_active 1");
    q.add_many("c", 40, "KEY cpu");
    q.add("l0 l1", "KEY gpu KEY licence");
    CHECK(q.pop("MATCH cpu") == "c0");
    CHECK(q.pop("MATCH licence") == "l0");
    q.wait(1, "MATCH gpu");
    q.wait(2, "MATCH gpu");
    q.pass(100);  // no forecast is left
    q.eta(before);
    return q.eta("c39");
  };
  CHECK(told("c39") > 1500);
  CHECK(told("l1") == told("c39"));
}

TEST_CASE("MAXWAIT goes by the ETA that the reply tells") {
  Timed q("max_active 20");
  q.add("runs");
  CHECK(q.pop() == "runs");
  CHECK(q.say("Q.ADD q n x MAXWAIT 99") == "-TOOLATE eta_ms=100 maxwait_ms=99");
  CHECK(q.say("Q.ADD q n x MAXWAIT 100", "eta_ms") == "100");
}

TEST_CASE("MAXWAIT counts from the end of a delay") {
  Timed q("max_active 1");
  q.add_many("a", 36, "");
  CHECK(q.say("Q.ADD q n x MAXWAIT 100") == "-TOOLATE eta_ms=3700 maxwait_ms=100");
  CHECK(q.say("Q.ADD q n x DELAY 1000 MAXWAIT 100") == "-TOOLATE eta_ms=2700 maxwait_ms=100");
  CHECK(q.say("Q.ADD q n x DELAY 3600 MAXWAIT 99") == "-TOOLATE eta_ms=100 maxwait_ms=99");
  CHECK(q.say("Q.ADD q n x DELAY 3600 MAXWAIT 100", "state") == "delayed");
  CHECK(q.say("Q.ADD q o x DELAY 3600000 MAXWAIT 0", "state") == "delayed");
  const auto at = [&](int64_t ms) { return " AT " + std::to_string(q.wall_ms() + ms) + " "; };
  CHECK(q.say("Q.ADD q p x MAXWAIT 0" + at(3700), "state") == "delayed");
  CHECK(q.say("Q.ADD q r x MAXWAIT 0" + at(3699)) == "-TOOLATE eta_ms=1 maxwait_ms=0");
  CHECK(q.say("Q.ADD q r x MAXWAIT 3699" + at(-5)) == "-TOOLATE eta_ms=3700 maxwait_ms=3699");
}

TEST_CASE("MAXWAIT of a delayed job goes by the rank that it has then") {
  Timed q("max_active 1");
  q.add_many("a", 10, "");
  // Its boost does not lift it over the jobs that are there, since it comes later than they.
  CHECK(q.say("Q.ADD q n x BOOST 500 MAXWAIT 100", "result") == "added");
  CHECK(q.say("Q.ADD q o x BOOST 500 DELAY 600 MAXWAIT 100").starts_with("-TOOLATE eta_ms=600 "));
}

TEST_CASE("an ETA is also told while the only worker is between two pops") {
  Timed q("max_active 2");
  q.add("a b c");
  CHECK(q.pop() == "a");
  CHECK(q.eta("c") == 200);
  q.pass(100);
  q.ack("a");
  CHECK(q.eta("c") == 100);
  CHECK(q.say("Q.CONFIG q SET max_active 0") == "OK");
  CHECK(q.job("c", {"eta_ms"}) == "null");
}

}  // namespace
