// BRIEF and WITH: replies with less, or with more.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

struct Fixture : QueueTalk {
  std::string heard(int connection) {
    const auto deliveries = take_deliveries();
    const auto found = deliveries.find(connection);
    return found == deliveries.end() ? "(nothing)" : found->second.show();
  }
};

TEST_CASE_FIXTURE(Fixture, "a brief job is an array of what nearly all workers need") {
  say("Q.ADD q a body GROUP g KEY k TAG t v LEASE 5000");
  say("Q.ADD q b '' PRI LOW");
  CHECK(say("Q.POP 1 q BRIEF COUNT 5") == "[[q a 1 1 body 5000] [q b 2 1  30000]]");
  CHECK(say("Q.POP 1 q BRIEF") == "null");
  CHECK(say("Q.ACK q a 1 POP BRIEF") == "null");
  CHECK(say("Q.POP 1 q ID b BRIEF") == "-GONE id=b state=active");
}

TEST_CASE_FIXTURE(Fixture, "a brief job tells the attempt and the term of this lease") {
  say("Q.CONFIG q SET retry 5");
  add("a");
  CHECK(say("Q.POP 1 q BRIEF LEASE 700") == "[[q a 1 1 p-a 700]]");
  say("Q.NACK q a 1 DELAY 0");
  CHECK(say("Q.POP 1 q BRIEF") == "[[q a 2 2 p-a 30000]]");
}

TEST_CASE_FIXTURE(Fixture, "WITH adds a map to a brief job, in one order") {
  say("Q.CONFIG q SET retry 5");
  say("Q.ADD q a body GROUP g TAG lang python TAG v 3");
  CHECK(say("Q.POP 1 q BRIEF WITH group WITH ERROR WITH Progress WITH tags WITH group") ==
        "[[q a 1 1 body 30000 {tags={lang=python v=3} progress=null error=null group=g}]]");
  say("Q.TOUCH q a 1 PROGRESS half");
  say("Q.NACK q a 1 DELAY 0 ERROR broken");
  CHECK(say("Q.POP 1 q WITH error WITH progress BRIEF") ==
        "[[q a 2 2 body 30000 {progress=half error=broken}]]");
  say("Q.ADD q b body");
  CHECK(say("Q.POP 1 q BRIEF WITH tags WITH group") == "[[q b 3 1 body 30000 {tags={} group=}]]");
}

TEST_CASE_FIXTURE(Fixture, "in RESP2 that map is flat") {
  session(0).client.protocol = 2;
  say("Q.ADD q a body TAG lang python");
  CHECK(say("Q.POP 1 q BRIEF WITH tags WITH error") ==
        "[[q a 1 1 body 30000 [tags [lang python] error null]]]");
}

TEST_CASE_FIXTURE(Fixture, "WITH without BRIEF adds what the map of a job lacks") {
  say("Q.CONFIG q SET retry 5");
  add("a");
  CHECK(ask("Q.POP 1 q WITH tags WITH progress WITH group").items.at(0).size() == 15);
  say("Q.NACK q a 1 DELAY 0 ERROR broken");
  const RespValue job = ask("Q.POP 1 q WITH error WITH group").items.at(0);
  CHECK(job.size() == 16);
  CHECK(job.field("error") == "broken");
  say("Q.NACK q a 2 SILENT");
  CHECK(ask("Q.POP 1 q").items.at(0).size() == 15);
}

TEST_CASE_FIXTURE(Fixture, "waiting pops, repeats and acknowledgements have the same form") {
  CHECK(say_as(1, "Q.POP 1 q BLOCK 0 BRIEF WITH group") == "(waits)");
  CHECK(say_as(2, "Q.POP 2 p q BLOCK 0 WITH error") == "(waits)");
  say("Q.ADD q a body GROUP g");
  CHECK(heard(1) == "[[q a 1 1 body 30000 {group=g}]]");
  add("b");
  const auto deliveries = take_deliveries();
  CHECK(deliveries.at(2).items.at(0).field("error") == "null");

  CHECK(say_as(1, "Q.ACK q a 1 POP BLOCK 0 BRIEF WORKER w REQID r") == "(waits)");
  add("c");
  CHECK(heard(1) == "[[q c 3 1 p-c 30000]]");
  CHECK(say("Q.POP 1 q WORKER w REQID r BRIEF WITH error") == "[[q c 3 1 p-c 30000 {error=null}]]");
  CHECK(say("Q.ACK q a 1 POP WORKER w REQID r BRIEF") == "[[q c 3 1 p-c 30000]]");
  CHECK(say_as(1, "Q.ACK q c 3 AND x 1 POP BLOCK 0 BRIEF WITH tags") == "(waits)");
  add("d");
  CHECK(heard(1) == "[[OK -NOJOB id=x] [[q d 4 1 p-d 30000 {tags={}}]]]");
}

TEST_CASE_FIXTURE(Fixture, "other fields and a WITH without one are errors") {
  CHECK(say("Q.POP 1 q WITH payload") == "-BADFIELD field=with");
  CHECK(say("Q.POP 1 q BRIEF WITH ''") == "-BADFIELD field=with");
  CHECK(say("Q.POP 1 q BRIEF WITH") == "-ERR syntax error");
  CHECK(say("Q.ACK q a 1 BRIEF") == "-ERR syntax error");
}

TEST_CASE_FIXTURE(Fixture, "Q.ADD BRIEF replies the id") {
  CHECK(say("Q.ADD q a x BRIEF PRI HIGH") == "a");
  CHECK(say("Q.ADD q a x brief IFDUP KEEP") == "a");
  CHECK(say("Q.ADD q a x BRIEF") == "-DUPLICATE id=a state=pending");
  const std::string chosen = say("Q.ADD q * x BRIEF");
  CHECK(state(chosen) == "pending");
  CHECK(say("Q.ADD q BRIEF BRIEF") ==
        "{id=BRIEF result=added state=pending position=2 eta_ms=null}");
  CHECK(job("a", {"pri"}) == "HIGH");
}

}  // namespace
