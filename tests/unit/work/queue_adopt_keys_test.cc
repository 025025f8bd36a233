// Q.ADOPT: what becomes of a queue when its keys, or the queue itself, are deleted, moved or
// renamed.
#include <string>

#include "tests/support/adopted_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::Adopted;
using sluice::test::kFive;
using sluice::test::kUnit;

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
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SET p:high text");
  CHECK(q.stat("pending") == "0");
  CHECK(q.list() == "x y");
  // A leaked slot cannot be returned anywhere.
  q.pass(1000);
  CHECK(q.say("SCARD act") == "0");
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

}  // namespace
