// Q.EVENTS as seen by clients: contents, starting points, and waiting.
#include <memory>
#include <string>

#include "tests/support/lossy_spill.h"
#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::LossySpill;
using sluice::test::QueueTalk;
using sluice::test::RespValue;

// "1 added a, 2 started a": numbers, types and ids of a reply.
std::string brief(const RespValue& reply) {
  if (reply.kind != RespValue::Kind::kArray) return reply.show();
  std::string out;
  for (const RespValue& event : reply.items) {
    out += (out.empty() ? "" : ", ") + event.items.at(0).text + " " + event.items.at(2).text + " " +
           event.items.at(3).text;
  }
  return out;
}

TEST_CASE("events are told in order, from the oldest, after a number, or from now") {
  QueueTalk q;
  CHECK(q.say("Q.EVENTS q -") == "[]");
  CHECK(q.say("Q.EVENTS q 0") == "[]");
  CHECK(q.say("Q.EVENTS q $") == "[]");
  CHECK(q.say("EXISTS q") == "0");
  q.add("a b");
  q.pop("WORKER w");
  q.ack("a");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "1 added a, 2 added b, 3 started a, 4 completed a");
  CHECK(brief(q.ask("Q.EVENTS q 0")) == brief(q.ask("Q.EVENTS q -")));
  CHECK(brief(q.ask("Q.EVENTS q 2")) == "3 started a, 4 completed a");
  CHECK(brief(q.ask("Q.EVENTS q 4")) == "");
  CHECK(brief(q.ask("Q.EVENTS q $")) == "");
  CHECK(brief(q.ask("Q.EVENTS q - COUNT 2")) == "1 added a, 2 added b");
  CHECK(brief(q.ask("Q.EVENTS q 1 COUNT 1")) == "2 added b");
  CHECK(brief(q.ask("Q.EVENTS q - TYPE started TYPE COMPLETED")) == "3 started a, 4 completed a");
  CHECK(brief(q.ask("Q.EVENTS q - TYPE added COUNT 1")) == "1 added a");
}

TEST_CASE("the events of one job, and how far they have been looked for") {
  QueueTalk q;
  q.add("a b");
  q.pop("WORKER w");
  q.ack("a");
  q.pop();
  CHECK(brief(q.ask("Q.EVENTS q - ID a")) == "1 added a, 3 started a, 4 completed a, 5 none ");
  CHECK(brief(q.ask("Q.EVENTS q - ID b")) == "2 added b, 5 started b");
  CHECK(brief(q.ask("Q.EVENTS q - ID nobody")) == "5 none ");
  CHECK(brief(q.ask("Q.EVENTS q 5 ID a")) == "");
  CHECK(brief(q.ask("Q.EVENTS q 2 ID a TYPE completed")) == "4 completed a, 5 none ");
  CHECK(brief(q.ask("Q.EVENTS q - ID a COUNT 2")) == "1 added a, 3 started a");
  CHECK(q.say("Q.EVENTS q - ID ''") == "-BADFIELD field=id");
  CHECK(q.say("Q.EVENTS q - ID") == "-ERR syntax error");
}

TEST_CASE("a call looks at a hundred thousand events, and says where it stopped") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 1000000 retain_completed 0");
  q.say("Q.ADD q first x DELAY 1000000");
  const int kJobs = 60'000;
  for (int i = 0; i < kJobs; ++i) {
    q.say("Q.ADD q j x DELAY 1000000");
    q.say("Q.CANCEL q j");
  }
  q.say("Q.CANCEL q first");
  CHECK(brief(q.ask("Q.EVENTS q - ID first")) == "1 added first, 100000 none ");
  CHECK(brief(q.ask("Q.EVENTS q 100000 ID first")) == "120002 cancelled first");
  CHECK(brief(q.ask("Q.EVENTS q - TYPE started")) == "100000 none ");
  CHECK(brief(q.ask("Q.EVENTS q - TYPE started BLOCK 0")) == "100000 none ");
  CHECK(brief(q.ask("Q.EVENTS q 100000 TYPE started")) == "");
}

