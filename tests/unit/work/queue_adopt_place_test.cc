// Q.ADOPT and the queue's own key: what happens to an adoption when RENAME or MOVE brings the queue
// to a place where it could not have adopted. And which keys belong to an adoption, and where.
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::EngineSession;
using sluice::test::QueueTalk;

constexpr const char* kAdopt = "Q.ADOPT q PENDING urgent PENDING normal ACTIVE act PAYLOAD ev:";

TEST_CASE("a queue that takes the name of a key that it shows is an ordinary one") {
  for (const std::string key : {"urgent", "act"}) {
    QueueTalk q;
    CHECK(q.say(std::string(kAdopt) + " LEASE 1000") == "OK");
    q.say("ZADD normal 1 a");
    q.say("SADD act x");
    CHECK(q.say("RENAME q " + key) == "OK");
    CHECK(q.engine().adopted().queues.load() == 0);
    CHECK(q.say("Q.STATS " + key, "pending") == "0");
    CHECK(q.say("Q.ADD " + key + " j y", "result") == "added");
    CHECK(q.say("ZCARD normal") == "1");
    q.pass(2000);
    CHECK(q.say("EXISTS normal act") == "2");
    q.restart(4);
    CHECK(q.engine().adopted().queues.load() == 0);
    CHECK(q.say("Q.STATS " + key, "pending") == "1");
  }
}

TEST_CASE("a queue does not show a key that shows keys itself where MOVE has put it") {
  QueueTalk q;
  CHECK(q.say(kAdopt) == "OK");
  q.say("SELECT 1");
  CHECK(q.say("Q.ADOPT urgent PENDING z ACTIVE running PAYLOAD ev:") == "OK");
  q.say("ZADD z 1 a 2 b");
  q.say("SET ev:a payload");
  q.say("SELECT 0");
  CHECK(q.say("MOVE q 1") == "1");
  CHECK(q.engine().adopted().queues.load() == 1);
  q.say("SELECT 1");
  CHECK(q.say("Q.MOVE urgent b FRONT") == "0");
  CHECK(q.say("Q.CANCEL urgent a") == "cancelled");
  CHECK(q.say("EXISTS ev:a") == "0");
  CHECK(q.say("Q.STATS urgent", "pending") == "1");
  CHECK(q.say("Q.ADD q j x", "result") == "added");
}

TEST_CASE("a queue does not show a key that another queue shows where MOVE has put it") {
  for (const std::string other :
       {"Q.ADOPT other PENDING z ACTIVE act", "Q.ADOPT other PENDING normal ACTIVE running"}) {
    CAPTURE(other);
    QueueTalk q;
    CHECK(q.say(kAdopt) == "OK");
    q.say("SELECT 1");
    CHECK(q.say(other) == "OK");
    q.say("SELECT 0");
    CHECK(q.say("MOVE q 1") == "1");
    CHECK(q.engine().adopted().queues.load() == 1);
    q.say("SELECT 1");
    CHECK(q.say("Q.STATS other", "adopted") != "null");
    CHECK(q.say("Q.ADD q j x", "result") == "added");
  }
}

TEST_CASE("in a place that another queue has left in the same unit a queue shows its keys") {
  QueueTalk q;
  CHECK(q.say(kAdopt) == "OK");
  q.say("SELECT 1");
  CHECK(q.say("Q.ADOPT other PENDING normal ACTIVE act") == "OK");
  q.say("SELECT 0");
  q.say("MULTI");
  q.say("SELECT 1");
  q.say("DEL other");
  q.say("SELECT 0");
  q.say("MOVE q 1");
  q.say("EXEC");
  q.say("SELECT 1");
  CHECK(q.engine().adopted().queues.load() == 1);
  q.say("ZADD normal 1 a");
  CHECK(q.stat("pending") == "1");
}

TEST_CASE("an adoption that ends leaves those of other queues alone, also in the same shard") {
  QueueTalk q;
  CHECK(q.say("Q.ADOPT {t}ends PENDING {t}a ACTIVE {t}b") == "OK");
  CHECK(q.say("Q.ADOPT q PENDING {t}waiting ACTIVE running") == "OK");
  CHECK(q.say("Q.ADOPT {t}ends OFF") == "OK");
  CHECK(q.engine().adopted().queues.load() == 1);
  q.say("ZADD {t}waiting 1 x");
  CHECK(q.stat("added") == "1");
  q.say("MULTI");
  q.say("ZADD {t}waiting 2 y 3 z");
  q.say("EXEC");
  CHECK(q.stat("added") == "3");
  q.say(
      "EVAL return{redis.call('ZPOPMIN',KEYS[1]),redis.call('SADD',KEYS[2],'x')} 2 {t}waiting "
      "running");
  CHECK(q.stat("active") == "1");
  CHECK(q.stat("started") == "1");
}

TEST_CASE("a key that a queue adopts no longer is not its own, and free for another queue") {
  QueueTalk q;
  CHECK(q.say("Q.ADOPT q PENDING p PENDING left ACTIVE act") == "OK");
  CHECK(q.say("Q.ADOPT q PENDING p ACTIVE act") == "OK");
  CHECK(q.engine().adopted().queues.load() == 1);
  q.say("ZADD left 1 x");
  CHECK(q.stat("added") == "0");
  CHECK(q.say("Q.ADOPT other PENDING left ACTIVE running") == "OK");
  CHECK(q.say("Q.STATS other", "pending") == "1");
  CHECK(q.engine().adopted().queues.load() == 2);
}

TEST_CASE("on a standby that has heard of an adoption a reader locks the shards of all keys") {
  QueueTalk q;
  q.begin_following();
  CHECK(q.say(kAdopt) == "OK");
  q.follow();
  sluice::Execution execution(q.standby());
  execution.set_times(q.times());
  EngineSession reader(q.standby(), execution);
  const std::vector<sluice::Bytes> stats = {"Q.STATS", "q"};
  reader.run_unfinished(stats);
  CHECK(execution.locked() == sluice::kAllShards);
  execution.finish();
}

}  // namespace
