// Q.ADOPT: what becomes of a queue when its keys, or the queue itself, are deleted, moved or
// renamed.
#include <string>

#include "engine/queue/adopted_keys.h"
#include "tests/support/adopted_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::Adopted;
using sluice::test::kFive;
using sluice::test::kUnit;
using sluice::test::RespValue;

TEST_CASE("a key that is deleted, renamed or of another type reads as empty") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " a " + q.at_s(1) + " b");
  q.say("SADD act x y");
  q.say("DEL p:high");
  CHECK(q.stat("pending") == "0");
  CHECK(q.stat("cancelled") == "2");
  q.say("RENAME act elsewhere");
  CHECK(q.stat("active") == "0");
  CHECK(q.find_queue("q")->next_due_steady() == INT64_MAX);
  q.say("RPUSH act item");
  CHECK(q.stat("adopted").find("warnings=[act holds a list, not a set: it reads as empty]") !=
        std::string::npos);
  CHECK(q.events() == "added:a added:b started:x started:y forgotten:* forgotten:*");
  q.say("DEL act");
  q.say("RENAME elsewhere act");
  CHECK(q.stat("active") == "2");
  q.say("ZADD p:high " + q.at_s(0) + " a " + q.at_s(1) + " b");
  CHECK(q.schedule_five() == "a");
  q.say("SET p:high text");
  CHECK(q.stat("pending") == "0");
  CHECK(q.list() == "x y a");
  // The leaked slot of a cannot be returned anywhere, those of the others can.
  q.pass(1000);
  CHECK(q.say("SCARD act") == "0");
  CHECK(q.say("GET p:high") == "text");
  CHECK(q.stat("failed") == "1");
  CHECK(q.say("ZRANGE p:normal 0 -1") == "[x y]");
}

TEST_CASE("the members of a key that is gone count as cancelled in their bands") {
  Adopted q(kUnit);
  q.say("ZADD pend " + q.at_ms(0, 0) + " a " + q.at_ms(0, 9) + " b " + q.at_ms(3, 0) + " c " +
        q.at_ms(1, 0) + " d");
  q.say("MULTI");
  q.say("ZREM pend d");
  q.say("SADD act d");
  q.say("EXEC");
  q.say("MULTI");
  q.say("DEL pend");
  q.say("DEL act");
  q.say("EXEC");
  CHECK(q.cancelled() == "4 CRITICAL=2 HIGH=1 LOW=1");
  // It was never seen as active.
  q.say("MULTI");
  q.say("SADD act x");
  q.say("RENAME act elsewhere");
  q.say("EXEC");
  CHECK(q.cancelled() == "5 CRITICAL=2 HIGH=1 NORMAL=1 LOW=1");
  q.say(kFive);
  q.say("ZADD p:low " + q.at_s(0) + " a " + q.at_s(1) + " b");
  q.say("ZADD p:high " + q.at_s(0) + " c");
  CHECK(q.schedule_five() == "c");
  q.say("DEL act");
  CHECK(q.cancelled() == "6 CRITICAL=2 HIGH=2 NORMAL=1 LOW=1");
  q.say("DEL p:low");
  CHECK(q.cancelled() == "8 CRITICAL=2 HIGH=2 NORMAL=1 LOW=3");
  q.say("Q.ADOPT q PENDING alone ACTIVE act");
  q.say("ZADD alone 1 a");
  q.say("PEXPIRE alone 100");
  q.pass(100);
  CHECK(q.cancelled() == "9 CRITICAL=2 HIGH=2 NORMAL=2 LOW=3");
}

TEST_CASE("an adopted key that expires is a key that is gone") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("PEXPIRE p:high 100");
  q.pass(100);
  CHECK(q.stat("cancelled") == "1");
  CHECK(q.events() == "added:a forgotten:*");
}

TEST_CASE("members of a key that has expired are not shown, though nobody has deleted it yet") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SADD act b");
  q.say("PEXPIRE p:high 100");
  q.say("PEXPIRE act 101");
  q.set_clock(q.wall_ms() + 99, q.steady_ms() + 99);
  CHECK(q.list() == "a b");
  q.set_clock(q.wall_ms() + 1, q.steady_ms() + 1);
  CHECK(q.list() == "b");
  CHECK(q.stat("pending") == "0");
  CHECK(q.stat("active") == "1");
  CHECK(q.state("a") == "null");
  q.set_clock(q.wall_ms() + 1, q.steady_ms() + 1);
  CHECK(q.list() == "");
  CHECK(q.stat("active") == "0");
  CHECK(q.stat("cancelled") == "0");
  q.run_timers();
  CHECK(q.stat("cancelled") == "2");
}

