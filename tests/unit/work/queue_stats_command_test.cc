// Q.STATS as seen by clients: every field of every line, compared with jobs whose fate is known.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

std::string fields(const RespValue& line, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : " ") + name + "=" + line.field(name);
  }
  return out;
}

// One line of a reply with BY.
RespValue line(const RespValue& reply, const std::string& name) {
  const RespValue* found = reply.find(name);
  return found == nullptr ? RespValue::of("no line " + name) : *found;
}

TEST_CASE("a missing queue reads as an empty one, with every field") {
  QueueTalk q;
  const RespValue stats = q.ask("Q.STATS q");
  CHECK(
      fields(stats, {"pending", "active", "delayed", "blocked", "waiting", "waiting_pops", "slots",
                     "max_active", "utilization", "added", "started", "completed", "failed",
                     "expired", "cancelled", "reclaimed", "oldest_ms", "timer_lag_ms"}) ==
      "pending=0 active=0 delayed=0 blocked=0 waiting=0 waiting_pops=0 slots=0 max_active=0 "
      "utilization=null added=0 started=0 completed=0 failed=0 expired=0 cancelled=0 "
      "reclaimed=0 oldest_ms=null timer_lag_ms=0");
  CHECK(stats.field("by_priority") == "{CRITICAL=0 HIGH=0 NORMAL=0 LOW=0 BACKGROUND=0}");
  CHECK(stats.field("rejected") ==
        "{queue_full=0 group_full=0 paused=0 duplicate=0 too_big=0 too_late=0 need_failed=0}");
  CHECK(stats.field("wait_ms") == "{count=0 p50=0 p95=0 p99=0 max=0 mean=0}");
  CHECK(stats.field("run_ms") == stats.field("wait_ms"));
  CHECK(stats.field("rates") == "{added=0 completed=0}");
  CHECK(stats.field("since") == "1700000000000");
  CHECK(stats.size() == 25);
  CHECK(q.say("Q.STATS q BY GROUP") == "{}");
  CHECK(q.say("Q.STATS q BY TAG lang") == "{}");
  CHECK(q.say("Q.STATS q BY WORKER") == "{}");
  CHECK(q.ask("Q.STATS q BY PRI").size() == 5);
  CHECK(q.say("EXISTS q") == "0");
}

TEST_CASE("gauges follow every state") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 4");
  q.add("a b c", "COST 2");
  q.add("d", "PRI HIGH");
  q.add("e", "DELAY 1000");
  q.add("f", "NEED c");
  q.say("Q.ADD q u x PRI 200");
  CHECK(q.pop("WORKER w") == "d");
  CHECK(q.pop("WORKER w") == "a");
  q.say("Q.ADD q a again IFDUP UPDATE");
  q.pass(250);
  const RespValue stats = q.ask("Q.STATS q");
  CHECK(fields(stats, {"pending", "active", "delayed", "blocked", "waiting", "slots", "max_active",
                       "utilization", "oldest_ms"}) ==
        "pending=3 active=2 delayed=1 blocked=1 waiting=6 slots=3 max_active=4 utilization=0.75 "
        "oldest_ms=250");
  CHECK(stats.field("by_priority") == "{CRITICAL=0 HIGH=0 NORMAL=2 LOW=0 BACKGROUND=0 200=1}");
  q.find_queue("q")->check();
}

TEST_CASE("a job that was moved to the front does not hide how long others have waited") {
  QueueTalk q;
  q.add("long");
  q.pass(400);
  q.add("moved");
  q.say("Q.MOVE q moved FRONT");
  CHECK(q.stat("oldest_ms") == "400");
  CHECK(line(q.ask("Q.STATS q BY PRI"), "NORMAL").field("oldest_ms") == "400");
  CHECK(q.pop("ID long") == "long");
  CHECK(q.stat("oldest_ms") == "0");
}

