// AFTER: jobs that wait for any end of others.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::Queue;
using sluice::test::QueueTalk;
using sluice::test::RespValue;

constexpr int kToldPerHold = 256;

std::string name_of(int number) { return "j" + std::to_string(number); }

Queue& checked(QueueTalk& q, const std::string& name = "q") {
  Queue& queue = *q.find_queue(name);
  queue.check();
  return queue;
}

std::string repeated(const std::string& word, int from, int to) {
  std::string out;
  for (int i = from; i < to; ++i) out += " " + word + " " + name_of(i);
  return out;
}

TEST_CASE("any end of a job lets those run that come after it") {
  for (const std::string end : {"completed", "failed", "cancelled", "expired", "lost", "revoked"}) {
    INFO(end);
    QueueTalk q;
    q.say("Q.CONFIG q SET crash_limit 0");
    q.add("a", end == "expired" ? "TTL 50 LEASE 100" : "LEASE 100");
    q.add("b", "AFTER a");
    q.add("c", "NEED a");
    CHECK(q.job("b", {"state", "why"}) == "blocked blocked_by a");
    CHECK(q.job("c", {"state", "why"}) == "blocked blocked_by a");
    if (end == "expired") {
      q.pass(60);
    } else if (end == "cancelled") {
      q.say("Q.CANCEL q a");
    } else {
      q.pop("ID a");
      if (end == "completed") q.ack("a");
      if (end == "failed") q.nack("a", "FATAL");
      if (end == "lost") q.pass(110);
      if (end == "revoked") q.say("Q.CANCEL q a GRACE 0");
    }
    const std::string state = end == "lost" ? "failed" : end == "revoked" ? "cancelled" : end;
    CHECK(q.state("a") == state);
    CHECK(q.job("b", {"state", "error"}) == "pending null");
    CHECK(q.job("c", {"state", "error"}) ==
          (end == "completed" ? "pending null" : "cancelled need a"));
    CHECK(checked(q).followers.empty());
    q.restart(4);
    CHECK(q.state("b") == "pending");
  }
}

TEST_CASE("a run that is not the end lets nothing run") {
  QueueTalk q;
  q.add("a", "RETRY 1 BACKOFF 0 0");
  q.add("b", "AFTER a");
  for (const char* end : {"SILENT", "FAIL"}) {
    q.pop("ID a");
    q.nack("a", end);
    CHECK(q.job("b", {"state", "why"}) == "blocked blocked_by a");
  }
  q.pop("ID a");
  q.nack("a", "FAIL");
  CHECK(q.state("b") == "pending");
}

TEST_CASE("what an AFTER may name: ids that are there, once, not both ways, 64 with the needs") {
  QueueTalk q;
  for (int i = 0; i < 70; ++i) q.add(name_of(i));
  CHECK(q.say("Q.ADD q x '' AFTER nobody") == "-NOJOB id=nobody");
  CHECK(q.say("Q.ADD q x '' AFTER x") == "-NOJOB id=x");
  CHECK(q.say("Q.ADD q x '' AFTER WHERE") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x '' AFTER ''") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x '' AFTER") == "-ERR syntax error");
  CHECK(q.say("Q.ADD q x ''" + repeated("NEED", 0, 64) + " AFTER j64") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x ''" + repeated("AFTER", 0, 65)) == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x ''" + repeated("NEED", 0, 65)) == "-BADFIELD field=need");
  CHECK(q.state("x") == "null");
  // Those that are named twice, and both ways, count once.
  CHECK(q.say("Q.ADD q x ''" + repeated("AFTER", 0, 64) + repeated("NEED", 0, 64), "state") ==
        "blocked");
  CHECK(q.ask("Q.GET q x").find("needs")->items.size() == 64);
  CHECK(q.job("x", {"after"}) == "absent");
  CHECK(q.say("Q.ADD q y ''" + repeated("AFTER", 0, 32) + repeated("AFTER", 0, 32) +
                  repeated("NEED", 31, 64),
              "state") == "blocked");
  CHECK(q.ask("Q.GET q y").find("needs")->items.size() == 33);
  CHECK(q.ask("Q.GET q y").find("after")->items.size() == 31);
  // NEED wins, in whatever order.
  q.add("both", "AFTER j1 NEED j1 AFTER j1 AFTER j2");
  CHECK(q.ask("Q.GET q both").field("needs") == "[j1]");
  CHECK(q.ask("Q.GET q both").field("after") == "[j2]");
  q.say("Q.CANCEL q j1");
  CHECK(q.job("both", {"state", "error"}) == "cancelled need j1");
  checked(q);
}