TEST_CASE("when a key is gone, who waits for the end of one of its members hears of it") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("ZADD p:low " + q.at_s(0) + " b");
  CHECK(q.say_as(1, "Q.GET q a WAIT 0") == "(waits)");
  CHECK(q.say_as(2, "Q.GET q b WAIT 0") == "(waits)");
  q.say("DEL p:high");
  const auto told = q.take_deliveries();
  CHECK(told.size() == 1);
  CHECK(told.at(1).is_null());
}

TEST_CASE("an adopted queue that is deleted, flushed or renamed leaves its keys alone") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("RENAME q r");
  CHECK(q.say("Q.STATS r", "pending") == "1");
  q.say("ZADD p:high " + q.at_s(1) + " b");
  CHECK(q.say("Q.STATS r", "added") == "2");
  CHECK(q.say("Q.MOVE r b FRONT") == "0");
  q.say("DEL r");
  CHECK(q.engine().adopted().queues.load() == 0);
  CHECK(q.say("ZCARD p:high") == "2");
  CHECK(q.say(kFive) == "OK");
  CHECK(q.stat("pending") == "2");
  q.say("FLUSHDB");
  CHECK(q.engine().adopted().queues.load() == 0);
  CHECK(q.stat("pending") == "0");
  q.say("ZADD p:high 1 a");
  CHECK(q.stat("pending") == "0");
  CHECK(q.say(kFive) == "OK");
  q.say("PEXPIRE q 100");
  q.pass(100);
  CHECK(q.engine().adopted().queues.load() == 0);
}

TEST_CASE("SWAPDB takes queue and keys along, MOVE shows other keys, COPY none") {
  Adopted q(kFive);
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SWAPDB 0 1");
  CHECK(q.stat("pending") == "0");
  q.say("ZADD p:high " + q.at_s(0) + " elsewhere");
  q.say("SELECT 1");
  q.say("ZADD p:high " + q.at_s(1) + " b");
  CHECK(q.stat("pending") == "2");
  CHECK(q.events() == "added:a added:b");
  CHECK(q.say("COPY q copy") == "1");
  CHECK(q.say("Q.STATS copy", "pending") == "0");
  CHECK(q.say("Q.ADD copy j x", "result") == "added");
  CHECK(q.say("MOVE q 0") == "1");
  q.say("ZADD p:high " + q.at_s(2) + " c");
  CHECK(q.say("MOVE p:low 0") == "0");
  q.say("ZADD p:low " + q.at_s(2) + " d");
  CHECK(q.say("MOVE p:low 0") == "1");
  q.say("SELECT 0");
  CHECK(q.stat("pending") == "2");
  CHECK(q.events() == "added:a added:b added:d");
}

// Fills a key with members 1 to `count`; `command` ends behind the key.
void fill(Adopted& q, const std::string& command, const std::string& key, int count) {
  const std::string script = "for i = 1, " + std::to_string(count) + " do redis.call(" + command +
                             ") end return redis.call('EXISTS', KEYS[1])";
  CHECK(q.run(0, {"EVAL", script, "1", key})->show() == "1");
}

constexpr const char* kAddActive = "'SADD', KEYS[1], i";
constexpr const char* kAddPending = "'ZADD', KEYS[1], i, i";

size_t records(Adopted& q) { return q.find_queue("q")->adopted->runs().size(); }

TEST_CASE("a large active set is adopted in slices, whatever happens in between") {
  for (const std::string meanwhile : {"nothing", "restart", "checkpoint", "takeover", "again"}) {
    INFO(meanwhile);
    Adopted q(kFive);
    q.say("Q.ADOPT q OFF");
    fill(q, kAddActive, "act", 5000);
    q.begin_following();
    CHECK(q.say(kFive) == "OK");
    CHECK(q.stat("active") == "5000");
    q.run_some_timers();
    const size_t first = records(q);
    CHECK((first > 1000 && first < 4000));
    // Some members of any slice leave, and another comes.
    for (int i = 1; i < 5000; i += 500) q.say("SREM act " + std::to_string(i));
    q.say("SADD act new");
    CHECK(q.stat("completed") == "10");
    if (meanwhile == "restart") q.restart(4);
    if (meanwhile == "checkpoint") q.restart_from_checkpoint(4);
    if (meanwhile == "takeover") q.take_over(4);
    if (meanwhile == "again") CHECK(q.say(kFive) == "OK");
    q.run_timers();
    CHECK(q.stat("active") == "4991");
    CHECK(records(q) == 4991);
    CHECK(q.find_queue("q")->next_due_steady() == INT64_MAX);
    CHECK_FALSE(q.run_some_timers());
    CHECK(q.describe_replayed(q.units(), {"q"}, {"2", "1", "new"}) ==
          q.describe({"q"}, {"2", "1", "new"}));
  }
}