TEST_CASE("totals count every end, and refusals by their reason") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_waiting 6 max_payload 100 retry 1 lease_ms 1000 crash_limit 5");
  q.say("Q.CONFIG q GROUP g SET max_waiting 1");
  q.add("a b c");
  q.pop();
  q.ack("a");
  q.pop();
  q.nack("b", "FATAL");
  q.pop();
  q.pass(1001);  // the lease of c expires
  q.say("Q.CANCEL q c");
  q.say("Q.ADD q d x TTL 10");
  q.pass(20);
  const RespValue stats = q.ask("Q.STATS q");
  CHECK(fields(stats,
               {"added", "started", "completed", "failed", "expired", "cancelled", "reclaimed"}) ==
        "added=4 started=3 completed=1 failed=1 expired=1 cancelled=1 reclaimed=1");
  q.add("e", "GROUP g");
  CHECK(q.say("Q.ADD q f x GROUP g").rfind("-GROUPFULL", 0) == 0);
  CHECK(q.say("Q.ADD q e x").rfind("-DUPLICATE", 0) == 0);
  CHECK(q.say("Q.ADD q e x").rfind("-DUPLICATE", 0) == 0);
  CHECK(q.say("Q.ADD q f " + std::string(101, 'x')).rfind("-TOOBIG", 0) == 0);
  CHECK(q.say("Q.ADD q f x NEED b").rfind("-NEEDFAILED", 0) == 0);
  q.add("1 2 3 4 5");
  CHECK(q.say("Q.ADD q f x").rfind("-QFULL", 0) == 0);
  q.say("Q.CONFIG q SET paused in");
  CHECK(q.say("Q.ADD q f x").rfind("-PAUSED", 0) == 0);
  CHECK(q.stat("rejected") ==
        "{queue_full=1 group_full=1 paused=1 duplicate=2 too_big=1 too_late=0 need_failed=1}");
}

TEST_CASE("times are told by quantiles and the mean of the last hundred") {
  QueueTalk q;
  q.say("Q.CONFIG q SET lease_ms 60000");
  for (int i = 1; i <= 10; ++i) {
    q.add("j" + std::to_string(i));
    q.pass(20);  // waits
    q.pop();
    q.pass(i * 10);  // runs
    q.ack("j" + std::to_string(i));
  }
  CHECK(q.stat("wait_ms") == "{count=10 p50=20 p95=20 p99=20 max=20 mean=20}");
  CHECK(q.stat("run_ms") == "{count=10 p50=50 p95=100 p99=100 max=100 mean=55}");
  const RespValue normal = line(q.ask("Q.STATS q BY PRI"), "NORMAL");
  CHECK(normal.field("run_ms") == q.stat("run_ms"));
  CHECK(normal.field("wait_ms") == q.stat("wait_ms"));
  CHECK(normal.field("completed") == "10");
}

TEST_CASE("Q.STATS answers after 2^32 jobs that have not waited") {
  QueueTalk q;
  q.add("a b");
  sluice::Histogram zero;
  zero.record(0);
  sluice::Histogram& waits = q.find_queue("q")->stats.all.wait_ms;
  for (int i = 0; i < 32; ++i) {
    waits.merge(zero);
    zero.merge(sluice::Histogram(zero));
  }
  q.pop();
  CHECK(q.stat("wait_ms") == "{count=4294967296 p50=0 p95=0 p99=0 max=0 mean=0}");
  q.pop();
  CHECK(q.stat("wait_ms") == "{count=4294967297 p50=0 p95=0 p99=0 max=0 mean=0}");
}

TEST_CASE("rates are of the window") {
  QueueTalk q;
  for (int i = 0; i < 60; ++i) q.add("j" + std::to_string(i));
  CHECK(q.say("Q.STATS q WINDOW 60000", "rates") == "{added=1 completed=0}");
  q.pass(2000);
  for (int i = 0; i < 10; ++i) {
    q.pop();
    q.ack("j" + std::to_string(i));
  }
  CHECK(q.say("Q.STATS q WINDOW 1000", "rates") == "{added=0 completed=10}");
  CHECK(q.say("Q.STATS q WINDOW 60001") == "-BADFIELD field=window");
  CHECK(q.say("Q.STATS q WINDOW 999") == "-BADFIELD field=window");
}

