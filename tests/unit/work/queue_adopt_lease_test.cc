// Q.ADOPT with LEASE: members that leave the active set in time, and those whose slot is leaked.
#include <string>

#include "tests/support/adopted_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::Adopted;
using sluice::test::kFive;
using sluice::test::kUnit;
using sluice::test::QueueTalk;

TEST_CASE("with LEASE a leaked slot comes back once at its old score, then it is removed") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SET ev:a x");
  q.pass(100);
  CHECK(q.schedule_five() == "a");
  CHECK(q.job("a", {"lease_ms", "deadline", "crashes"}) == "1000 1700000001100 0");
  q.pass(999);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.job("a", {"state", "crashes", "attempts"}) == "pending 1 1");
  CHECK(q.say("SCARD act") == "0");
  CHECK(q.say("ZSCORE p:high a") == "1700000000");
  q.pass(50);
  CHECK(q.schedule_five() == "a");
  CHECK(q.job("a", {"state", "crashes", "attempts"}) == "active 1 2");
  q.pass(1000);
  CHECK(q.say("Q.GET q a") == "null");
  CHECK(q.say("EXISTS act p:high ev:a") == "0");
  CHECK(q.events() == "added:a started:a reclaimed:a started:a failed:a");
  CHECK(q.stat("reclaimed") == "1");
  CHECK(q.stat("failed") == "1");
  // The second wait began when the job returned.
  CHECK(q.ask("Q.STATS q").field("wait_ms").find("max=100 ") != std::string::npos);
}

TEST_CASE("a leaked slot of a member that is also pending goes without moving it") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.say("SET ev:a x");
  CHECK(q.schedule_five() == "a");
  q.say("ZADD p:high " + q.at_s(9000) + " a");
  q.pass(1000);
  CHECK(q.say("EXISTS act") == "0");
  CHECK(q.say("ZSCORE p:high a") == "1700000009");
  q.say("SADD act a");
  q.pass(1000);
  // The second time it is removed from all keys.
  CHECK(q.say("EXISTS p:high ev:a act") == "0");
}

TEST_CASE("a member that was active before the adoption has a lease from then on") {
  QueueTalk q;
  q.say("SADD act old");
  q.say("ZADD p:0 1699999990 x");
  CHECK(q.say("Q.ADOPT q PENDING p:0 PENDING p:1 PENDING p:2 ACTIVE act LEASE 500") == "OK");
  CHECK(q.stat("active") == "1");
  CHECK(q.stat("started") == "0");
  q.pass(500);
  CHECK(q.job("old", {"state", "pri"}) == "pending NORMAL");
  CHECK(q.say("ZSCORE p:2 old") == "1700000000");
}

TEST_CASE("a member of unknown place comes back with a score like those in the keys") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:low 1600000000000 a");
  q.say("SADD act b");
  q.pass(1000);
  CHECK(q.say("ZSCORE p:normal b") == "1700000000000");
}

TEST_CASE("where nothing is pending, it comes back with a score like those of running members") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("SADD act b");
  q.pass(10);
  q.say("ZADD p:low 1600000000000 a");
  CHECK(q.schedule_five() == "a");
  q.pass(990);
  CHECK(q.state("a") == "active");
  CHECK(q.say("ZSCORE p:normal b") == "1700000000000");
}

TEST_CASE("with UNIT a member of unknown place comes back in the usual band") {
  Adopted q(std::string(kUnit) + "LEASE 1000");
  q.say("SADD act b");
  q.pass(1000);
  CHECK(q.job("b", {"state", "pri"}) == "pending NORMAL");
  CHECK(q.say("ZSCORE pend b") == q.at_ms(2, 0));
}

TEST_CASE("a member that one unit adds and takes has the band and the score of its addition") {
  Adopted q(std::string(kUnit) + "LEASE 1000");
  q.say("MULTI");
  q.say("ZADD pend " + q.at_ms(3, 0) + " a");
  q.say("ZREM pend a");
  q.say("SADD act a");
  q.say("EXEC");
  CHECK(q.job("a", {"state", "pri"}) == "active LOW");
  CHECK(q.ask("Q.STATS q BY PRI").find("LOW")->field("started") == "1");
  q.pass(1000);
  CHECK(q.say("ZSCORE pend a") == q.at_ms(3, 0));
}

TEST_CASE("a member that was returned by its worker still has lost a lease before") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:low " + q.at_s(0) + " a");
  CHECK(q.schedule_five() == "a");
  q.pass(1000);
  CHECK(q.schedule_five() == "a");
  q.say("MULTI");
  q.say("SREM act a");
  q.say("ZADD p:low " + q.at_s(0) + " a");
  q.say("EXEC");
  CHECK(q.job("a", {"state", "crashes"}) == "pending 1");
  CHECK(q.schedule_five() == "a");
  q.pass(1000);
  CHECK(q.events() == "added:a started:a reclaimed:a started:a returned:a started:a failed:a");
}

TEST_CASE("a repeated Q.ADOPT changes nothing about running members") {
  const std::string adopt = std::string(kFive) + "LEASE 1000";
  Adopted q(adopt);
  q.say("ZADD p:low " + q.at_s(0) + " a");
  CHECK(q.schedule_five() == "a");
  q.pass(600);
  CHECK(q.say(adopt) == "OK");
  CHECK(q.job("a", {"state", "pri"}) == "active LOW");
  q.pass(400);
  CHECK(q.job("a", {"state", "pri", "crashes"}) == "pending LOW 1");
}

TEST_CASE("a job that ends in time keeps no trace, and a lease that is not set ends nothing") {
  Adopted q(std::string(kFive) + "LEASE 1000");
  q.say("ZADD p:high " + q.at_s(0) + " a");
  q.schedule_five();
  q.say("SREM act a");
  q.pass(5000);
  CHECK(q.stat("reclaimed") == "0");
  CHECK(q.say(kFive) == "OK");
  q.say("ZADD p:high " + q.at_s(0) + " b");
  q.schedule_five();
  q.pass(50'000'000);
  CHECK(q.state("b") == "active");
}

}  // namespace
