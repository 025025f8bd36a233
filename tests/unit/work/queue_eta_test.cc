// When a job would start: what MAXWAIT, ETA and retry_after_ms tell. How exact an ETA is, is tested
// in tests/model/queue_eta_test.cc.
#include <string>

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

}  // namespace