TEST_CASE("a job without AFTER is shown as before, and takes no more memory") {
  QueueTalk q;
  q.add("a b c");
  q.add("d", "NEED a");
  CHECK(q.say("Q.GET q d").find("after") == std::string::npos);
  CHECK(sizeof(sluice::JobOptions) == 88);
  q.add("e", "NEED a AFTER b AFTER c");
  CHECK(q.say("Q.GET q e").find("needs=[a] after=[b c] lease=") != std::string::npos);
  CHECK(q.say("Q.LIST q WHERE STATE blocked").find("after=[b c]") != std::string::npos);
}

TEST_CASE("an AFTER of a job that has ended is met, while that is kept") {
  QueueTalk q;
  q.add("done failed");
  q.pop("COUNT 2");
  q.ack("done");
  q.nack("failed", "FATAL");
  CHECK(q.say("Q.ADD q a '' AFTER done AFTER failed", "state") == "pending");
  CHECK(q.job("a", {"after", "why"}) == "[done failed] no_worker");
  CHECK(q.say("Q.ADD q b '' AFTER failed DELAY 50", "state") == "delayed");
  CHECK(q.say("Q.ADD q c '' NEED failed AFTER done") == "-NEEDFAILED id=failed state=failed");
  q.say("Q.PURGE q WHERE STATE failed");
  CHECK(q.say("Q.ADD q c '' AFTER failed") == "-NOJOB id=failed");
  q.say("Q.CONFIG q SET retain_completed 0");
  CHECK(q.say("Q.ADD q c '' AFTER done") == "-NOJOB id=done");
}

TEST_CASE("an end and an AFTER of it in one unit, in either order") {
  for (const bool added_first : {false, true}) {
    QueueTalk q;
    q.add("a");
    q.pop("ID a");
    const std::string end = "Q.NACK q a " + q.lease("a") + " FATAL";
    q.say("MULTI");
    if (!added_first) q.say(end);
    q.say("Q.ADD q b '' AFTER a");
    if (added_first) q.say(end);
    const RespValue replies = q.ask("EXEC");
    CHECK(replies.items.at(added_first ? 0 : 1).field("state") ==
          (added_first ? "blocked" : "pending"));
    CHECK(q.state("b") == "pending");
    checked(q);
    q.restart(4);
    CHECK(q.state("b") == "pending");
  }
}

TEST_CASE("a delay, a pause of the wait and a TTL begin when all of them have ended") {
  QueueTalk q;
  q.add("a");
  q.add("b", "AFTER a DELAY 100 TTL 50");
  q.say("Q.CANCEL q a");
  CHECK(q.state("b") == "delayed");
  q.pass(100);
  CHECK(q.state("b") == "pending");
  q.pass(60);
  CHECK(q.state("b") == "expired");
}

// --- IFDUP ---

