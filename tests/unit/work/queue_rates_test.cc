// The native queue's rates: what they admit, and what a change does to the debt.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

// The levels of a rate, as in Q.CONFIG.
constexpr const char* kLevels[] = {"", "GROUP g ", "KEY k "};

std::string set_rate(const std::string& level, const std::string& rate) {
  return "Q.CONFIG q " + level + "SET rate " + rate;
}

TEST_CASE("a rate admits its burst and then one token after the other, at every level") {
  QueueTalk q;
  q.say("Q.CONFIG q SET rate 2/1000");
  q.say("Q.CONFIG q GROUP g SET rate 1/5000");
  q.add("a b c");
  CHECK(q.pop("COUNT 9") == "a b");
  CHECK(q.pop() == "null");
  q.pass(499);
  CHECK(q.pop() == "null");
  q.pass(1);
  CHECK(q.pop() == "c");
  q.add("g1 g2", "GROUP g");
  q.pass(1000);
  CHECK(q.pop("COUNT 9") == "g1");
  CHECK(q.job("g2", {"why"}) == "rate 5000");
  q.pass(4999);
  CHECK(q.pop("COUNT 9") == "null");
  q.pass(1);
  CHECK(q.pop("COUNT 9") == "g2");
}

TEST_CASE("a rate holds although its group was idle in between") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET rate 1/1000");
  q.say("Q.CONFIG q KEY k SET rate 1/1000");
  q.add("g1", "GROUP g");
  q.add("k1", "KEY k");
  CHECK(q.pop("COUNT 9") == "g1 k1");
  q.ack("g1");
  q.ack("k1");
  q.say("Q.PURGE q WHERE ALL");
  q.add("g2", "GROUP g");
  q.add("k2", "KEY k");
  CHECK(q.pop("COUNT 9") == "null");
  q.pass(1000);
  CHECK(q.pop("COUNT 9") == "g2 k2");
}

TEST_CASE("a waiting pop is served when a rate refills, without traffic") {
  QueueTalk q;
  q.say("Q.CONFIG q SET rate 1/100");
  q.add("a b");
  CHECK(q.pop() == "a");
  q.say_as(1, "Q.POP 1 q BLOCK 0");
  q.pass(99);
  CHECK(q.take_deliveries().empty());
  q.pass(1);
  CHECK(q.take_deliveries().contains(1));
}

TEST_CASE("a refill that comes before its timer runs serves who waits for it") {
  QueueTalk q;
  SUBCASE("of the queue") {
    q.say("Q.CONFIG q SET rate 1/100");
    q.add("a b");
    CHECK(q.pop() == "a");
    q.say_as(1, "Q.POP 1 q BLOCK 0");
    q.set_clock(q.wall_ms() + 101, q.steady_ms() + 101);
    q.touch("a");
  }
  SUBCASE("of a key") {
    q.say("Q.CONFIG q KEY k SET rate 1/100");
    q.add("a b", "KEY k");
    q.add("c", "KEY m");
    CHECK(q.pop("MATCH k") == "a");
    q.say_as(1, "Q.POP 1 q BLOCK 0 MATCH k");
    q.set_clock(q.wall_ms() + 101, q.steady_ms() + 101);
    SUBCASE("another pop applies it") { CHECK(q.pop("MATCH m") == "c"); }
    SUBCASE("a list applies it") {
      CHECK(q.say("Q.LIST q BY DISPATCH BRIEF").find("id=b") != std::string::npos);
      q.add("d", "DELAY 1000");
    }
  }
  q.run_timers();
  CHECK(q.take_deliveries().contains(1));
  CHECK_FALSE(q.run_some_timers());
}

TEST_CASE("of a group or key that no job names a rate is kept until it has refilled") {
  for (const std::string level : {"GROUP g ", "KEY k "}) {
    QueueTalk q;
    q.say("Q.CONFIG q SET retain_completed 0");
    q.say(set_rate(level, "1/100"));
    q.add("a", "GROUP g KEY k");
    CHECK(q.drain() == "a");
    const auto kept = [&] { return q.find_queue("q")->lanes.idle_rates().size(); };
    CHECK(kept() == 1);
    q.pass(200);
    q.add("b");
    CHECK(q.drain() == "b");
    CHECK(kept() == 0);
  }
}

TEST_CASE("jobs that are given back let a rate admit no more than its burst at one moment") {
  for (const std::string level : kLevels) {
    CAPTURE(level);
    QueueTalk q;
    q.say(set_rate(level, "1/300"));
    q.add("a b c d e", "GROUP g KEY k");
    for (const std::string id : {"a", "b", "c"}) {
      CHECK(q.pop() == id);
      q.pass(310);
    }
    CHECK(q.pop() == "d");
    // Only the last token has not refilled.
    CHECK(q.nack("a", "SILENT DELAY 60000").starts_with("{state=delayed"));
    CHECK(q.pop() == "null");
    q.nack("b", "SILENT DELAY 60000");
    q.nack("c", "SILENT DELAY 60000");
    CHECK(q.pop() == "null");
    q.pass(100);
    q.nack("d", "SILENT DELAY 60000");
    CHECK(q.pop("COUNT 9") == "e");
  }
}

TEST_CASE("a token that was given back is there after a restart") {
  QueueTalk q;
  q.say("Q.CONFIG q SET rate 1/60000");
  q.add("a");
  q.pop();
  q.nack("a", "SILENT");
  q.restart(1);
  CHECK(q.pop() == "a");
}

