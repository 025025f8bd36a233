// Queues while the wall clock is set: order, delays, rates, budgets and shares use queue time, and
// replies show it as wall clock time.
#include <set>
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kYearMs = 31'536'000'000;
constexpr int64_t kSteps[] = {5000,    -5000,    kHourMs,      -kHourMs,
                              kYearMs, -kYearMs, 73 * kYearMs, -1'699'999'000'000};

// A command that runs while the clock is wrong, which is corrected afterwards, has the same effect
// as if the clock had always been right.
template <class Test>
void with_steps(Test test) {
  for (const int64_t step_ms : kSteps) {
    CAPTURE(step_ms);
    QueueTalk q;
    const auto astray = [&](const std::string& line) {
      q.step_wall(step_ms);
      const std::string reply = q.say(line);
      q.run_timers();
      q.step_wall(-step_ms);
      q.run_timers();
      return reply;
    };
    test(q, astray);
  }
}

TEST_CASE("a rate goes on after the wall clock was astray") {
  with_steps([](QueueTalk& q, const auto& astray) {
    q.say("Q.CONFIG q SET rate 10/1000");
    for (int i = 0; i < 30; ++i) q.add(std::to_string(i));
    astray("Q.ADD q other x");
    CHECK(q.ask("Q.POP 1 q COUNT 20").items.size() == 10);
    CHECK(q.pop() == "null");
    astray("Q.POP 1 q");
    q.pass(1000);
    CHECK(q.ask("Q.POP 1 q COUNT 20").items.size() == 10);
  });
}

TEST_CASE("delays, backoffs and TTLs take as long as they say") {
  with_steps([](QueueTalk& q, const auto& astray) {
    q.add("fails", "RETRY 1 BACKOFF 700 700");
    CHECK(q.pop() == "fails");
    astray("Q.ADD q delayed x DELAY 500");
    astray("Q.ADD q expires x TTL 900");
    astray("Q.NACK q fails " + q.lease("fails") + " FAIL DELAY 600");
    CHECK(q.pop() == "expires");
    q.nack("expires", "SILENT");
    q.pass(499);
    CHECK(q.state("delayed") == "delayed");
    q.pass(1);
    CHECK(q.state("delayed") == "pending");
    CHECK(q.state("fails") == "delayed");
    q.pass(100);
    CHECK(q.state("fails") == "pending");
    q.pass(299);
    CHECK(q.state("expires") == "pending");
    q.pass(1);
    CHECK(q.state("expires") == "expired");
  });
}

TEST_CASE("retention keeps what it says") {
  with_steps([](QueueTalk& q, const auto& astray) {
    q.say("Q.CONFIG q SET retain_completed 10:1000");
    for (int i = 0; i < 30; ++i) {
      q.add(std::to_string(i));
      q.pop();
      i % 7 == 0 ? astray("Q.ACK q " + std::to_string(i) + " " + q.lease(std::to_string(i)))
                 : q.ack(std::to_string(i));
    }
    q.run_timers();
    CHECK(q.ask("Q.LIST q WHERE STATE completed").items[1].items.size() == 10);
    q.pass(1000);
    CHECK(q.ask("Q.LIST q WHERE STATE completed").items[1].items.empty());
  });
}

TEST_CASE("order is that of arrival, and no run is longer than it was") {
  with_steps([](QueueTalk& q, const auto& astray) {
    q.add("a");
    astray("Q.ADD q b x");
    q.add("c");
    q.pass(3);
    q.add("d");
    CHECK(q.pop() == "a");
    q.pass(40);
    astray("Q.ACK q a " + q.lease("a"));
    CHECK(q.job("a", {"run_ms"}) == "40");
    CHECK(q.drain() == "b c d");
  });
}

TEST_CASE("a step within a run gives its group no pops, and takes none") {
  with_steps([](QueueTalk& q, const auto&) {
    q.say("Q.CONFIG q SET fair on");
    for (int i = 0; i < 12; ++i) {
      q.add("a" + std::to_string(i), "GROUP a");
      q.add("b" + std::to_string(i), "GROUP b");
    }
    std::string order;
    for (int i = 0; i < 12; ++i) {
      const std::string id = q.pop();
      if (i == 2) q.step_wall(kHourMs);
      if (i == 6) q.step_wall(-2 * kHourMs);
      q.pass(10);
      q.ack(id);
      order += id[0];
    }
    CHECK(order == "abababababab");
  });
}

