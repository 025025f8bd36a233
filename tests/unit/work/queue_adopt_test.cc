// Q.ADOPT: a queue over plain Redis keys, driven by the raw commands of its clients.
#include <string>

#include "tests/support/adopted_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::Adopted;
using sluice::test::kFive;
using sluice::test::kUnit;
using sluice::test::QueueTalk;
using sluice::test::RespValue;

TEST_CASE("the counts of five keys are their sizes, band by band") {
  Adopted q(kFive);
  CHECK(q.by_priority() == "{CRITICAL=0 HIGH=0 NORMAL=0 LOW=0 BACKGROUND=0}");
  q.say("ZADD p:critical " + q.at_s(0) + " a");
  q.say("ZADD p:normal " + q.at_s(1) + " b " + q.at_s(2) + " c");
  q.say("ZADD p:background " + q.at_s(3) + " d");
  q.say("SADD act x");
  CHECK(q.by_priority() == "{CRITICAL=1 HIGH=0 NORMAL=2 LOW=0 BACKGROUND=1}");
  CHECK(q.stat("pending") == "4");
  CHECK(q.stat("waiting") == "4");
  CHECK(q.stat("active") == "1");
  CHECK(q.stat("added") == "4");
  CHECK(q.stat("started") == "1");
}

TEST_CASE("with UNIT the band is the nearest integer to (score - now) / unit") {
  Adopted q(kUnit);
  for (int band = 0; band < 5; ++band) {
    for (int job = 0; job <= band; ++job) {
      q.say("ZADD pend " + q.at_ms(band, -job) + " " + std::to_string(band * 10 + job));
    }
  }
  CHECK(q.by_priority() == "{CRITICAL=1 HIGH=2 NORMAL=3 LOW=4 BACKGROUND=5}");
  // The documented ranges give the same result as in Redis: one band off.
  CHECK(q.say("ZCOUNT pend 0 999999999999") == "0");
  CHECK(q.job("11", {"state", "pri", "position", "enqueued"}) ==
        "pending HIGH 1 " + q.at_ms(0, -1));
  CHECK(q.say("Q.STATS q BY PRI", "BACKGROUND").find("{pending=5 ") == 0);
  // A year later they are in the same bands.
  q.pass(365LL * 24 * 3600 * 1000);
  CHECK(q.by_priority() == "{CRITICAL=1 HIGH=2 NORMAL=3 LOW=4 BACKGROUND=5}");
}

TEST_CASE("a job's life: added, started with its wait, completed with its run") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SET ev:a payload EX 86400");
  q.pass(1500);
  CHECK(q.stat("oldest_ms") == "1500");
  CHECK(q.schedule_five() == "a");
  CHECK(q.job("a", {"state", "pri", "started", "payload", "attempts", "position"}) ==
        "active HIGH 1700000001500 payload 1 null");
  q.pass(700);
  q.say("SREM act a");
  CHECK(q.say("Q.GET q a") == "null");
  CHECK(q.events() == "added:a started:a completed:a");
  CHECK(q.ask("Q.STATS q").field("wait_ms").find("{count=1 p50=15") == 0);
  CHECK(q.ask("Q.STATS q").field("run_ms").find("{count=1 p50=70") == 0);
  CHECK(q.stat("completed") == "1");
}

TEST_CASE("one unit that adds and takes a job tells both; one that undoes itself tells nothing") {
  Adopted q(kFive);
  q.say("MULTI");
  q.say("ZADD p:low " + q.at_s(0) + " a");
  q.say("ZREM p:low a");
  q.say("SADD act a");
  q.say("ZADD p:low " + q.at_s(0) + " b");
  q.say("ZREM p:low b");
  q.say("EXEC");
  CHECK(q.events() == "added:a started:a");
  CHECK(q.stat("pending") == "0");
}

