// Q.GET and Q.LIST … WITH options: what a job has of its own, so that another job can be given it.
#include <string>

#include "tests/support/adopted_talk.h"
#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::Adopted;
using sluice::test::kFive;
using sluice::test::QueueTalk;
using sluice::test::RespValue;

constexpr const char* kAll = "BOOST -7 TTL 90000 LEASE 7777 MAXRUN 0 RETRY 4 BACKOFF 5 80";
constexpr const char* kAllShown =
    "{boost_ms=-7 ttl_ms=90000 lease_ms=7777 max_run_ms=0 retry=4 backoff=[5 80]}";
constexpr const char* kNoneShown =
    "{boost_ms=0 ttl_ms=0 lease_ms=null max_run_ms=null retry=null backoff=null}";

std::string options_of(QueueTalk& q, const std::string& id) {
  return q.say("Q.GET q " + id + " WITH options", "options");
}

TEST_CASE("the options of a job are what Q.ADD was given, in every state") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retry 9 lease_ms 5000 max_run_ms 60000 backoff 1:2");
  q.add("a", kAll);
  CHECK(options_of(q, "a") == kAllShown);
  q.pop("LEASE 1234");
  CHECK(q.job("a", {"lease_ms"}) == "1234");
  CHECK(options_of(q, "a") == kAllShown);
  q.nack("a", "DELAY 1000");
  CHECK(q.job("a", {"state", "retries_left"}) == "delayed 3");
  CHECK(options_of(q, "a") == kAllShown);
  q.pass(1000);
  q.pop();
  q.nack("a", "FATAL");
  CHECK(q.job("a", {"state", "retries_left"}) == "failed null");
  CHECK(options_of(q, "a") == kAllShown);
  q.restart(1);
  CHECK(options_of(q, "a") == kAllShown);
  CHECK(q.say("Q.RETRY q a") == "pending");
  CHECK(options_of(q, "a") == kAllShown);
}

TEST_CASE("an option that Q.ADD was not given is null, whatever the queue's value") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retry 9 lease_ms 5000 max_run_ms 60000 backoff 1:2");
  q.add("a");
  q.add("b", "GROUP g KEY k TAG x y");
  CHECK(options_of(q, "a") == kNoneShown);
  CHECK(options_of(q, "b") == kNoneShown);
  CHECK(q.say("Q.GET q a", "options") == "absent");
  CHECK(q.say("Q.GET q none WITH options") == "null");
}

TEST_CASE("the TTL among the options is the one that held when the job was added") {
  QueueTalk q;
  q.say("Q.CONFIG q SET ttl_ms 5000");
  q.say("Q.CONFIG q GROUP g SET ttl_ms 7000");
  q.add("a");
  q.add("b", "GROUP g");
  q.add("c", "TTL 0");
  q.say("Q.CONFIG q SET ttl_ms 1");
  q.say("Q.CONFIG q GROUP g RESET");
  const auto ttl = [&](const std::string& id) {
    return q.ask("Q.GET q " + id + " WITH options").find("options")->field("ttl_ms");
  };
  CHECK(ttl("a") == "5000");
  CHECK(ttl("b") == "7000");
  CHECK(ttl("c") == "0");
  q.pass(4000);
  CHECK(ttl("a") == "5000");
}

TEST_CASE("updates, moves and successors change the options") {
  QueueTalk q;
  q.add("a", kAll);
  q.say("Q.ADD q a x IFDUP UPDATE TTL 0 RETRY 0 BACKOFF 0 0");
  CHECK(options_of(q, "a") ==
        "{boost_ms=-7 ttl_ms=0 lease_ms=7777 max_run_ms=0 retry=0 backoff=[0 0]}");
  q.say("Q.MOVE q a BOOST 12");
  CHECK(options_of(q, "a") ==
        "{boost_ms=12 ttl_ms=0 lease_ms=7777 max_run_ms=0 retry=0 backoff=[0 0]}");
  q.pop();
  q.say("Q.ADD q a x IFDUP REPLACE MAXRUN 3");
  CHECK(q.ack("a") == "OK");
  CHECK(options_of(q, "a") ==
        "{boost_ms=0 ttl_ms=0 lease_ms=null max_run_ms=3 retry=null backoff=null}");
}

TEST_CASE("a copied job has its options") {
  QueueTalk q;
  q.add("a", kAll);
  CHECK(q.say("COPY q r") == "1");
  CHECK(q.say("Q.GET r a WITH options", "options") == kAllShown);
}

TEST_CASE("Q.LIST shows the options too, also in short, and Q.GET beside the other fields") {
  QueueTalk q;
  q.add("a", kAll);
  q.add("b");
  const RespValue jobs = q.ask("Q.LIST q BY RANK WITH options BRIEF").items.at(1);
  REQUIRE(jobs.size() == 2);
  CHECK(jobs.items[0].field("options") == kNoneShown);
  CHECK(jobs.items[1].field("options") == kAllShown);
  CHECK(jobs.items[1].size() == 4);
  const RespValue job = q.ask("Q.GET q a WITH Options WITH payload WITH result WITH dependents");
  CHECK(job.field("options") == kAllShown);
  CHECK(job.field("payload") == "p-a");
  CHECK(q.say("Q.GET q a WITH option") == "-BADFIELD field=with");
  CHECK(q.say("Q.POP 1 q WITH options") == "-BADFIELD field=with");
}

TEST_CASE("the options are a flat array in RESP2 and in scripts") {
  QueueTalk q;
  const std::string flat = "[boost_ms 0 ttl_ms 0 lease_ms null max_run_ms null retry 3 backoff";
  q.add("a", "RETRY 3 BACKOFF 5 80");
  q.session(0).client.protocol = 2;
  CHECK(options_of(q, "a") == flat + " [5 80]]");
  q.add("b", "RETRY 3");
  CHECK(options_of(q, "b") == flat + " null]");
  CHECK(q.say("EVAL return(redis.call('Q.GET',KEYS[1],'b','WITH','options')) 1 q", "options") ==
        flat + " null]");
}

TEST_CASE("a member of adopted keys has no options") {
  Adopted q(kFive);
  q.say("ZADD p:normal 1 a");
  q.say("SADD act b");
  CHECK(options_of(q, "a") == "null");
  CHECK(options_of(q, "b") == "null");
  CHECK(q.ask("Q.LIST q WITH options BRIEF").items.at(1).items.at(0).field("options") == "null");
}

}  // namespace