TEST_CASE("the ETA, MAXWAIT and an adaptive cap know how long jobs take") {
  with_steps([](QueueTalk& q, const auto& astray) {
    q.say("Q.CONFIG q SET max_active 1 adaptive 1:50:500:5000 retain_completed 0");
    for (int i = 0; i < 110; ++i) {
      const std::string id = std::to_string(i);
      q.add(id);
      q.pop();
      q.pass(10);
      i == 60 ? astray("Q.ACK q " + id + " " + q.lease(id)) : q.ack(id);
    }
    CHECK(q.stat("max_active") == "6");
    q.say("Q.CONFIG q SET adaptive off max_active 1");
    q.add("first second");
    CHECK(q.job("second", {"eta_ms"}) == "20");
    astray("Q.ADD q third x MAXWAIT 40");
    CHECK(q.job("third", {"position", "eta_ms"}) == "2 30");
  });
}

TEST_CASE("AT is the wall clock's when it is given, and told as it has it") {
  with_steps([](QueueTalk& q, const auto&) {
    for (const int64_t step_ms : kSteps) {
      if (q.wall_ms() + step_ms < 0) continue;
      q.step_wall(step_ms);
      const std::string at = std::to_string(q.wall_ms() + 1000);
      q.say("Q.ADD q a x AT " + at);
      CHECK(q.job("a", {"state", "not_before", "why"}) == "delayed " + at + " not_before " + at);
      CHECK(q.job("a", {"enqueued"}) == std::to_string(q.wall_ms()));
      q.say("Q.ADD q b x");
      CHECK(q.say("Q.MOVE q b AT " + at) == "null");
      CHECK(q.job("b", {"not_before"}) == at);
      q.pass(999);
      CHECK(q.state("a") == "delayed");
      q.pass(1);
      CHECK(q.drain() == "a b");
      CHECK(q.job("a", {"finished"}) == std::to_string(q.wall_ms()));
      q.say("Q.PURGE q WHERE STATE completed");
    }
  });
}

TEST_CASE("an AT that is repeated is the same, also when the wall clock was set meanwhile") {
  with_steps([](QueueTalk& q, const auto& astray) {
    const std::string at = std::to_string(q.wall_ms() + 1000);
    const std::string update = "Q.ADD q a again IFDUP UPDATE AT ";
    q.say("Q.ADD q a x AT " + at);
    CHECK(astray(update + at) == q.say(update + at));
    CHECK(q.say(update + at, "result") == "updated");
    CHECK(astray(update + at + "0") == "-BADFIELD field=at");
    // A time given while the clocks differed, also after a restart and as a successor.
    q.step_wall(3000);
    const std::string later = std::to_string(q.wall_ms() + 9000);
    q.say("Q.ADD q b x AT " + later);
    q.say("Q.ADD q c x");
    CHECK(q.pop() == "c");
    CHECK(q.say("Q.ADD q c x IFDUP REPLACE AT " + later, "result") == "queued");
    q.restart(4);
    q.step_wall(-777);
    q.ack("c");
    for (const std::string id : {"b", "c"}) {
      const std::string line = "Q.ADD q " + id + " again IFDUP UPDATE AT ";
      CHECK(q.say(line + later, "result") == "updated");
      CHECK(q.say(line + std::to_string(q.wall_ms() + 1)) == "-BADFIELD field=at");
    }
    CHECK(q.say("Q.MOVE q b DELAY 5") == "null");
    CHECK(q.say("Q.ADD q b again IFDUP UPDATE AT " + later) == "-BADFIELD field=at");
    // A move to the front or the back ends it.
    for (const std::string place : {"FRONT", "BACK"}) {
      q.say("Q.ADD q " + place + " x AT " + later);
      q.say("Q.MOVE q " + place + " " + place);
      CHECK(q.say("Q.ADD q " + place + " again IFDUP UPDATE AT " + later) == "-BADFIELD field=at");
    }
  });
}