TEST_CASE("who waits for the events of one job hears of nothing else") {
  QueueTalk q;
  q.add("a");
  CHECK(q.say_as(1, "Q.EVENTS q $ ID b BLOCK 0") == "(waits)");
  q.pop();
  CHECK(q.take_deliveries().empty());
  q.add("b");
  const auto delivered = q.take_deliveries();
  REQUIRE(delivered.count(1) == 1);
  CHECK(brief(delivered.at(1)) == "3 added b");
}

TEST_CASE("an event has five parts, the last of them a map") {
  QueueTalk q;
  q.add("a");
  q.pop("WORKER w");
  const RespValue reply = q.ask("Q.EVENTS q 1");
  REQUIRE(reply.size() == 1);
  const RespValue& event = reply.items[0];
  REQUIRE(event.size() == 5);
  CHECK(event.items[0].text == "2");
  CHECK(event.items[1].text == "1700000000000");
  CHECK(event.items[2].text == "started");
  CHECK(event.items[3].text == "a");
  CHECK(event.items[4].kind == RespValue::Kind::kMap);
  CHECK(event.items[4].field("worker") == "w");
  CHECK(event.items[4].field("lease") == q.lease("a"));
}

TEST_CASE("bad arguments") {
  QueueTalk q;
  CHECK(q.say("Q.EVENTS q x") == "-BADFIELD field=seq");
  CHECK(q.say("Q.EVENTS q -1") == "-BADFIELD field=seq");
  CHECK(q.say("Q.EVENTS q 0 COUNT 0") == "-BADFIELD field=count");
  CHECK(q.say("Q.EVENTS q 0 COUNT 1001") == "-BADFIELD field=count");
  CHECK(q.say("Q.EVENTS q 0 BLOCK -1") == "-BADFIELD field=block");
  CHECK(q.say("Q.EVENTS q 0 TYPE nothing") == "-BADFIELD field=type");
  CHECK(q.say("Q.EVENTS q 0 TYPE") == "-ERR syntax error");
  CHECK(q.say("Q.EVENTS q 0 NOTHING") == "-ERR syntax error");
}

TEST_CASE("what is trimmed is said, never passed over") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 3");
  q.add("a b c d e");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "3 added c, 4 added d, 5 added e");
  CHECK(brief(q.ask("Q.EVENTS q 0")) == "3 added c, 4 added d, 5 added e");
  CHECK(q.say("Q.EVENTS q 1") == "-TRIMMED oldest=3");
  CHECK(brief(q.ask("Q.EVENTS q 2")) == "3 added c, 4 added d, 5 added e");
  // A number that the queue has not reached belongs to another queue.
  CHECK(q.say("Q.EVENTS q 6") == "-TRIMMED oldest=3");
  CHECK(q.say("Q.EVENTS nobody 6") == "-TRIMMED oldest=1");
}

TEST_CASE("events grow old without traffic") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 100:1000");
  q.add("a");
  q.pass(600);
  q.add("b");
  q.pass(600);
  CHECK(brief(q.ask("Q.EVENTS q -")) == "2 added b");
  q.pass(600);
  CHECK(brief(q.ask("Q.EVENTS q -")) == "");
  CHECK(brief(q.ask("Q.EVENTS q 2")) == "");
  CHECK(q.say("Q.EVENTS q 1") == "-TRIMMED oldest=3");
  q.add("c");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "3 added c");
}

TEST_CASE("with events 0 there are none") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 0");
  q.add("a");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "");
  q.say("Q.CONFIG q SET events 10");
  q.add("b");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "2 added b");
}

TEST_CASE("what happened while events was 0 is not passed over silently") {
  for (const bool restarts : {false, true}) {
    CAPTURE(restarts);
    QueueTalk q;
    q.add("a b");
    q.say("Q.CONFIG q SET events 0");
    // Nothing is missed yet.
    CHECK(brief(q.ask("Q.EVENTS q 2")) == "");
    q.add("c d");
    CHECK(q.say("Q.EVENTS q 2") == "-TRIMMED oldest=4");
    if (restarts) q.restart(4);
    q.say("Q.CONFIG q SET events 10");
    q.add("e f");
    CHECK(brief(q.ask("Q.EVENTS q -")) == "4 added e, 5 added f");
    CHECK(q.say("Q.EVENTS q 2") == "-TRIMMED oldest=4");
    CHECK(brief(q.ask("Q.EVENTS q 3")) == "4 added e, 5 added f");
  }
}

