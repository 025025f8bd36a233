// WITH need_results: a pop brings the results of what the job has waited for.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

struct Fixture : QueueTalk {
  void complete(const std::string& id, const std::string& options = "") {
    add(id);
    pop("ID " + id);
    ack(id, options);
  }
  // The fields of the first job of this pop.
  RespValue popped(const std::string& line) { return ask(line).items.at(0); }
};

TEST_CASE_FIXTURE(Fixture, "the results of needs and of what it comes after, in their order") {
  complete("a", "RESULT ra");
  complete("b");
  add("failed");
  pop("ID failed");
  nack("failed", "FATAL");
  complete("c", "RESULT rc");
  add("x", "AFTER failed NEED c AFTER b NEED a");
  const RespValue job = popped("Q.POP 1 q WITH need_results");
  CHECK(job.field("need_results") == "{c=rc a=ra failed=null b=}");
  CHECK(job.field("truncated") == "f");
  CHECK(job.size() == 17);
  say("Q.NACK q x " + job.field("lease") + " SILENT");
  CHECK(popped("Q.POP 1 q BRIEF WITH need_results WITH group").items.at(6).show() ==
        "{group= need_results={c=rc a=ra failed=null b=} truncated=f}");
}

TEST_CASE_FIXTURE(Fixture, "a job that waits for none has none, and nobody gets them unasked") {
  add("a");
  CHECK(popped("Q.POP 1 q WITH need_results BRIEF").items.at(6).show() ==
        "{need_results={} truncated=f}");
  add("b", "TAG t v");
  CHECK(popped("Q.POP 1 q WITH need_results").field("need_results") == "{}");
  add("c");
  CHECK(popped("Q.POP 1 q").field("need_results") == "absent");
}

TEST_CASE_FIXTURE(Fixture, "null for what is not kept, and for what runs again") {
  for (const char* id : {"kept", "purged", "retried", "succeeded"}) complete(id, "RESULT r");
  add("x", "NEED kept NEED purged NEED retried NEED succeeded");
  say("Q.RETRY q retried");
  say("Q.ADD q succeeded '' IFDUP REPLACE DELAY 1000");
  CHECK(pop("ID retried") == "retried");
  say("Q.PURGE q WHERE STATE completed LIMIT 1");
  const RespValue job = popped("Q.POP 1 q ID x WITH need_results");
  const RespValue& results = *job.find("need_results");
  CHECK(results.field("retried") == "null");
  CHECK(results.field("succeeded") == "null");
  const bool one_is_left = (results.field("kept") == "r") != (results.field("purged") == "r");
  CHECK(one_is_left);
  CHECK(job.field("truncated") == "f");
}

TEST_CASE_FIXTURE(Fixture, "at most 4 MB a pop: beyond that null, and it says so") {
  say("Q.CONFIG q SET max_payload 4194304");
  const size_t mb = 1 << 20;
  complete("three", "RESULT " + std::string(3 * mb, 'x'));
  complete("two", "RESULT " + std::string(2 * mb, 'y'));
  complete("one", "RESULT " + std::string(mb, 'z'));
  complete("none");
  add("x", "NEED three NEED two NEED one NEED none");
  add("y", "AFTER one AFTER none");
  add("z", "AFTER none");
  const RespValue jobs = ask("Q.POP 1 q COUNT 3 WITH need_results");
  REQUIRE(jobs.size() == 3);
  const auto size_of = [&](size_t job, const char* id) {
    const RespValue& result = *jobs.items.at(job).find("need_results")->find(id);
    return result.is_null() ? -1 : static_cast<int64_t>(result.text.size());
  };
  // What is left after a large one may be enough for a smaller one.
  CHECK(size_of(0, "three") == static_cast<int64_t>(3 * mb));
  CHECK(size_of(0, "two") == -1);
  CHECK(size_of(0, "one") == static_cast<int64_t>(mb));
  CHECK(size_of(0, "none") == 0);
  CHECK(jobs.items.at(0).field("truncated") == "t");
  CHECK(size_of(1, "one") == -1);
  CHECK(jobs.items.at(1).field("truncated") == "t");
  CHECK(size_of(2, "none") == 0);
  CHECK(jobs.items.at(2).field("truncated") == "f");
}

TEST_CASE_FIXTURE(Fixture, "waiting pops, acknowledgements and repeats bring them too") {
  add("a");
  add("x", "NEED a");
  pop("ID a");
  CHECK(
      say("Q.ACK q a " + lease("a") + " RESULT ra POP WORKER w REQID r BRIEF WITH need_results") ==
      "[[q x 2 1 p-x 30000 {need_results={a=ra} truncated=f}]]");
  CHECK(say("Q.POP 1 q WORKER w REQID r WITH need_results BRIEF") ==
        "[[q x 2 1 p-x 30000 {need_results={a=ra} truncated=f}]]");
  CHECK(say_as(1, "Q.POP 1 q BLOCK 0 WITH need_results BRIEF") == "(waits)");
  add("y", "AFTER a");
  CHECK(take_deliveries().at(1).show() ==
        "[[q y 3 1 p-y 30000 {need_results={a=ra} truncated=f}]]");
}

TEST_CASE_FIXTURE(Fixture, "in RESP2 the maps are flat") {
  session(0).client.protocol = 2;
  say("Q.ADD q a ''");
  say("Q.POP 1 q");
  say("Q.ACK q a 1 RESULT ra");
  say("Q.ADD q x '' NEED a");
  CHECK(say("Q.POP 1 q BRIEF WITH need_results") ==
        "[[q x 2 1  30000 [need_results [a ra] truncated 0]]]");
}

}  // namespace