TEST_CASE("a run that took no token of a rate gives none back") {
  for (const std::string level : kLevels) {
    CAPTURE(level);
    QueueTalk q;
    q.add("a b c d e f", "GROUP g KEY k");
    CHECK(q.pop("COUNT 3") == "a b c");
    q.pass(1);
    q.say(set_rate(level, "1/60000"));
    CHECK(q.pop() == "d");
    for (const std::string id : {"a", "b", "c"}) q.nack(id, "SILENT DELAY 600000");
    CHECK(q.pop() == "null");
    // Nor does one that took it of another rate.
    q.say(set_rate(level, "1/30000"));
    q.nack("d", "SILENT DELAY 600000");
    CHECK(q.pop() == "null");
    q.pass(60000);
    CHECK(q.pop() == "e");
    q.nack("e", "SILENT DELAY 600000");
    CHECK(q.pop() == "f");
  }
}

TEST_CASE("tokens of one burst come back until others are taken") {
  QueueTalk q;
  q.say("Q.CONFIG q SET rate 4/4000");
  q.add("a b c d e f g h i j k l");
  CHECK(q.pop("COUNT 9") == "a b c d");
  q.pass(900);
  for (const std::string id : {"a", "b", "c"}) q.nack(id, "SILENT");
  CHECK(q.pop("COUNT 9") == "a b c");
  CHECK(q.pop() == "null");
  q.nack("d", "SILENT");
  CHECK(q.pop("COUNT 9") == "d");
  // After a restart nobody knows when the last one was taken.
  q.restart(4);
  q.nack("d", "SILENT");
  CHECK(q.pop() == "null");
}

TEST_CASE("a changed rate counts at once, whatever the old one owed") {
  for (const std::string level : kLevels) {
    CAPTURE(level);
    QueueTalk q;
    q.say(set_rate(level, "1/3600000"));
    q.add("a b c d", "GROUP g KEY k");
    CHECK(q.pop("COUNT 9") == "a");
    CHECK(q.job("b", {"why"}) == "rate 3600000");
    q.pass(10'000);
    q.say(set_rate(level, "1000/1000"));
    q.find_queue("q")->check();
    // As if its burst had just been used.
    CHECK(q.job("b", {"why"}) == "rate 1");
    q.say_as(1, "Q.POP 1 q BLOCK 0");
    q.pass(1);
    CHECK(q.take_deliveries().contains(1));
    CHECK(q.pop("COUNT 9") == "null");
    q.pass(1);
    CHECK(q.pop("COUNT 9") == "c");
    // A slower rate keeps the debt, without a new burst.
    q.say(set_rate(level, "1/5000:2"));
    CHECK(q.pop("COUNT 9") == "d");
  }
}

TEST_CASE("what a changed rate owes is the same after a restart") {
  for (const std::string level : kLevels) {
    CAPTURE(level);
    QueueTalk q;
    q.say(set_rate(level, "1/3600000"));
    q.add("a b", "GROUP g KEY k");
    CHECK(q.pop() == "a");
    q.pass(10'000);
    q.say(set_rate(level, "1/5000:3"));
    CHECK(q.job("b", {"why"}) == "rate 5000");
    q.restart(4);
    CHECK(q.job("b", {"why"}) == "rate 5000");
  }
}

TEST_CASE("a changed rate also counts for a group or key that nobody names at the time") {
  for (const std::string level : {"GROUP g ", "KEY k "}) {
    for (const bool restarts : {false, true}) {
      CAPTURE(level);
      CAPTURE(restarts);
      QueueTalk q;
      q.say(set_rate(level, "1/3600000"));
      q.add("a", "GROUP g KEY k");
      CHECK(q.pop() == "a");
      q.ack("a");
      q.say("Q.PURGE q WHERE ALL");
      q.pass(10'000);
      q.say(set_rate(level, "1/5000:3"));
      if (restarts) q.restart(4);
      q.add("b", "GROUP g KEY k");
      CHECK(q.job("b", {"why"}) == "rate 5000");
      q.pass(5000);
      CHECK(q.pop() == "b");
    }
  }
}

TEST_CASE("what a changed rate owes for nobody goes down from the change on, over a restart too") {
  for (const std::string level : {"GROUP g ", "KEY k "}) {
    for (const bool restarts : {false, true}) {
      CAPTURE(level);
      CAPTURE(restarts);
      QueueTalk q;
      q.say("Q.CONFIG q SET retain_completed 0");
      q.say(set_rate(level, "1/3600000"));
      q.add("a", "GROUP g KEY k");
      CHECK(q.drain() == "a");
      q.say(set_rate(level, "1/5000"));
      q.pass(3000);
      if (restarts) q.restart(4);
      q.add("b", "GROUP g KEY k");
      CHECK(q.job("b", {"why"}) == "rate 2000");
    }
  }
}

TEST_CASE("a rate that is taken away owes nothing when there is one again") {
  for (const std::string level : kLevels) {
    for (const bool restarts : {false, true}) {
      CAPTURE(level);
      CAPTURE(restarts);
      QueueTalk q;
      q.say(set_rate(level, "1/3600000"));
      q.add("a b c", "GROUP g KEY k");
      CHECK(q.pop("COUNT 9") == "a");
      q.say("Q.CONFIG q " + level + "RESET");
      if (restarts) q.restart(4);
      q.say(set_rate(level, "1/3600000"));
      CHECK(q.pop("COUNT 9") == "b");
    }
  }
}

}  // namespace