TEST_CASE("a score or a key that changes is a move, a member that goes back is returned") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " a");
  q.say("ZADD p:low " + q.at_s(5) + " a");
  q.say("ZADD p:low " + q.at_s(5) + " a");
  q.say("MULTI");
  q.say("ZREM p:low a");
  q.say("ZADD p:high " + q.at_s(5) + " a");
  q.say("EXEC");
  q.say("MULTI");
  q.say("ZREM p:high a");
  q.say("SADD act a");
  q.say("EXEC");
  q.say("MULTI");
  q.say("SREM act a");
  q.say("ZADD p:high " + q.at_s(5) + " a");
  q.say("EXEC");
  q.say("ZREM p:high a");
  CHECK(q.events() == "added:a moved:a moved:a started:a returned:a cancelled:a");
}

TEST_CASE("a running member that a transaction removes and adds again has not ended") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " a");
  CHECK(q.schedule_five() == "a");
  q.say("MULTI");
  q.say("SREM act a");
  q.say("SADD act a");
  q.say("EXEC");
  CHECK(q.events() == "added:a started:a");
}

TEST_CASE("a running member that is also in a pending key counts as running") {
  Adopted q(kFive);
  q.say("SADD act a");
  q.say("ZADD p:low 1700000001 b 1700000002 a");
  CHECK(q.list() == "b a");
  CHECK(q.list("WHERE STATE pending") == "b");
  CHECK(q.say("Q.MOVE q a FRONT") == "null");
  CHECK(q.say("ZSCORE p:low a") == "1700000002");
  CHECK(q.say("Q.CANCEL q WHERE STATE pending") == "[0 1]");
  CHECK(q.state("a") == "active");
}

TEST_CASE("Q.MOVE keeps the time part of the score; FRONT is the smallest score less one") {
  Adopted q(kUnit);
  q.say("ZADD pend " + q.at_ms(3, 7) + " a " + q.at_ms(1, 0) + " b " + q.at_ms(1, 1) + " c");
  CHECK(q.say("Q.MOVE q a PRI HIGH") == "2");
  CHECK(q.say("ZSCORE pend a") == q.at_ms(1, 7));
  CHECK(q.say("Q.MOVE q a FRONT") == "0");
  CHECK(q.say("ZSCORE pend a") == q.at_ms(1, -1));
  CHECK(q.say("Q.MOVE q a FRONT") == "0");
  CHECK(q.say("ZSCORE pend a") == q.at_ms(1, -1));
  for (int i = 0; i < 2; ++i) {
    CHECK(q.say("Q.MOVE q a BACK") == "2");
    CHECK(q.say("ZSCORE pend a") == q.at_ms(1, 2));
  }
  CHECK(q.say("Q.MOVE q a PRI CRITICAL FRONT") == "0");
  CHECK(q.say("ZSCORE pend a") == q.at_ms(0, 2));
  CHECK(q.say("Q.MOVE q nobody FRONT") == "null");
  q.say("SADD act x");
  CHECK(q.say("Q.MOVE q x FRONT") == "null");
}

TEST_CASE("Q.MOVE between keys, and to bands that are not there") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(3) + " a");
  q.say("ZADD p:high " + q.at_s(0) + " b");
  CHECK(q.say("Q.MOVE q a PRI HIGH") == "1");
  CHECK(q.say("EXISTS p:low") == "0");
  CHECK(q.say("ZSCORE p:high a") == "1700000000.003");
  CHECK(q.say("Q.MOVE q a PRI CRITICAL") == "0");
  CHECK(q.say("ZRANGE p:critical 0 -1") == "[a]");
  CHECK(q.say("Q.MOVE q a PRI 5") == "-BADFIELD field=pri");
  CHECK(q.say("Q.MOVE q a DELAY 5") == "-ADOPTED");
  CHECK(q.say("Q.MOVE q a BOOST 5") == "-ADOPTED");
  CHECK(q.say("Q.MOVE q a AT 1700000009000") == "-ADOPTED");
}