TEST_CASE("who waits for events hears when the first is missed, and not of the others") {
  QueueTalk q;
  q.add("a b");
  CHECK(q.say_as(1, "Q.EVENTS q 2 BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q $ BLOCK 0 ID b") == "(waits)");
  CHECK(q.say_as(3, "Q.GET q a WAIT 0") == "(waits)");
  q.say("Q.CONFIG q SET events 0");
  CHECK(q.take_deliveries().empty());
  q.add("c");
  auto served = q.take_deliveries();
  CHECK(served.size() == 2);
  CHECK(served.at(1).show() == "-TRIMMED oldest=4");
  CHECK(served.at(2).show() == "-TRIMMED oldest=4");
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.add("d");
  q.say("Q.CONFIG q SET events 10");
  CHECK(q.take_deliveries().empty());
  q.add("e");
  served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(brief(served.at(1)) == "4 added e");
}

TEST_CASE("each time that events are turned off readers hear that they have missed some") {
  QueueTalk q;
  for (const int kept : {1, 3, 5}) {
    CAPTURE(kept);
    const std::string number = std::to_string(kept);
    q.say("Q.CONFIG q SET events 10");
    q.add("kept" + number);
    CHECK(brief(q.ask("Q.EVENTS q -")) == number + " added kept" + number);
    CHECK(q.say_as(1, "Q.EVENTS q " + number + " BLOCK 0") == "(waits)");
    q.say("Q.CONFIG q SET events 0");
    q.add("missed" + number);
    const std::string trimmed = "-TRIMMED oldest=" + std::to_string(kept + 2);
    const auto served = q.take_deliveries();
    REQUIRE(served.count(1) == 1);
    CHECK(served.at(1).show() == trimmed);
    CHECK(q.say("Q.EVENTS q " + number) == trimmed);
  }
}

TEST_CASE("where nothing happened while events was 0 the numbers go on") {
  QueueTalk q;
  q.add("a");
  q.say("Q.CONFIG q SET events 0");
  q.say("Q.CONFIG q SET events 10");
  q.add("b");
  CHECK(brief(q.ask("Q.EVENTS q 1")) == "2 added b");
}

TEST_CASE("a smaller bound counts at once, and after a restart") {
  QueueTalk q;
  for (int i = 0; i < 300; ++i) q.add("j" + std::to_string(i));
  q.say("Q.CONFIG q SET events 2");
  CHECK(brief(q.ask("Q.EVENTS q -")) == "299 added j298, 300 added j299");
  q.restart(4);
  CHECK(brief(q.ask("Q.EVENTS q -")) == "299 added j298, 300 added j299");
  q.say("Q.CONFIG q SET events 0");
  q.restart(4);
  CHECK(brief(q.ask("Q.EVENTS q -")) == "");
  CHECK(q.say("Q.EVENTS q 299") == "-TRIMMED oldest=301");
}

TEST_CASE("BLOCK waits for the first event after the number, also of a queue to come") {
  QueueTalk q;
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.add("a");
  auto served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(brief(served.at(1)) == "1 added a");
  CHECK(q.say_as(1, "Q.EVENTS q 1 BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q 1 BLOCK 1000") == "(waits)");
  CHECK(brief(q.ask("Q.EVENTS q 0 BLOCK 0")) == "1 added a");
  q.pop();
  served = q.take_deliveries();
  CHECK(served.size() == 2);
  CHECK(brief(served.at(1)) == "2 started a");
  CHECK(brief(served.at(2)) == "2 started a");
}

TEST_CASE("who waits for certain types sleeps through the others, and is not late for it") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 5");
  CHECK(q.say_as(1, "Q.EVENTS q 0 TYPE cancelled BLOCK 0") == "(waits)");
  q.add("a b c d e f g h");
  CHECK(q.take_deliveries().empty());
  q.say("Q.CANCEL q a");
  const auto served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(brief(served.at(1)) == "9 cancelled a");
}