TEST_CASE("BY PRI has a line for each named or used band, the most urgent first") {
  QueueTalk q;
  q.add("a b", "PRI HIGH");
  q.add("c", "PRI 100");
  q.add("d", "PRI LOW DELAY 50");
  q.add("e", "PRI LOW NEED a");
  q.pass(7);
  q.pop();
  const RespValue all = q.ask("Q.STATS q BY PRI");
  std::string names;
  for (size_t i = 0; i < all.items.size(); i += 2) names += all.items[i].text + " ";
  CHECK(names == "CRITICAL HIGH NORMAL LOW BACKGROUND 100 ");
  const std::vector<std::string> shown = {"pending", "active", "delayed", "blocked",
                                          "waiting", "added",  "started", "oldest_ms"};
  CHECK(fields(line(all, "HIGH"), shown) ==
        "pending=1 active=1 delayed=0 blocked=0 waiting=1 added=2 started=1 oldest_ms=7");
  CHECK(fields(line(all, "LOW"), shown) ==
        "pending=0 active=0 delayed=1 blocked=1 waiting=2 added=2 started=0 oldest_ms=null");
  CHECK(fields(line(all, "BACKGROUND"), shown) ==
        "pending=0 active=0 delayed=0 blocked=0 waiting=0 added=0 started=0 oldest_ms=null");
}

TEST_CASE("BY GROUP and one group") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP big SET max_active 2");
  q.add("a b c", "GROUP big");
  q.add("d", "GROUP small DELAY 50");
  q.add("e", "GROUP small NEED a");
  q.add("f");
  q.pop();
  const std::vector<std::string> shown = {"pending", "active", "delayed",    "blocked",
                                          "waiting", "slots",  "max_active", "utilization"};
  const RespValue all = q.ask("Q.STATS q BY GROUP");
  CHECK(all.size() == 3);
  CHECK(fields(line(all, "big"), shown) ==
        "pending=2 active=1 delayed=0 blocked=0 waiting=2 slots=1 max_active=2 utilization=0.5");
  CHECK(fields(line(all, "small"), shown) ==
        "pending=0 active=0 delayed=1 blocked=1 waiting=2 slots=0 max_active=0 utilization=null");
  CHECK(line(all, "").field("pending") == "1");
  CHECK(q.say("Q.STATS q GROUP big") == line(all, "big").show());
  // A group without jobs.
  CHECK(fields(q.ask("Q.STATS q GROUP nobody"), shown) ==
        "pending=0 active=0 delayed=0 blocked=0 waiting=0 slots=0 max_active=0 utilization=null");
  q.find_queue("q")->check();
}

TEST_CASE("beyond a thousand groups the smallest stand in one line") {
  QueueTalk q;
  q.add("x1 x2 x3", "GROUP largest");
  for (int i = 0; i < 1010; ++i) q.add("j" + std::to_string(i), "GROUP g" + std::to_string(i));
  const RespValue all = q.ask("Q.STATS q BY GROUP");
  CHECK(all.size() == 1001);
  CHECK(all.items[0].text == "largest");
  CHECK(line(all, "*").field("pending") == "11");
  CHECK(line(all, "*").field("waiting") == "11");
}

TEST_CASE("very many groups or keys are read in slices, with other commands in between") {
  constexpr int kMany = 16'000;
  QueueTalk q;
  for (int i = 0; i < kMany; ++i) {
    const std::string number = std::to_string(i);
    q.say("Q.ADD q " + number + " '' GROUP g" + number + " KEY k" + number);
  }
  q.say("Q.ADD q more '' GROUP g4321");
  for (const std::string by : {"GROUP", "KEY"}) {
    CAPTURE(by);
    CHECK(q.say("Q.STATS q BY " + by) == "(waits)");
    CHECK(q.run_some_timers());
    CHECK(q.take_deliveries().empty());
    // One that is lost, one that gives up, and one of a queue that is gone.
    for (const size_t other : {1, 2}) CHECK(q.say_as(other, "Q.STATS q BY " + by) == "(waits)");
    q.disconnect(1);
    CHECK(q.give_up(2));
    q.run_timers();
    const auto told = q.take_deliveries();
    REQUIRE(told.size() == 1);
    const RespValue& lines = told.begin()->second;
    CHECK(lines.size() == 1001);
    CHECK(line(lines, "*").field("slots") == "0");
    if (by == "GROUP") {
      CHECK(lines.items[0].text == "g4321");
      CHECK(line(lines, "*").field("pending") == std::to_string(kMany - 1000));
    }
    // A transaction cannot wait.
    q.say("MULTI");
    q.say("Q.STATS q BY " + by);
    CHECK(q.ask("EXEC").items.at(0).show() == lines.show());
  }
  CHECK(q.say("Q.STATS q BY GROUP") == "(waits)");
  q.say("DEL q");
  q.run_timers();
  CHECK(q.take_deliveries().size() == 1);
  CHECK(q.say("Q.STATS q BY GROUP") == "{}");
}