TEST_CASE("Q.MOVE BACK to a band without members goes to that band") {
  Adopted q(kUnit);
  q.say("ZADD pend " + q.at_ms(1, 0) + " a " + q.at_ms(2, 0) + " b " + q.at_ms(2, 9) + " c");
  CHECK(q.say("Q.MOVE q a PRI LOW BACK") == "2");
  CHECK(q.say("ZSCORE pend a") == q.at_ms(3, 0));
  CHECK(q.job("a", {"pri"}) == "LOW");
}

TEST_CASE("Q.MOVE goes past scores that one more or one less does not change") {
  Adopted q(kFive);
  q.say("ZADD p:low 1e17 z 1 a");
  CHECK(q.say("Q.MOVE q a BACK") == "1");
  q.say("ZADD p:high 1e17 b 2e17 c");
  CHECK(q.say("Q.MOVE q c FRONT") == "0");
}

TEST_CASE("a queue with one key and without UNIT has one band") {
  QueueTalk q;
  CHECK(q.say("Q.ADOPT q PENDING p ACTIVE act") == "OK");
  q.say("ZADD p 1 x 2 y");
  CHECK(q.stat("by_priority") == "{NORMAL=2}");
  CHECK(q.say("Q.MOVE q x PRI HIGH") == "-BADFIELD field=pri");
}

TEST_CASE("Q.CANCEL takes a job out of the keys, with its payload") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " a " + q.at_s(1) + " b");
  q.say("SADD act c");
  for (const char* id : {"a", "b", "c"}) q.say(std::string("SET ev:") + id + " x");
  CHECK(q.say("Q.CANCEL q a REASON why") == "cancelled");
  CHECK(q.say("Q.CANCEL q a") == "gone");
  CHECK(q.say("Q.CANCEL q c") == "cancelled");
  CHECK(q.say("ZRANGE p:low 0 -1") == "[b]");
  CHECK(q.say("EXISTS act ev:a ev:b ev:c") == "1");
  CHECK(q.events() == "added:a added:b started:c cancelled:a cancelled:c");
  CHECK(q.stat("cancelled") == "2");
  q.say("ZADD p:high " + q.at_s(2) + " d");
  CHECK(q.say("Q.CANCEL q WHERE PRI HIGH") == "[0 1]");
  CHECK(q.say("Q.CANCEL q WHERE ALL") == "[0 1]");
  CHECK(q.say("KEYS *") == "[q]");
}

TEST_CASE("Q.CANCEL WHERE PRI takes jobs of that band only, pending or active") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " low");
  CHECK(q.schedule_five() == "low");
  q.say("ZADD p:high " + q.at_s(0) + " high");
  CHECK(q.list("WHERE PRI HIGH") == "high");
  CHECK(q.say("Q.CANCEL q WHERE PRI HIGH") == "[0 1]");
  CHECK(q.list() == "low");
  CHECK(q.say("Q.CANCEL q WHERE PRI LOW") == "[0 1]");
  CHECK(q.list() == "");
}

TEST_CASE("Q.CANCEL WHERE takes up to LIMIT members") {
  Adopted q(kFive);
  q.say("ZADD p:low 1 a 2 b 3 c");
  CHECK(q.ask("Q.CANCEL q WHERE ALL LIMIT 1").items.at(1).show() == "1");
  CHECK(q.list() == "b c");
}

TEST_CASE("members have no tags, keys, workers or errors: who selects by them selects none") {
  Adopted q(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " a");
  q.say("SADD act b");
  for (const char* selector : {"TAG t x", "KEY k", "WORKER w", "ERROR e", "PATTERN e"}) {
    CHECK_MESSAGE(q.say(std::string("Q.CANCEL q WHERE ") + selector) == "[0 0]", selector);
  }
  CHECK(q.list() == "a b");
}