TEST_CASE("an update compares NEED and AFTER, each with its own") {
  QueueTalk q;
  q.add("a b c d");
  q.add("x", "NEED a AFTER b AFTER c");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE", "result") == "updated");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE AFTER c AFTER b", "result") == "updated");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE NEED a", "result") == "updated");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE AFTER c AFTER b NEED a", "result") == "updated");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE AFTER b") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE AFTER b AFTER c AFTER d") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE NEED b") == "-BADFIELD field=need");
  CHECK(q.say("Q.ADD q x new IFDUP UPDATE AFTER a AFTER b AFTER c") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q d new IFDUP UPDATE AFTER a") == "-BADFIELD field=after");
  // What it waits for is as before.
  CHECK(q.job("x", {"state", "why"}) == "blocked blocked_by a b c");
  q.say("Q.CANCEL q b");
  q.say("Q.ADD q x new IFDUP UPDATE AFTER b AFTER c");
  CHECK(q.job("x", {"state", "why"}) == "blocked blocked_by a c");
  // Also of an active job, whose successor has them too.
  q.say("Q.CANCEL q c");
  q.pop("ID a");
  q.ack("a");
  q.pop("ID x");
  CHECK(q.say("Q.ADD q x next IFDUP UPDATE AFTER b") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x next IFDUP UPDATE AFTER b AFTER c", "result") == "queued");
  CHECK(q.say("Q.ADD q x next IFDUP REPLACE AFTER d") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q x next IFDUP REPLACE NEED d") == "-BADFIELD field=need");
  q.ack("x");
  CHECK(q.job("x", {"state", "payload"}) == "pending next");
  CHECK(q.ask("Q.GET q x").field("after") == "[b c]");
  q.restart(4);
  CHECK(q.ask("Q.GET q x").field("after") == "[b c]");
  checked(q);
}

TEST_CASE("the end of a run lets those run that come after it, also where a successor follows") {
  for (const char* end : {"", "FATAL"}) {
    QueueTalk q;
    q.add("a");
    q.add("b", "AFTER a");
    q.add("c", "NEED a");
    q.pop("ID a");
    q.say("Q.ADD q a again IFDUP UPDATE");
    *end == 0 ? q.ack("a") : q.nack("a", end);
    CHECK(q.job("a", {"state", "payload"}) == "pending again");
    CHECK(q.state("b") == "pending");
    CHECK(q.state("c") == (*end == 0 ? "pending" : "blocked"));
    // Those that are added later wait for the successor. A run that is given back is no end.
    q.add("d", "AFTER a");
    q.pop("ID a");
    q.say("Q.ADD q a third IFDUP UPDATE");
    q.nack("a", "SILENT");
    CHECK(q.state("a") == "pending");
    CHECK(q.state("d") == "blocked");
    q.say("Q.CANCEL q a");
    CHECK(q.state("d") == "pending");
    checked(q);
  }
}

TEST_CASE("a waiting job that is replaced has ended; those that need the id wait on") {
  QueueTalk q;
  q.add("a");
  q.add("b", "AFTER a");
  q.add("c", "NEED a");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE", "result") == "replaced");
  CHECK(q.state("b") == "pending");
  CHECK(q.state("c") == "blocked");
  checked(q);
  q.restart(4);
  CHECK(q.state("b") == "pending");
  CHECK(q.state("c") == "blocked");
}

TEST_CASE("no circle can arise by replacing a job") {
  QueueTalk q;
  q.add("a", "DELAY 1000");
  q.add("needs-it", "NEED a");
  q.add("follows-it", "AFTER a AFTER needs-it");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE AFTER needs-it") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE AFTER follows-it") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE AFTER a") == "-BADFIELD field=after");
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE NEED follows-it") == "-BADFIELD field=need");
  q.say("Q.CANCEL q needs-it");
  CHECK(q.job("follows-it", {"why"}) == "blocked_by a");
  // Replacing it releases what came after it, so it may follow that.
  CHECK(q.say("Q.ADD q a again IFDUP REPLACE AFTER follows-it", "state") == "blocked");
  CHECK(q.state("follows-it") == "pending");
  q.pop("ID follows-it");
  q.ack("follows-it");
  CHECK(q.state("a") == "pending");
  checked(q);
}

TEST_CASE("a retried job waits for nothing; who comes after it waits for its next end") {
  QueueTalk q;
  q.add("a");
  q.add("b", "AFTER a");
  q.say("Q.CANCEL q a");
  q.say("Q.CANCEL q b");
  CHECK(q.say("Q.RETRY q b") == "pending");
  CHECK(q.say("Q.RETRY q a") == "pending");
  CHECK(q.ask("Q.GET q b").field("after") == "[a]");
  q.add("c", "AFTER a");
  CHECK(q.state("c") == "blocked");
  q.say("Q.CANCEL q a");
  CHECK(q.state("c") == "pending");
}

// --- Very many ---

// A queue in which `count` jobs come after "base", and as many need it.
class Followed : public QueueTalk {
 public:
  explicit Followed(int count) {
    say("Q.CONFIG q SET retain_completed 100000 retain_failed 100000");
    add("base");
    for (int i = 0; i < count; ++i) {
      add("a" + std::to_string(i), "AFTER base");
      add("n" + std::to_string(i), "NEED base");
    }
  }
  void end_base(const std::string& how = "") {
    pop("ID base");
    how.empty() ? ack("base") : nack("base", how);
  }
  int go_on() {
    int slices = 0;
    for (; !checked(*this).releases.empty(); ++slices) run_some_timers();
    return slices;
  }
};

TEST_CASE("very many are told in slices, those that need it and those that come after it") {
  for (const int way : {0, 1, 2, 3}) {
    const bool completes = way % 2 == 0;
    Followed q(600);
    q.end_base(completes ? "" : "FATAL");
    CHECK(checked(q).releases.size() == 2);
    CHECK(q.stat("blocked") == std::to_string(1200 - kToldPerHold));
    CHECK(q.job("a599", {"state", "why"}) == "blocked releasing");
    CHECK(q.job("n599", {"state", "why"}) == "blocked releasing");
    // The id comes again: the earlier end counts for those that waited for it.
    q.say("Q.RETRY q base");
    q.add("later", "AFTER base");
    CHECK(q.job("later", {"why"}) == "blocked_by base");
    way < 2 ? q.restart(4) : q.restart_from_checkpoint(4);
    CHECK(checked(q).releases.size() == 2);
    CHECK(q.job("a599", {"why"}) == "releasing");
    CHECK(q.go_on() >= 4);
    CHECK(q.stat("pending") == std::to_string(completes ? 1201 : 601));
    CHECK(q.stat("cancelled") == std::to_string(completes ? 0 : 600));
    CHECK(q.state("later") == "blocked");
    q.say("Q.CANCEL q base");
    CHECK(q.state("later") == "pending");
  }
}

TEST_CASE("a release of followers alone: a successor takes the id, or a replacement") {
  for (const bool replaced : {false, true}) {
    Followed q(400);
    if (replaced) {
      CHECK(q.say("Q.ADD q base again IFDUP REPLACE", "result") == "replaced");
    } else {
      q.pop("ID base");
      q.say("Q.ADD q base again IFDUP UPDATE");
      q.nack("base", "FATAL");
    }
    CHECK(checked(q).releases.size() == 1);
    CHECK(q.job("a399", {"why"}) == "releasing");
    CHECK(q.job("n0", {"why"}) == "blocked_by base");
    CHECK(q.job("n399", {"why"}) == "blocked_by base");
    q.add("later", "AFTER base");
    q.say("RENAME q r");
    q.say("RENAME r q");
    q.say("COPY q c");
    q.restart(4);
    const auto shown = [&](const std::string& name, const char* id, const char* field) {
      return q.say("Q.GET " + name + " " + id, field);
    };
    for (const char* name : {"q", "c"}) CHECK(shown(name, "a399", "why") == "releasing");
    q.run_timers();
    for (const char* name : {"q", "c"}) {
      CHECK(shown(name, "a399", "state") == "pending");
      CHECK(shown(name, "n399", "state") == "blocked");
      CHECK(shown(name, "later", "state") == "blocked");
      q.say("Q.CANCEL " + std::string(name) + " base");
      q.run_timers();
      CHECK(shown(name, "n399", "state") == "cancelled");
      CHECK(shown(name, "later", "state") == "pending");
      checked(q, name);
    }
  }
}

TEST_CASE("who waits for its turn can be cancelled, updated, replaced and cancelled by a need") {
  Followed q(400);
  q.add("other");
  for (int i = 0; i < 300; ++i) {
    q.add("both" + std::to_string(i), "AFTER base NEED other");
  }
  q.end_base("FATAL");
  CHECK(q.say("Q.CANCEL q a399") == "cancelled");
  CHECK(q.say("Q.ADD q a398 new IFDUP UPDATE AFTER base", "result") == "updated");
  CHECK(q.job("a398", {"why"}) == "releasing");
  CHECK(q.say("Q.ADD q a397 new IFDUP REPLACE AFTER base", "state") == "pending");
  CHECK(q.job("both299", {"why"}) == "blocked_by other");
  q.say("Q.CANCEL q other");
  q.go_on();
  CHECK(q.job("both299", {"state", "error"}) == "cancelled need other");
  CHECK(q.job("a398", {"state", "payload"}) == "pending new");
  CHECK(q.stat("blocked") == "0");
}

TEST_CASE("a chain ends where one comes after, and goes on where one needs") {
  QueueTalk q;
  q.add("a");
  q.add("b", "NEED a");
  q.add("c", "AFTER b");
  q.add("d", "NEED c");
  q.add("e", "AFTER a NEED b");
  q.say("Q.CANCEL q a");
  CHECK(q.state("b") == "cancelled");
  CHECK(q.state("c") == "pending");
  CHECK(q.state("d") == "blocked");
  CHECK(q.job("e", {"state", "error"}) == "cancelled need b");
  CHECK(q.drain() == "c d");
}

TEST_CASE("a full queue displaces nobody for a job that would have to wait for another") {
  QueueTalk q;
  q.add("first low", "PRI LOW");
  q.say("Q.CONFIG q SET max_waiting 2 full displace");
  CHECK(q.say("Q.ADD q urgent '' PRI HIGH AFTER first").rfind("-QFULL", 0) == 0);
  CHECK(q.say("Q.ADD q urgent '' PRI HIGH", "result") == "added");
}

TEST_CASE("COPY takes along who comes after whom") {
  QueueTalk q;
  q.add("a done");
  q.pop("COUNT 2");
  q.ack("done");
  q.add("b", "AFTER a AFTER done");
  q.say("COPY q c");
  CHECK(q.say("Q.GET c b", "why") == "blocked_by a");
  CHECK(q.ask("Q.GET c b").field("after") == "[a done]");
  q.say("Q.CANCEL c a");
  CHECK(q.say("Q.GET c b", "state") == "pending");
  CHECK(q.state("b") == "blocked");
  checked(q, "c");
}

}  // namespace