TEST_CASE("a band without a name or jobs has no line, before a restart as after it") {
  QueueTalk q;
  q.add("a", "PRI 77");
  q.add("b", "PRI 78");
  CHECK(q.stat("by_priority") == "{CRITICAL=0 HIGH=0 NORMAL=0 LOW=0 BACKGROUND=0 77=1 78=1}");
  q.pop();
  q.ack("a");
  q.say("Q.CONFIG q SET max_active 1");
  q.pop();
  const std::string shown = q.stat("by_priority");
  CHECK(shown == "{CRITICAL=0 HIGH=0 NORMAL=0 LOW=0 BACKGROUND=0 78=0}");
  q.restart(1);
  CHECK(q.stat("by_priority") == shown);
  q.restart_from_checkpoint(1);
  CHECK(q.stat("by_priority") == shown);
}

TEST_CASE("BY TAG counts the jobs of each value") {
  QueueTalk q;
  q.add("a b", "TAG lang python");
  q.add("c", "TAG lang java TAG tier free");
  q.pop();
  q.pass(5);
  RespValue all = q.ask("Q.STATS q BY TAG lang");
  CHECK(all.size() == 2);
  CHECK(fields(line(all, "python"), {"pending", "active", "added", "started", "completed"}) ==
        "pending=1 active=1 added=2 started=1 completed=0");
  q.ack("a");
  CHECK(fields(line(q.ask("Q.STATS q BY TAG lang"), "python"), {"active", "completed"}) ==
        "active=0 completed=1");
  CHECK(line(q.ask("Q.STATS q BY TAG lang"), "python").field("run_ms") ==
        "{count=1 p50=5 p95=5 p99=5 max=5 mean=5}");
  CHECK(line(q.ask("Q.STATS q BY TAG tier"), "free").field("pending") == "1");
  CHECK(q.say("Q.STATS q BY TAG nothing") == "{}");
  // An update may change a tag.
  q.say("Q.ADD q b x IFDUP UPDATE TAG lang java");
  all = q.ask("Q.STATS q BY TAG lang");
  CHECK(line(all, "python").field("pending") == "0");
  CHECK(line(all, "java").field("pending") == "2");
}

TEST_CASE("BY WORKER shows who holds leases") {
  QueueTalk q;
  q.add("a b c");
  q.pop("WORKER w1");
  q.pass(30);
  q.pop("WORKER w1");
  q.pop();
  const auto shown = [&] {
    const RespValue lines = q.ask("Q.STATS q BY WORKER");
    REQUIRE(lines.size() == 1);
    const RespValue w1 = line(lines, "w1");
    return w1.field("active") + " " + w1.field("oldest_run_ms");
  };
  CHECK(shown() == "2 30");
  q.ack("a");
  CHECK(shown() == "1 0");
  q.ack("b");
  CHECK(shown() == "0 0");
}

// Names on the pages of a walk, in the order of the replies.
std::vector<std::string> walk(
    QueueTalk& q, const std::string& by, int count, const std::function<void()>& between = [] {}) {
  std::vector<std::string> names;
  std::string cursor = "0";
  do {
    const RespValue page =
        q.ask("Q.STATS q BY " + by + " CURSOR " + cursor + " COUNT " + std::to_string(count));
    REQUIRE(page.items.size() == 2);
    const bool in_one_page = by == "PRI";
    CHECK((in_one_page || page.items[1].size() <= static_cast<size_t>(count)));
    for (size_t i = 0; i < page.items[1].items.size(); i += 2) {
      names.push_back(page.items[1].items[i].text);
    }
    cursor = page.items[0].text;
    between();
  } while (cursor != "0");
  return names;
}