TEST_CASE("the records of a large active set that is gone are dropped in slices") {
  for (const bool restarts : {false, true}) {
    Adopted q(kFive);
    fill(q, kAddActive, "set", 3000);
    q.say("RENAME set act");
    q.run_timers();
    CHECK(records(q) == 3000);
    q.say("DEL act");
    CHECK(q.stat("active") == "0");
    CHECK(q.stat("cancelled") == "3000");
    CHECK(q.list() == "");
    CHECK(records(q) == 2000);
    q.say("SADD act 7 new");
    if (restarts) q.restart(4);
    q.run_timers();
    CHECK(q.list() == "7 new");
    CHECK(records(q) == 2);
    CHECK(q.events() == "started:* forgotten:* started:7 started:new");
  }
}

TEST_CASE("a lease of a member that went with its key brings nothing back") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  fill(q, kAddActive, "set", 3000);
  q.say("RENAME set act");
  q.run_timers();
  CHECK(records(q) == 3000);
  q.say("DEL act");
  CHECK(records(q) == 2000);
  // The leases of those that are left end before all of them have been looked at.
  q.pass(1000);
  CHECK(records(q) == 0);
  CHECK(q.say("EXISTS act p:normal") == "0");
  CHECK(q.stat("pending") == "0");
}

TEST_CASE("a member that comes with a large active set has lost its lease before") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " 7");
  CHECK(q.schedule_five() == "7");
  q.pass(1000);
  CHECK(q.job("7", {"state", "crashes"}) == "pending 1");
  fill(q, kAddActive, "set", 1500);
  q.say("RENAME set act");
  q.run_timers();
  CHECK(q.job("7", {"state", "crashes"}) == "active 1");
  q.pass(1000);
  CHECK(q.state("7") == "null");
}

TEST_CASE("very many members that come with a whole key are told as one") {
  Adopted q(kUnit);
  fill(q, "'ZADD', KEYS[1], 3 * 1e12 + 1.7e12 + i, i", "low", 1500);
  const std::string rename = "RENAME low pend";
  for (const std::string& way : {std::string("COPY low pend"), rename}) {
    CHECK(q.say(way) != "0");
    CHECK(q.stat("pending") == "1500");
    if (way != rename) q.say("DEL pend");
  }
  CHECK(q.stat("added") == "3000");
  CHECK(q.cancelled() == "1500 LOW=1500");
  CHECK(q.say("Q.STATS q BY PRI").find("LOW={pending=1500") != std::string::npos);
  CHECK(q.events() == "added:* forgotten:* added:*");
  CHECK(q.describe_replayed(q.units(), {"q"}, {"1"}) == q.describe({"q"}, {"1"}));
  // What happens to some of them in the same unit follows.
  fill(q, kAddPending, "z", 1001);
  q.say("MULTI");
  q.say("RENAME z pend");
  q.say("ZPOPMIN pend");
  q.say("SADD act 1");
  q.say("EXEC");
  CHECK(q.events() == "added:* forgotten:* added:* added:* started:1 forgotten:*");
  CHECK(q.stat("added") == "4001");
  // As few as these are told one by one, also behind a larger copy.
  fill(q, "'ZADD', KEYS[1], i, 'f' .. i", "few", 2);
  q.say("DEL pend");
  q.say("COPY few pend");
  q.say("ZADD pend 3 c");
  CHECK(q.events().find("forgotten:* forgotten:* added:f1 added:f2 added:c") != std::string::npos);
}

TEST_CASE("very many members that come and go with a whole key count in their bands") {
  Adopted q(kUnit);
  fill(q, "'ZADD', KEYS[1], (i > 1100 and 3 or i > 700 and 1 or 0) * 1e12 + 1.7e12 + i, i", "z",
       1500);
  q.say("RENAME z pend");
  const RespValue bands = q.ask("Q.STATS q BY PRI");
  CHECK(bands.find("CRITICAL")->field("added") == "700");
  CHECK(bands.find("HIGH")->field("added") == "400");
  CHECK(bands.find("LOW")->field("added") == "400");
  q.say("DEL pend");
  CHECK(q.cancelled() == "1500 CRITICAL=700 HIGH=400 LOW=400");
}

}  // namespace
