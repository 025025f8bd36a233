// Jobs of several slots: the slots kept for them, and jobs that could wait forever.
#include <map>
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

TEST_CASE("a pop by ID passes no large job that is next and waits for slots") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 3");
  q.add("a b");
  q.add("big", "COST 3");
  q.add("c");
  CHECK(q.pop("COUNT 2") == "a b");
  CHECK(q.pop("ID c") == "null");
  q.ack("a");
  CHECK(q.pop("ID c") == "null");
  CHECK(q.pop("ID big") == "null");
  q.ack("b");
  CHECK(q.pop("ID big") == "big");
}

TEST_CASE("a pop by ID passes no large job of its lane that waits for slots of a group or key") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET max_active 2");
  q.say("Q.CONFIG q KEY k SET max_active 2");
  for (const std::string option : {"GROUP g", "KEY k"}) {
    q.add("a", option);
    q.add("big", option + " COST 2");
    q.add("c", option);
    q.add("free");
    CHECK(q.pop() == "a");
    CHECK_MESSAGE(q.pop("ID c") == "null", option);
    CHECK(q.pop("ID free") == "free");
    q.ack("a");
    CHECK(q.pop("ID big") == "big");
    q.say("Q.CANCEL q c");
    q.ack("big");
    q.ack("free");
    q.say("Q.PURGE q WHERE ALL");
  }
}

TEST_CASE("a large job that lacks slots beside reserved ones is not passed by smaller ones") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 4 reserve HIGH:1");
  q.add("first");
  q.add("big", "COST 3");
  q.add("small", "PRI LOW");
  CHECK(q.pop() == "first");
  CHECK(q.pop() == "null");
  CHECK(q.pop("ID small") == "null");
  CHECK(q.job("big", {"why"}) == "reserved");
  // Jobs for which slots are reserved are admitted.
  q.add("urgent", "PRI HIGH");
  CHECK(q.say("Q.LIST q BY DISPATCH BRIEF").find("id=urgent") <
        q.say("Q.LIST q BY DISPATCH BRIEF").find("id=big"));
  CHECK(q.pop("COUNT 9") == "urgent");
  q.ack("urgent");
  CHECK(q.pop() == "null");
  q.ack("first");
  CHECK(q.pop("COUNT 9") == "big");
  // Not one slot is left for it: the next large job therefore blocks nobody.
  q.add("bigger", "COST 2");
  q.add("urgent2", "PRI CRITICAL");
  CHECK(q.pop("COUNT 9") == "urgent2");
}

TEST_CASE("a large job that has aged does not hold up those for whom slots are reserved") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 4 reserve HIGH:1 aging_ms 100");
  q.add("first", "PRI CRITICAL");
  q.add("big", "COST 3 PRI LOW");
  CHECK(q.pop() == "first");
  q.pass(1000);
  q.add("small");
  q.add("urgent", "PRI HIGH");
  CHECK(q.pop("COUNT 9") == "urgent");
  q.ack("urgent");
  q.ack("first");
  CHECK(q.pop() == "big");
}

TEST_CASE("a cost is refused above what the cap may be lowered to") {
  QueueTalk q;
  q.say("Q.CONFIG q SET adaptive 2:10:100:1000");
  CHECK(q.say("Q.ADD q a x COST 3") == "-BADFIELD field=cost");
  CHECK(q.say("Q.ADD q a x COST 2", "result") == "added");
  CHECK(q.say("Q.ADD q a x COST 3 IFDUP REPLACE") == "-BADFIELD field=cost");
}

TEST_CASE("an adaptive cap goes on from where it is, also after a restart") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1 adaptive 1:9:100:1000:1 retain_completed 0");
  const auto run = [&](int jobs) {
    for (int i = 0; i < jobs; ++i) q.add("j" + std::to_string(i));
    CHECK(q.drain() != "");
  };
  run(200);
  q.restart(4);
  q.add("a b c d e");
  CHECK(q.pop("COUNT 9") == "a b c");
  q.say("Q.CONFIG q SET adaptive 5:9:100:1000:1");
  CHECK(q.pop("COUNT 9") == "d e");
}

TEST_CASE("an adaptive cap that was turned off begins again at max_active") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 7 adaptive 1:9:100:1000:1");
  CHECK(q.say("Q.CONFIG q SET adaptive off max_active 2") == "OK");
  CHECK(q.say("Q.CONFIG q SET adaptive 1:9:100:1000:1") == "OK");
  CHECK(q.stat("max_active") == "2");
}

TEST_CASE("an adaptive cap grows below low_ms, shrinks above high_ms, and stays at both") {
  for (const auto& [run_ms, cap] :
       std::map<int64_t, std::string>{{99, "6"}, {100, "5"}, {1000, "5"}, {1001, "4"}}) {
    CAPTURE(run_ms);
    QueueTalk q;
    q.say("Q.CONFIG q SET max_active 5 adaptive 1:9:100:1000:1");
    for (int i = 0; i < 100; ++i) {
      const std::string id = "j" + std::to_string(i);
      q.add(id);
      q.pop();
      q.pass(run_ms);
      q.ack(id);
    }
    CHECK(q.stat("max_active") == cap);
  }
}

TEST_CASE("an adaptive cap ends at its bound, whatever its step") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1 adaptive 1:4:100:1000:2 retain_completed 0");
  for (int i = 0; i < 300; ++i) q.add("j" + std::to_string(i));
  CHECK(q.drain() != "");
  q.add("a b c d e");
  CHECK(q.pop("COUNT 9") == "a b c d");
}

TEST_CASE("a cost is refused above what is left beside the slots that are reserved") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 5 reserve HIGH:2");
  CHECK(q.say("Q.ADD q a x COST 4") == "-BADFIELD field=cost");
  CHECK(q.say("Q.ADD q a x COST 4 PRI HIGH", "result") == "added");
  CHECK(q.say("Q.ADD q b x COST 3", "result") == "added");
  CHECK(q.say("Q.ADD q b x COST 4 IFDUP REPLACE") == "-BADFIELD field=cost");
  q.say("Q.CONFIG q SET max_active 0");
  CHECK(q.say("Q.ADD q c x COST 1000", "result") == "added");
}

TEST_CASE("a cap that is lowered below the cost of the next job holds up whoever is behind it") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 3");
  q.add("big", "COST 3");
  q.add("small");
  q.say("Q.CONFIG q SET max_active 2");
  CHECK(q.job("big", {"why"}) == "too_large");
  CHECK(q.pop() == "null");
  CHECK(q.pop("ID small") == "null");
  q.say("Q.CANCEL q big");
  CHECK(q.pop() == "small");
}

}  // namespace