bool has_once(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) == 1;
}

TEST_CASE("page by page every group is told once, whatever comes and goes") {
  QueueTalk q;
  const auto group = [](const char* kind, int i) { return kind + std::to_string(i); };
  for (int i = 0; i < 2000; ++i) q.add("s" + std::to_string(i), "GROUP " + group("stays", i));
  for (int i = 0; i < 500; ++i) q.add("g" + std::to_string(i), "GROUP " + group("goes", i));
  int came = 0;
  int gone = 0;
  const std::vector<std::string> names = walk(q, "GROUP", 50, [&] {
    for (int i = 0; i < 100; ++i, ++came) {
      q.add("n" + std::to_string(came), "GROUP " + group("comes", came));
    }
    for (int i = 0; i < 10 && gone < 500; ++i) q.say("Q.CANCEL q g" + std::to_string(gone++));
  });
  CHECK(came > 2000);
  for (int i = 0; i < 2000; ++i) CHECK(has_once(names, group("stays", i)));
  const std::set<std::string> once(names.begin(), names.end());
  CHECK(once.size() == names.size());
  q.find_queue("q")->check();
}

TEST_CASE("a page has the lines of the whole") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP big SET max_active 2");
  q.add("a b c", "GROUP big TAG lang python KEY k1");
  q.add("d", "GROUP small TAG lang java KEY k2");
  q.add("e f", "TAG lang c");
  q.pop("WORKER w1");
  q.pop("WORKER w2");
  for (const char* by : {"PRI", "GROUP", "KEY", "TAG lang", "WORKER"}) {
    const std::string words = std::string("Q.STATS q BY ") + by;
    const RespValue whole = q.ask(words);
    const RespValue page = q.ask(words + " CURSOR 0 COUNT 1000");
    CHECK_MESSAGE(page.items[0].text == "0", by);
    CHECK_MESSAGE(page.items[1].size() == whole.size(), by);
    for (size_t i = 0; i < whole.items.size(); i += 2) {
      const std::string& name = whole.items[i].text;
      CHECK_MESSAGE(line(page.items[1], name).show() == line(whole, name).show(), name);
    }
    CHECK_MESSAGE(walk(q, by, 1).size() == whole.size(), by);
  }
  CHECK(walk(q, "TAG lang", 2) == std::vector<std::string>{"c", "java", "python"});
  CHECK(q.say("Q.STATS q BY TAG nothing CURSOR 0") == "[0 {}]");
  CHECK(q.say("Q.STATS nothing BY GROUP CURSOR 0") == "[0 {}]");
  CHECK(q.say("Q.STATS nothing BY KEY") == "{}");
  q.session(0).client.protocol = 2;
  const RespValue flat = q.ask("Q.STATS q BY WORKER CURSOR 0");
  REQUIRE(flat.items.size() == 2);
  CHECK(flat.items[1].items.size() == 4);
  CHECK(line(flat.items[1], "w2").field("active") == "1");
}

TEST_CASE("a standby that takes over has counted no lost lease as a run") {
  QueueTalk q;
  q.begin_following();
  q.add("a");
  q.pop("LEASE 1000");
  q.pass(1000);
  q.take_over(4);
  CHECK(q.stat("reclaimed") == "1");
  CHECK(q.stat("run_ms").starts_with("{count=0 "));
}

TEST_CASE("a standby that takes over has counted each end once, whatever is forgotten afterwards") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 3");
  q.begin_following();
  q.add("a b c d e f", "PRI HIGH TAG lang c");
  q.say("Q.CANCEL q f");
  CHECK(q.drain() == "a b c d e");
  CHECK(q.say("Q.PURGE q WHERE ALL") == "[0 3]");
  q.take_over(4);
  for (const RespValue& ended :
       {line(q.ask("Q.STATS q BY PRI"), "HIGH"), line(q.ask("Q.STATS q BY TAG lang"), "c")}) {
    CHECK(fields(ended, {"added", "completed", "cancelled"}) == "added=6 completed=5 cancelled=1");
  }
}