TEST_CASE("who waits for one job is not late for it, however much happens to others") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 5");
  CHECK(q.say_as(1, "Q.EVENTS q 0 ID z BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q 0 ID z TYPE cancelled BLOCK 0") == "(waits)");
  q.add("a b c d e f g h");
  CHECK(q.take_deliveries().empty());
  q.add("z");
  auto served = q.take_deliveries();
  REQUIRE(served.size() == 1);
  CHECK(brief(served.at(1)) == "9 added z");
  q.say("Q.CANCEL q z");
  served = q.take_deliveries();
  REQUIRE(served.size() == 1);
  CHECK(brief(served.at(2)) == "10 cancelled z");
}

TEST_CASE("who waits for certain types hears all of a transaction that are his") {
  QueueTalk q;
  q.add("a b c");
  CHECK(q.say_as(1, "Q.EVENTS q $ TYPE cancelled TYPE moved BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q $ TYPE failed BLOCK 0") == "(waits)");
  q.say("MULTI");
  q.add("d");
  q.say("Q.CANCEL q a");
  q.add("e");
  q.say("Q.MOVE q b PRI HIGH");
  q.say("EXEC");
  const auto served = q.take_deliveries();
  REQUIRE(served.size() == 1);
  CHECK(brief(served.at(1)) == "5 cancelled a, 7 moved b");
  // The other one was skipped, and still exists.
  q.pop();
  q.pop();
  CHECK(q.take_deliveries().empty());
  q.nack("b", "FATAL");
  CHECK(q.take_deliveries().count(2) == 1);
}

TEST_CASE("who has waited through events from the oldest on is told those of another queue") {
  QueueTalk q;
  q.say("Q.ADD other x 1");
  q.say("Q.CANCEL other x");
  CHECK(q.say_as(1, "Q.EVENTS q 0 TYPE cancelled BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.EVENTS q 0 ID x BLOCK 0") == "(waits)");
  q.add("a b c d");
  CHECK(q.take_deliveries().empty());
  q.say("RENAME other q");
  const auto served = q.take_deliveries();
  REQUIRE(served.size() == 2);
  CHECK(brief(served.at(1)) == "7 cancelled x");
  CHECK(brief(served.at(2)) == "6 added x, 7 cancelled x");
}

TEST_CASE("events that timers make wake as well") {
  QueueTalk q;
  q.add("a", "DELAY 500");
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.pass(400);
  CHECK(q.take_deliveries().empty());
  q.pass(200);
  const auto served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(brief(served.at(1)) == "2 ready a");
}

TEST_CASE("BLOCK counts as not given in a transaction") {
  QueueTalk q;
  q.say("MULTI");
  q.say("Q.EVENTS q $ BLOCK 0");
  CHECK(q.say("EXEC") == "[[]]");
}

TEST_CASE("who waits at a queue that goes hears it") {
  QueueTalk q;
  q.add("a b");
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.say("DEL q");
  const auto served = q.take_deliveries();
  REQUIRE(served.count(1) == 1);
  CHECK(brief(served.at(1)) == "");
  CHECK(q.say("Q.EVENTS q 2") == "-TRIMMED oldest=4");
}

TEST_CASE("a restart tells the same events and goes on") {
  QueueTalk q;
  q.add("a b c");
  q.pop("WORKER w");
  q.nack("a", "ERROR broken");
  q.say("Q.CANCEL q b");
  q.say("Q.MOVE q c PRI HIGH");
  const std::string before = q.say("Q.EVENTS q -");
  q.restart(4);
  CHECK(q.say("Q.EVENTS q -") == before);
  const std::string last = std::to_string(q.find_queue("q")->events.last_seq());
  q.add("d");
  CHECK(brief(q.ask("Q.EVENTS q " + last)) == std::to_string(std::stoi(last) + 1) + " added d");
}

// Some 37 events a chunk, including spilled ones of type failed.
std::shared_ptr<LossySpill> fill_and_spill(QueueTalk& q) {
  auto spill = std::make_shared<LossySpill>();
  q.engine().spill_events_to(spill);
  const std::string name(100, 'j');
  const auto add = [&](int from, int to) {
    for (int i = from; i < to; ++i) q.add(name + std::to_string(i));
  };
  add(0, 100);
  q.pop("WORKER w");
  q.nack(name + "0", "FATAL");
  add(100, 1000);
  return spill;
}