TEST_CASE("in a LIFO group an AT goes along with the place that jobs exchange") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.step_wall(3000);
  const std::string at = std::to_string(q.wall_ms() + 1000);
  q.add("old");
  q.add("new", "AT " + at);
  CHECK(q.pop("ID new") == "new");
  q.step_wall(-777);
  CHECK(q.say("Q.ADD q old again IFDUP UPDATE AT " + at, "result") == "updated");
}

TEST_CASE("what is told of times is told as the wall clock has it") {
  with_steps([](QueueTalk& q, const auto&) {
    q.step_wall(q.wall_ms() < kYearMs ? 0 : -kHourMs);
    q.add("a", "RETRY 3");
    const RespValue popped = q.ask("Q.POP 1 q LEASE 7000 WORKER w");
    const std::string now = std::to_string(q.wall_ms());
    CHECK(popped.items.at(0).field("enqueued") == now);
    CHECK(popped.items[0].field("deadline") == std::to_string(q.wall_ms() + 7000));
    CHECK(q.job("a", {"enqueued", "started"}) == now + " " + now);
    CHECK(q.ask("Q.NACK q a " + popped.items[0].field("lease") + " DELAY 50").field("not_before") ==
          std::to_string(q.wall_ms() + 50));
    CHECK(q.stat("since") == now);
    for (const RespValue& event : q.ask("Q.EVENTS q -").items) CHECK(event.items[1].text == now);
    // It follows the clock.
    q.step_wall(1234);
    CHECK(q.job("a", {"enqueued"}) == std::to_string(q.wall_ms()));
  });
}

TEST_CASE("a restart at another time loses nothing and turns nothing round") {
  with_steps([](QueueTalk& q, const auto&) {
    q.say("Q.CONFIG q SET rate 2/1000");
    q.add("a b c d e f");
    q.add("delayed", "DELAY 500");
    CHECK(q.pop("COUNT 9") == "a b");
    q.step_wall(-kHourMs);
    q.restart(4);
    CHECK(q.pop() == "null");
    q.pass(500);
    CHECK(q.pop("COUNT 9") == "c");
    CHECK(q.state("delayed") == "pending");
    q.pass(500);
    CHECK(q.pop("COUNT 9") == "d");
    // With the clock ahead, everything is as if that much time had passed.
    q.step_wall(2 * kHourMs);
    q.restart(4);
    CHECK(q.pop("COUNT 9") == "e f");
    q.pass(1000);
    CHECK(q.pop("COUNT 9") == "delayed");
    CHECK(q.state("a") == "active");
  });
}

TEST_CASE("a generated id comes once, also after DEL, within a unit and from another queue") {
  QueueTalk q;
  std::set<std::string> ids;
  const auto add = [&] { CHECK(ids.insert(q.say("Q.ADD q * x", "id")).second); };
  for (int i = 0; i < 5; ++i) {
    add();
    add();
    q.say("DEL q");
    add();
    q.say("Q.ADD other * x");
    q.say("RENAME other q");
    add();
    q.say("MULTI");
    for (const char* line : {"Q.ADD q * x", "DEL q", "Q.ADD q * x"}) q.say(line);
    for (const RespValue& reply : q.ask("EXEC").items) {
      if (reply.kind != RespValue::Kind::kMap) continue;  // of DEL
      CHECK(ids.insert(reply.field("id")).second);
    }
    q.step_wall(-kHourMs);
  }
  // A job already taken by a caller is left to it.
  const std::string id = q.say("Q.ADD q * x", "id");
  const std::string next =
      id.substr(0, id.find('-') + 1) + std::to_string(std::stoull(id.substr(id.find('-') + 1)) + 1);
  q.say("Q.ADD q " + next + " x");
  CHECK(q.say("Q.ADD q * x", "id") != next);
}

TEST_CASE("keys expire by the wall clock, also where nobody touches them") {
  QueueTalk q;
  q.say("SET k v PX 5000");
  q.step_wall(5000);
  q.run_timers();
  CHECK(q.say("DBSIZE") == "0");
}

}  // namespace