TEST_CASE("a member whose score is no time is selected by no time") {
  Adopted q(kFive);
  q.say("ZADD p:low 5 unknown " + q.at_s(0) + " known");
  CHECK(q.list("WHERE SINCE 1600000000000") == "known");
  CHECK(q.list("WHERE UNTIL 1800000000000") == "known");
  CHECK(q.say("Q.CANCEL q WHERE SINCE 1600000000000") == "[0 1]");
  CHECK(q.list() == "unknown");
}

TEST_CASE("what needs a queue of its own answers ADOPTED; raw commands stay as they are") {
  Adopted q(kFive);
  for (const char* line :
       {"Q.ADD q a x", "Q.POP 1 q", "Q.POP 2 other q BLOCK 10", "Q.ACK q a 1", "Q.NACK q a 1",
        "Q.TOUCH q a 1", "Q.RETRY q a", "Q.RETRY q WHERE ALL", "Q.PURGE q WHERE ALL"}) {
    CHECK_MESSAGE(q.say(line) == "-ADOPTED", line);
  }
  CHECK(q.say("TYPE q") == "queue");
  CHECK(q.say("TYPE p:low") == "none");
  CHECK(q.say("GET q").rfind("-WRONGTYPE", 0) == 0);
  CHECK(q.say("Q.CONFIG q SET max_active 10") == "OK");
  q.say("SADD act a b c d e");
  CHECK(q.stat("utilization") == "0.5");
}

TEST_CASE("Q.ADOPT refuses what it cannot show") {
  QueueTalk q;
  q.say("Q.ADD jobs a x");
  q.say("SET s x");
  CHECK(q.say("Q.ADOPT q PENDING p ACTIVE a") == "OK");
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"Q.ADOPT x PENDING p2", "-ERR syntax error"},
      {"Q.ADOPT x ACTIVE a2", "-ERR syntax error"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 ACTIVE a3", "-ERR syntax error"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 NOSUCH 1", "-ERR syntax error"},
      {"Q.ADOPT x OFF now", "-ERR syntax error"},
      {"Q.ADOPT x PENDING p2 PENDING p2 ACTIVE a2", "-BADFIELD field=pending"},
      {"Q.ADOPT x PENDING p2 ACTIVE p2", "-BADFIELD field=active"},
      {"Q.ADOPT x PENDING x ACTIVE a2", "-BADFIELD field=pending"},
      {"Q.ADOPT x PENDING p ACTIVE a2", "-BADFIELD field=pending"},
      {"Q.ADOPT x PENDING p2 ACTIVE a", "-BADFIELD field=active"},
      {"Q.ADOPT p PENDING p2 ACTIVE a2", "-BADFIELD field=queue"},
      {"Q.ADOPT jobs PENDING p2 ACTIVE a2", "-BADFIELD field=queue"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 UNIT 0", "-BADFIELD field=unit"},
      {"Q.ADOPT x PENDING p2 PENDING p3 ACTIVE a2 UNIT 5", "-BADFIELD field=unit"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 LEASE 99", "-BADFIELD field=lease"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 LEASE 604800001", "-BADFIELD field=lease"},
      {"Q.ADOPT x PENDING p2 ACTIVE a2 PAYLOAD ''", "-BADFIELD field=payload"}};
  for (const auto& [line, error] : wrong) CHECK_MESSAGE(q.say(line) == error, line);
  CHECK(q.say("Q.ADOPT x PENDING s ACTIVE a2").rfind("-WRONGTYPE", 0) == 0);
  CHECK(q.say("Q.ADOPT s PENDING p2 ACTIVE a2").rfind("-WRONGTYPE", 0) == 0);
  CHECK(q.say("EXISTS x") == "0");
  CHECK(q.say("Q.ADOPT q PENDING p ACTIVE a LEASE 1000") == "OK");
  CHECK(q.say("Q.ADOPT x OFF") == "OK");
}