TEST_CASE("events that are spilled are told like others, also after a walk") {
  QueueTalk q;
  QueueTalk plain;
  const auto spill = fill_and_spill(q);
  const auto lost = fill_and_spill(plain);
  lost->lost = true;
  CHECK(q.ask("Q.EVENTS q - COUNT 1000").items.size() == 1000);
  CHECK(brief(q.ask("Q.EVENTS q 5 TYPE started")).substr(0, 12) == "101 started ");
  CHECK(q.describe_walked({"q"}, {}) == q.describe({"q"}, {}));
  // A checkpoint leaves out what it cannot read, and starts the log after it.
  CHECK(plain.describe_walked({"q"}, {}) != q.describe({"q"}, {}));
}

TEST_CASE("a call reads so much of the spill, and says where it stopped") {
  QueueTalk q;
  const auto spill = std::make_shared<LossySpill>();
  q.engine().spill_events_to(spill);
  // Some 37 events a chunk, one of which is of type failed.
  const std::string name(100, 'j');
  q.say("Q.CONFIG q SET events 1000000");
  q.add("first", "DELAY 1000000");
  for (int i = 0; i < 12'000; ++i) {
    q.add(name + std::to_string(i));
    if (i % 30 != 29) continue;
    q.pop("WORKER w");
    q.nack(name + std::to_string(i / 30), "FATAL");
  }
  q.say("Q.CANCEL q first");
  // Chunks with an event of the reply are not counted.
  CHECK(q.ask("Q.EVENTS q - TYPE failed COUNT 1000").items.size() == 400);
  spill->reads = 0;
  std::string after = "-";
  std::string story;
  int calls = 0;
  for (; story.find("cancelled") == std::string::npos; ++calls) {
    REQUIRE(calls < 3);
    const RespValue reply = q.ask("Q.EVENTS q " + after + " ID first");
    story += brief(reply) + "; ";
    after = reply.items.back().items.at(0).text;
    CHECK(spill->reads <= 257 * static_cast<size_t>(calls + 1));
  }
  CHECK(calls == 2);
  CHECK(story.find("1 added first, ") == 0);
  CHECK(story.find(" none ; ") != std::string::npos);
  // A waiting client gets the same reply at once.
  CHECK(brief(q.ask("Q.EVENTS q 1 ID first BLOCK 0")).find(" none ") != std::string::npos);
}

TEST_CASE("events that the spill has lost are told as trimmed, whatever is asked for") {
  for (const std::string command :
       {"Q.EVENTS q 5", "Q.EVENTS q 5 TYPE failed", "Q.EVENTS q 5 BLOCK 0 TYPE failed",
        "Q.EVENTS q 5 BLOCK 0 TYPE failed ID x"}) {
    CAPTURE(command);
    QueueTalk q;
    fill_and_spill(q)->lost = true;
    const std::string reply = q.say(command);
    CHECK(reply.substr(0, 16) == "-TRIMMED oldest=");
    CHECK(reply == "-TRIMMED oldest=" + std::to_string(q.find_queue("q")->events.oldest_seq()));
  }
}

TEST_CASE("from the oldest on, what is left is told") {
  QueueTalk q;
  fill_and_spill(q)->lost = true;
  CHECK(q.say_as(1, "Q.EVENTS q - BLOCK 0 TYPE failed") == "(waits)");
  const RespValue rest = q.ask("Q.EVENTS q - COUNT 1000");
  REQUIRE(rest.items.size() > 400);
  CHECK(rest.items.size() < 900);
  CHECK(rest.items.back().items.at(0).text == "1002");
  CHECK(q.say("Q.EVENTS q - TYPE failed") == "[]");
}

TEST_CASE("a job that is purged is told as forgotten") {
  QueueTalk q;
  q.add("a");
  q.drain();
  q.say("Q.PURGE q a");
  CHECK(q.say("Q.EVENTS q - TYPE forgotten").find(" forgotten a ") != std::string::npos);
}

TEST_CASE("events that are too old do not come back with a restart") {
  QueueTalk q;
  q.say("Q.CONFIG q SET events 100:1000");
  q.add("a");
  q.pass(1000);
  CHECK(q.say("Q.EVENTS q -") == "[]");
  q.restart(1);
  CHECK(q.say("Q.EVENTS q -") == "[]");
}

}  // namespace