TEST_CASE("BY KEY shows slots, those with the most in use first") {
  QueueTalk q;
  q.say("Q.CONFIG q KEY busy SET max_active 4");
  q.add("a b", "KEY busy");
  q.add("c", "KEY idle");
  q.pop();
  q.pop();
  CHECK(q.say("Q.STATS q BY KEY") ==
        "{busy={slots=2 max_active=4 utilization=0.5} "
        "idle={slots=0 max_active=0 utilization=null}}");
  q.ack("a");
  q.ack("b");
  q.say("Q.CANCEL q c");
  // Ended jobs keep theirs as long as they are retained.
  CHECK(q.ask("Q.STATS q BY KEY").size() == 2);
  q.say("Q.PURGE q WHERE ALL");
  CHECK(q.say("Q.STATS q BY KEY") == "{}");
  for (int i = 0; i < 1010; ++i) q.add("j" + std::to_string(i), "KEY k" + std::to_string(i));
  const RespValue all = q.ask("Q.STATS q BY KEY");
  CHECK(all.size() == 1001);
  CHECK(line(all, "*").field("slots") == "0");
}

TEST_CASE("bad pages") {
  QueueTalk q;
  q.add("a", "GROUP g TAG t v");
  for (const char* options : {"CURSOR 0", "COUNT 5", "BY GROUP COUNT 5", "GROUP g CURSOR 0",
                              "BY GROUP CURSOR", "GROUP g COUNT 5 CURSOR 0"}) {
    CHECK_MESSAGE(q.say(std::string("Q.STATS q ") + options) == "-ERR syntax error", options);
  }
  for (const char* by : {"GROUP", "PRI", "KEY", "WORKER", "TAG t"}) {
    const std::string words = std::string("Q.STATS q BY ") + by;
    for (const char* cursor : {"x", "-1", "''"}) {
      CHECK_MESSAGE(q.say(words + " CURSOR " + cursor) == "-ERR invalid cursor", by, " ", cursor);
    }
    for (const char* count : {"0", "1001", "x"}) {
      CHECK(q.say(words + " CURSOR 0 COUNT " + count) == "-BADFIELD field=count");
    }
  }
}

TEST_CASE("bad arguments") {
  QueueTalk q;
  for (const char* options : {"NOTHING", "BY", "BY NOTHING", "BY TAG", "GROUP", "BY PRI BY GROUP",
                              "GROUP g BY PRI", "WINDOW"}) {
    CHECK_MESSAGE(q.say(std::string("Q.STATS q ") + options) == "-ERR syntax error", options);
  }
  CHECK(q.say("Q.STATS q BY PRI WINDOW x") == "-BADFIELD field=window");
}

TEST_CASE("RESP2 gets flat arrays") {
  QueueTalk q;
  q.session(0).client.protocol = 2;
  const RespValue reply = q.ask("Q.STATS q");
  CHECK(reply.kind == RespValue::Kind::kArray);
  CHECK(reply.items.size() == 50);
  CHECK(reply.field("rates") == "[added 0 completed 0]");
}

TEST_CASE("a restart brings gauges and totals back") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 5");
  q.add("a b c d", "GROUP g TAG lang c");
  q.add("e", "DELAY 100000 GROUP g");
  q.pop("WORKER w");
  q.pop("WORKER w");
  q.ack("a");
  const std::vector<std::string> shown = {"pending", "active",  "delayed",   "waiting",    "slots",
                                          "added",   "started", "completed", "by_priority"};
  const std::string before = fields(q.ask("Q.STATS q"), shown);
  const std::string group = q.say("Q.STATS q GROUP g");
  q.restart(4);
  CHECK(fields(q.ask("Q.STATS q"), shown) == before);
  CHECK(q.say("Q.STATS q GROUP g") == group);
  CHECK(fields(line(q.ask("Q.STATS q BY TAG lang"), "c"), {"pending", "active"}) ==
        "pending=2 active=1");
  CHECK(line(q.ask("Q.STATS q BY WORKER"), "w").field("active") == "1");
}

}  // namespace