TEST_CASE("a queue adopts up to 256 keys of waiting jobs") {
  QueueTalk q;
  std::string adopt = "Q.ADOPT q ACTIVE act";
  for (int key = 0; key < 256; ++key) adopt += " PENDING p" + std::to_string(key);
  CHECK(q.say(adopt + " PENDING more") == "-BADFIELD field=pending");
  CHECK(q.say(adopt) == "OK");
  q.say("ZADD p255 1 a");
  q.restart(4);
  CHECK(q.job("a", {"state", "pri"}) == "pending 255");
}

TEST_CASE("the keys that Q.ADOPT names are keys for whoever asks: users' rights go by them") {
  QueueTalk q;
  CHECK(q.say("COMMAND GETKEYS Q.ADOPT q PENDING ACTIVE PENDING b ACTIVE c PAYLOAD PENDING") ==
        "[q ACTIVE b c]");
  CHECK(q.say("COMMAND GETKEYS Q.ADOPT q OFF") == "[q]");
}

TEST_CASE("OFF gives an ordinary queue with the same totals, and the keys are free") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  CHECK(q.say("Q.ADOPT q OFF") == "OK");
  CHECK(q.stat("pending") == "0");
  CHECK(q.stat("added") == "1");
  q.say("ZADD p:high " + q.at_s(0) + " b");
  CHECK(q.events() == "added:a");
  CHECK(q.say("Q.ADD q j x", "result") == "added");
  CHECK(q.say("Q.ADOPT other PENDING p:high ACTIVE act") == "OK");
  CHECK(q.engine().adopted().queues.load() == 1);
}

TEST_CASE("Q.LIST walks pending members by band and score, then active ones, page by page") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(1) + " h2 " + q.at_s(0) + " h1");
  q.say("ZADD p:low " + q.at_s(0) + " l1");
  q.say("SADD act a2");
  q.pass(10);
  q.say("SADD act a1");
  CHECK(q.list() == "h1 h2 l1 a2 a1");
  std::string all;
  std::string cursor = "0";
  do {
    all += q.list("COUNT 1 CURSOR " + cursor) + ";";
    cursor = q.cursor();
  } while (cursor != "0" && all.size() < 100);
  CHECK(all.find("h1;h2;l1;a2;a1;") != std::string::npos);
  const RespValue brief = q.ask("Q.LIST q BRIEF").items.at(1);
  REQUIRE(brief.size() == 5);
  CHECK(brief.items[0].items.size() == 6);
  CHECK(brief.items[0].field("id") == "h1");
  CHECK(brief.items[0].field("state") == "pending");
  CHECK(brief.items[0].field("enqueued") == "1700000000000");
  CHECK(brief.items[4].field("state") == "active");
  CHECK(q.list("WHERE PRI HIGH STATE pending") == "h1 h2");
  CHECK(q.list("WHERE STATE active BY AGE") == "a2 a1");
  CHECK(q.list("BY DEADLINE") == "a2 a1");
  CHECK(q.list("BY RANK") == "h1 h2 l1");
  CHECK(q.list("WHERE OLDER 5") == "h1 h2 l1 a2");
  CHECK(q.list("WHERE GROUP *") == "");
  CHECK(q.say("Q.LIST q CURSOR zz") == "-ERR invalid cursor");
}

TEST_CASE("a page of Q.LIST ends at four megabytes of payloads") {
  Adopted q(kFive);
  for (const std::string id : {"a", "b", "c", "d", "e", "f"}) {
    q.say("ZADD p:high " + q.at_s(0) + " " + id);
    q.say("SET ev:" + id + " " + std::string(900'000, 'x'));
  }
  CHECK(q.list("COUNT 100") == "a b c d e f");
  CHECK(q.list("COUNT 100 WITH payload") == "a b c d e");
  CHECK(q.list("COUNT 100 WITH payload CURSOR " + q.cursor()) == "f");
  CHECK(q.cursor() == "0");
}

TEST_CASE("a page of Q.LIST ends after LOOK members, also when none matches") {
  Adopted q(kFive);
  for (int i = 0; i < 3; ++i) {
    q.say("ZADD p:low 1 p" + std::to_string(i));
    q.say("SADD act a" + std::to_string(i));
  }
  for (const std::string state : {"pending", "active"}) {
    const RespValue page = q.ask("Q.LIST q LOOK 2 WHERE IDPART none STATE " + state);
    CHECK(page.items.at(0).text != "0");
    CHECK(page.items.at(2).show() == "2");
    CHECK(q.say("Q.LIST q LOOK 2 CURSOR " + page.items.at(0).text + " WHERE IDPART none STATE " +
                state) == "[0 [] 1]");
  }
}

TEST_CASE("a member whose name is a reserved word is shown; WHERE is cancelled by a selector") {
  Adopted q(kFive);
  q.run(0, {"ZADD", "p:high", q.at_s(0), "where", q.at_s(1), "*", q.at_s(2), "all", q.at_s(3), ""});
  CHECK(q.stat("pending") == "4");
  for (const char* id : {"where", "*", "all", ""}) {
    CHECK(q.run(0, {"Q.GET", "q", id})->field("state") == "pending");
  }
  CHECK(q.say("Q.GET q ALL") == "-BADFIELD field=id");
  CHECK(q.say("Q.CANCEL q where").rfind("-ERR syntax error, WHERE takes", 0) == 0);
  CHECK(q.say("Q.CANCEL q *") == "cancelled");
  CHECK(q.say("Q.CANCEL q all") == "cancelled");
  CHECK(q.stat("pending") == "2");
  CHECK(q.say("Q.CANCEL q WHERE PRI HIGH") == "[0 2]");
}

TEST_CASE("Q.EVENTS BLOCK hears of a raw command, Q.GET WAIT of the end of a member") {
  Adopted q(kFive);
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.say("ZADD p:high " + q.at_s(0) + " a");
  auto told = q.take_deliveries();
  REQUIRE(told.count(1) == 1);
  CHECK(told[1].items.at(0).items.at(2).text == "added");
  CHECK(q.say_as(2, "Q.GET q a WAIT 0") == "(waits)");
  CHECK(q.say_as(1, "Q.EVENTS q $ TYPE completed BLOCK 0") == "(waits)");
  CHECK(q.say_as(3, "Q.EVENTS q $ ID b BLOCK 0") == "(waits)");
  CHECK(q.schedule_five() == "a");
  CHECK(q.take_deliveries().empty());
  q.say("SREM act a");
  told = q.take_deliveries();
  REQUIRE(told.size() == 2);
  REQUIRE(told.count(2) == 1);
  CHECK(told[2].is_null());
  CHECK(told[1].items.at(0).items.at(3).text == "a");
  q.say("ZADD p:low " + q.at_s(0) + " b");
  CHECK(q.take_deliveries()[3].items.at(0).items.at(3).text == "b");
  CHECK(q.say("Q.GET q a WAIT 0") == "null");
}

TEST_CASE("what raw commands do while events is 0 is not passed over silently") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  CHECK(q.say_as(1, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  q.say("Q.CONFIG q SET events 0");
  q.say("ZADD p:high " + q.at_s(0) + " b");
  CHECK(q.take_deliveries().at(1).show() == "-TRIMMED oldest=3");
  q.say("Q.CONFIG q SET events 10");
  q.say("ZADD p:high " + q.at_s(0) + " c");
  CHECK(q.events() == "added:c");
  CHECK(q.say("Q.EVENTS q 1") == "-TRIMMED oldest=3");
}

TEST_CASE("of the events of raw commands as many are kept as `events` says") {
  Adopted q(kFive);
  q.say("Q.CONFIG q SET events 3");
  for (const char* id : {"a", "b", "c", "d", "e"}) q.say(std::string("ZADD p:low 1 ") + id);
  CHECK(q.events() == "added:c added:d added:e");
  CHECK(q.say("Q.EVENTS q 1") == "-TRIMMED oldest=3");
}

TEST_CASE("WATCH on the queue sees a change of its keys, and who waits in BZPOPMIN is served") {
  Adopted q(kFive);
  q.say_as(1, "WATCH q");
  q.say_as(1, "MULTI");
  q.say_as(1, "PING");
  CHECK(q.say_as(2, "BZPOPMIN p:high 0") == "(waits)");
  q.say("ZADD p:high " + q.at_s(0) + " a");
  CHECK(q.take_deliveries().count(2) == 1);
  CHECK(q.say_as(1, "EXEC") == "null");
  CHECK(q.stat("pending") == "0");
  CHECK(q.events() == "added:a cancelled:a");
}

TEST_CASE("Q.* on an adopted queue in MULTI and from Lua") {
  Adopted q(kFive);
  q.say("MULTI");
  q.say("ZADD p:high " + q.at_s(0) + " a " + q.at_s(1) + " b");
  q.say("Q.MOVE q b FRONT");
  q.say("Q.CANCEL q a");
  const std::string done = q.say("EXEC");
  CHECK(done == "[2 0 cancelled]");
  CHECK(q.say("EVAL return{redis.call('Q.MOVE',KEYS[1],'b','PRI','LOW')} 1 q") == "[0]");
  CHECK(q.say("ZCARD p:low") == "1");
}

TEST_CASE("a script may use an adopted queue that it has not named") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  const std::string script = "#!lua\nreturn redis.call('Q.CANCEL', 'q', 'a')";
  CHECK(q.run(0, {"EVAL", script, "1", "other"})->show() == "cancelled");
  CHECK(q.say("EXISTS p:high") == "0");
  CHECK(q.events() == "added:a cancelled:a");
}

TEST_CASE("the adoption, its members and its events outlive a restart; leases begin anew") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " a " + q.at_s(1) + " b " + q.at_s(2) + " c");
  q.pass(10);
  CHECK(q.schedule_five() == "a");
  CHECK(q.schedule_five() == "b");
  q.pass(1000);
  CHECK(q.schedule_five() == "a");
  q.pass(400);
  const std::vector<std::string> queues = {"q"};
  const std::vector<std::string> ids = {"a", "b", "c"};
  const auto before = q.describe(queues, ids);
  CHECK(q.describe_replayed(q.units(), queues, ids) == before);
  CHECK(q.describe_walked(queues, ids) == before);
  q.restart(4);
  CHECK(q.describe(queues, ids) == before);
  CHECK(q.engine().adopted().queues.load() == 1);
  q.pass(700);
  CHECK(q.job("a", {"state", "crashes"}) == "active 1");
  q.pass(300);
  CHECK(q.say("Q.GET q a") == "null");
  CHECK(q.stat("failed") == "1");
  q.say("ZADD p:low " + q.at_s(0) + " d");
  CHECK(q.stat("added") == "4");
  q.say("Q.ADOPT q OFF");
  q.restart(4);
  CHECK(q.engine().adopted().queues.load() == 0);
  CHECK(q.stat("pending") == "0");
}

TEST_CASE("every prefix of the journal of an adopted queue is a legal state") {
  Adopted q(std::string(kUnit) + "LEASE 1000");
  for (int round = 0; round < 3; ++round) {
    q.say("ZADD pend " + q.at_ms(round, 0) + " j" + std::to_string(round));
    q.say("MULTI");
    q.say("ZPOPMIN pend");
    q.say("SADD act j" + std::to_string(round));
    q.say("EXEC");
    q.pass(600);
  }
  q.say("RENAME q other_name");
  q.say("RENAME other_name q");
  q.say("DEL act");
  q.say("Q.ADOPT q PENDING pend ACTIVE other UNIT 1000000000000");
  for (sluice::Lsn units = 1; units <= q.units(); ++units) {
    CHECK(q.describe_replayed(units, {"q"}, {"j0", "j1", "j2"}).size() == 9);
  }
}

}  // namespace
