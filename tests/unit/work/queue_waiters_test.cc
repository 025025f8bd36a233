// A client waiting on a native queue gets the right job, in the right order, once.
#include <optional>
#include <string>
#include <vector>

#include "tests/support/queue_server.h"
#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using Words = std::vector<std::string>;

struct Fixture : QueueServer {
  Fixture() {
    set_clock(1'700'000'000'000, 0);
    connect(6);
  }

  // Runs a command that replies at once; returns the reply as text.
  std::string ask(const Words& words, size_t connection = 0) {
    const std::optional<RespValue> reply = run(connection, words);
    REQUIRE(reply.has_value());
    return reply->show();
  }
  void wait(size_t connection, const Words& words) { REQUIRE(!run(connection, words).has_value()); }
  void wait_pop(size_t connection, Words options = {}) {
    Words words{"Q.POP", "1", "q"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"BLOCK", "0"});
    wait(connection, words);
  }
  void add(const std::string& id, Words options = {}) {
    Words words{"Q.ADD", "q", id, "payload of " + id};
    words.insert(words.end(), options.begin(), options.end());
    REQUIRE(run(0, words)->field("result") == "added");
  }
  // The ids of the delivered jobs, by connection: "1=a 2=b,c 3=null".
  std::string served() {
    std::string out;
    for (const auto& [connection, reply] : take_deliveries()) {
      if (!out.empty()) out += ' ';
      out += std::to_string(connection) + "=" + ids_of(reply);
    }
    return out;
  }
  static std::string ids_of(const RespValue& reply) {
    if (reply.kind != RespValue::Kind::kArray) return reply.show();
    std::string ids;
    for (const RespValue& job : reply.items) ids += (ids.empty() ? "" : ",") + job.field("id");
    return ids;
  }
  std::string pop_ids(Words options = {}, size_t connection = 0) {
    Words words{"Q.POP", "1", "q"};
    words.insert(words.end(), options.begin(), options.end());
    return ids_of(*run(connection, words));
  }
  std::string lease_of(const std::string& id) { return run(0, {"Q.GET", "q", id})->field("lease"); }
  void ack(const std::string& id) { REQUIRE(ask({"Q.ACK", "q", id, lease_of(id)}) == "OK"); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "pops that wait are served in order of arrival") {
  wait_pop(1);
  wait_pop(2);
  wait_pop(3, {"COUNT", "2"});
  CHECK(run(0, {"Q.STATS", "q"})->field("waiting_pops") == "3");
  add("a");
  CHECK(served() == "1=a");
  add("b");
  CHECK(served() == "2=b");
  CHECK(run(0, {"Q.STATS", "q"})->field("waiting_pops") == "1");
  // A COUNT gets what is available at the end of the unit: two jobs of one transaction.
  ask({"MULTI"});
  for (const char* id : {"c", "d", "e"}) ask({"Q.ADD", "q", id, ""});
  ask({"EXEC"});
  CHECK(served() == "3=c,d");
  CHECK(pop_ids() == "e");
}

TEST_CASE_FIXTURE(Fixture, "the reply of Q.ADD tells of the moment before its waiters are served") {
  wait_pop(1);
  const RespValue added = *run(0, {"Q.ADD", "q", "a", ""});
  CHECK(added.field("state") == "pending");
  CHECK(added.field("position") == "0");
  CHECK(served() == "1=a");
  CHECK(run(0, {"Q.GET", "q", "a"})->field("state") == "active");
}

TEST_CASE_FIXTURE(Fixture, "a waiter that has given up or gone takes nothing along") {
  wait_pop(1);
  wait_pop(2);
  wait_pop(3);
  CHECK(give_up(1));
  disconnect(2);
  add("a");
  CHECK(served() == "3=a");
  CHECK(pop_ids() == "null");
}

TEST_CASE_FIXTURE(Fixture, "MATCH: the first job that anybody accepts, to the earliest who does") {
  wait_pop(1, {"MATCH", "gpu"});
  wait_pop(2);
  wait_pop(3, {"MATCH", "gpu", "MATCH", "arm"});
  add("a", {"KEY", "x86"});
  CHECK(served() == "2=a");
  add("b", {"KEY", "x86"});
  CHECK(served().empty());
  add("c", {"KEY", "gpu"});
  CHECK(served() == "1=c");
  add("d", {"KEY", "arm", "KEY", "x86"});
  CHECK(served() == "3=d");

  // Several at once: dispatch order decides which job, arrival decides which waiter.
  pop_ids();
  ask({"Q.CONFIG", "q", "SET", "paused", "out"});
  wait_pop(1, {"MATCH", "gpu"});
  wait_pop(2);
  add("e", {"KEY", "gpu", "PRI", "LOW"});
  add("f", {"KEY", "gpu"});
  CHECK(served().empty());
  ask({"Q.CONFIG", "q", "SET", "paused", "none"});
  CHECK(served() == "1=f 2=e");
}

TEST_CASE_FIXTURE(Fixture,
                  "MATCH: of two kinds of pops the one with the more urgent job is served") {
  ask({"Q.CONFIG", "q", "SET", "max_active", "1"});
  add("running");
  CHECK(pop_ids() == "running");
  wait_pop(1, {"MATCH", "cpu"});
  wait_pop(2, {"MATCH", "gpu"});
  // The less urgent job has the earlier rank, and its pop came first.
  add("early", {"KEY", "cpu", "PRI", "low"});
  add("urgent", {"KEY", "gpu", "PRI", "high"});
  CHECK(served() == "");
  ack("running");
  CHECK(served() == "2=urgent");
  ack("urgent");
  CHECK(served() == "1=early");
}

TEST_CASE_FIXTURE(Fixture, "CAP: who accepts fewer running jobs waits while others go on") {
  wait_pop(1, {"CAP", "1"});
  add("a");
  CHECK(served() == "1=a");
  wait_pop(1, {"CAP", "1"});
  wait_pop(2, {"CAP", "2"});
  wait_pop(3);
  add("b");
  CHECK(served() == "2=b");
  add("c");
  CHECK(served() == "3=c");
  add("d");
  CHECK(served().empty());
  ack("a");
  ack("b");
  CHECK(served().empty());
  ack("c");
  CHECK(served() == "1=d");
}

TEST_CASE_FIXTURE(Fixture, "freed slots and the end of a delay serve waiters") {
  ask({"Q.CONFIG", "q", "SET", "max_active", "1"});
  add("a");
  CHECK(pop_ids() == "a");
  wait_pop(1);
  wait_pop(2);
  add("b");
  add("c", {"DELAY", "500"});
  CHECK(served().empty());
  ack("a");
  CHECK(served() == "1=b");
  ack("b");
  CHECK(served().empty());
  pass(499);
  CHECK(served().empty());
  pass(1);
  CHECK(served() == "2=c");
  // When a lease expires, its job goes to a waiting pop.
  wait_pop(1);
  pass(30'000);
  CHECK(served() == "1=c");
}

TEST_CASE_FIXTURE(Fixture, "ID: the queue as a semaphore, in dispatch order") {
  ask({"Q.CONFIG", "q", "SET", "max_active", "1"});
  for (const char* id : {"a", "b", "c"}) add(id);
  CHECK(pop_ids({"ID", "a"}) == "a");
  wait_pop(3, {"ID", "c"});
  wait_pop(2, {"ID", "b"});
  ack("a");
  CHECK(served() == "2=b");
  ack("b");
  CHECK(served() == "3=c");
  CHECK(pop_ids({"ID", "c"}) == "-GONE id=c state=active");
  ack("c");
  CHECK(pop_ids({"ID", "c"}) == "-GONE id=c state=completed");
  CHECK(pop_ids({"ID", "never"}) == "-GONE id=never state=unknown");
}

TEST_CASE_FIXTURE(Fixture, "ID: a later job is given where nobody waits for those before it") {
  ask({"Q.CONFIG", "q", "SET", "paused", "out"});
  for (const char* id : {"a", "b", "c"}) add(id);
  wait_pop(1, {"ID", "c"});
  wait_pop(2, {"ID", "b", "CAP", "1"});
  ask({"Q.CONFIG", "q", "SET", "paused", "none"});
  CHECK(served() == "1=c 2=b");
  CHECK(pop_ids() == "a");
}

TEST_CASE_FIXTURE(Fixture, "ID: an end without a run, or another worker, is told as GONE") {
  ask({"Q.CONFIG", "q", "SET", "paused", "out"});
  add("a", {"TTL", "100"});
  add("b");
  add("c");
  add("d");
  wait_pop(5);
  wait_pop(1, {"ID", "a"});
  wait_pop(2, {"ID", "b"});
  wait_pop(3, {"ID", "c"});
  wait_pop(4, {"ID", "d"});
  pass(100);
  CHECK(served() == "1=-GONE id=a state=expired");
  CHECK(ask({"Q.CANCEL", "q", "b"}) == "cancelled");
  CHECK(served() == "2=-GONE id=b state=cancelled");
  // Both accept c: the earlier waiter gets it, the other one is told that it is gone.
  CHECK(ask({"Q.MOVE", "q", "c", "FRONT"}) == "0");
  ask({"Q.CONFIG", "q", "SET", "paused", "none"});
  CHECK(served() == "3=-GONE id=c state=active 4=d 5=c");
}

TEST_CASE_FIXTURE(Fixture, "several queues: one claim, and the first that has a job") {
  wait(1, {"Q.POP", "3", "q", "r", "q", "BLOCK", "0"});
  wait(2, {"Q.POP", "1", "r", "BLOCK", "0"});
  ask({"Q.ADD", "r", "a", ""});
  CHECK(served() == "1=a");
  ask({"Q.ADD", "q", "b", ""});
  ask({"Q.ADD", "r", "c", ""});
  CHECK(served() == "2=c");
  const RespValue jobs = *run(1, {"Q.POP", "2", "r", "q", "COUNT", "5"});
  CHECK(jobs.items.at(0).field("queue") == "q");
  CHECK(ids_of(jobs) == "b");
  CHECK(ask({"Q.POP", "2", "r", "q", "ID", "b"}) == "-BADFIELD field=id");
}

TEST_CASE_FIXTURE(Fixture, "a queue that goes: pops wait on, who waits for one job is answered") {
  add("a", {"DELAY", "1000"});
  wait_pop(1);
  wait_pop(2, {"ID", "a"});
  wait(3, {"Q.GET", "q", "a", "WAIT", "0"});
  CHECK(ask({"DEL", "q"}) == "1");
  CHECK(served() == "2=-GONE id=a state=unknown 3=null");
  add("b");
  CHECK(served() == "1=b");
  wait_pop(1);
  add("c", {"DELAY", "1000"});
  wait_pop(2, {"ID", "c"});
  wait(3, {"Q.GET", "q", "c", "WAIT", "0"});
  CHECK(ask({"PEXPIRE", "q", "100"}) == "1");
  pass(100);
  CHECK(served() == "2=-GONE id=c state=unknown 3=null");
  CHECK(ask({"FLUSHALL"}) == "OK");
  CHECK(served().empty());
  ask({"Q.ADD", "other", "c", ""});
  CHECK(ask({"RENAME", "other", "q"}) == "OK");
  CHECK(served() == "1=c");
}

TEST_CASE_FIXTURE(Fixture, "Q.GET WAIT hears the end of its job, and of no other") {
  add("a");
  add("b");
  wait(1, {"Q.GET", "q", "b", "WAIT", "0"});
  pop_ids({"COUNT", "2"});
  ack("a");
  CHECK(served().empty());
  REQUIRE(ask({"Q.ACK", "q", "b", lease_of("b"), "RESULT", "fine"}) == "OK");
  const auto replies = take_deliveries();
  REQUIRE(replies.size() == 1);
  CHECK(replies.at(1).field("state") == "completed");
}

TEST_CASE_FIXTURE(Fixture,
                  "Q.GET WAIT hears the end also of what is not kept, or has a successor") {
  const Words get{"Q.GET", "q", "a", "WITH", "result", "WITH", "payload", "WAIT", "0"};
  const auto told = [&](const std::string& field) {
    const auto replies = take_deliveries();
    return replies.contains(1) ? replies.at(1).field(field) : "nothing";
  };
  ask({"Q.CONFIG", "q", "SET", "retain_completed", "0", "retain_failed", "0"});
  ask({"Q.ADD", "q", "a", "first"});
  wait(1, get);
  pop_ids();
  REQUIRE(ask({"Q.ACK", "q", "a", lease_of("a"), "RESULT", "fine"}) == "OK");
  CHECK(told("result") == "fine");
  CHECK(ask(get) == "null");

  ask({"Q.ADD", "q", "a", "second"});
  wait(1, get);
  pop_ids();
  ask({"Q.ADD", "q", "a", "third", "IFDUP", "UPDATE"});
  CHECK(told("state") == "nothing");
  REQUIRE(ask({"Q.ACK", "q", "a", lease_of("a"), "RESULT", "of second"}) == "OK");
  CHECK(told("payload") == "second");
  // A failed run that is retried is not an end; nor is one with a successor, which continues.
  wait(1, get);
  pop_ids();
  ask({"Q.ADD", "q", "a", "fourth", "IFDUP", "UPDATE"});
  REQUIRE(ask({"Q.NACK", "q", "a", lease_of("a"), "SILENT"}) != "");
  CHECK(told("state") == "nothing");
  ask({"Q.ADD", "q", "a", "fifth", "IFDUP", "REPLACE"});
  const auto replaced = take_deliveries();
  REQUIRE(replaced.contains(1));
  CHECK(replaced.at(1).field("state") == "cancelled");
  CHECK(replaced.at(1).field("error") == "replaced");
  CHECK(replaced.at(1).field("payload") == "fourth");

  // Later events in the same transaction are not its end.
  ask({"Q.CONFIG", "q", "SET", "retain_completed", "10"});
  wait(1, get);
  ask({"MULTI"});
  ask({"Q.CANCEL", "q", "a", "REASON", "first"});
  ask({"Q.RETRY", "q", "a"});
  ask({"EXEC"});
  CHECK(told("error") == "first");
}

TEST_CASE_FIXTURE(Fixture, "REQID: the same request once more ends the older waiting") {
  const Words reqid{"WORKER", "w", "REQID", "1"};
  wait_pop(1, reqid);
  wait_pop(2, {"WORKER", "v", "REQID", "1"});
  wait_pop(3, reqid);
  CHECK(served() == "1=null");
  add("a");
  CHECK(served() == "2=a");
  add("b");
  CHECK(served() == "3=b");
  // Its reply was lost: the same job, the same lease, the full term.
  const std::string lease = lease_of("b");
  pass(20'000);
  CHECK(pop_ids(reqid) == "b");
  CHECK(lease_of("b") == lease);
  pass(20'000);
  CHECK(lease_of("b") == lease);
  CHECK(ask({"Q.POP", "1", "q", "REQID", "1"}) == "-BADFIELD field=worker");
}

TEST_CASE_FIXTURE(Fixture, "names of a pop are told apart wherever one ends and the next begins") {
  wait_pop(1, {"WORKER", "w1", "REQID", "23"});
  wait_pop(2, {"WORKER", "w12", "REQID", "3"});
  CHECK(served().empty());
  wait_pop(3, {"MATCH", "arm gpu"});
  wait_pop(4, {"MATCH", "arm", "MATCH", "gpu"});
  add("a");
  add("b");
  CHECK(served() == "1=a 2=b");
  add("c", {"KEY", "gpu"});
  CHECK(served() == "4=c");
  add("d", {"KEY", "arm gpu"});
  CHECK(served() == "3=d");
}

TEST_CASE_FIXTURE(Fixture, "REQID finds its jobs again in whichever queue they were") {
  ask({"Q.ADD", "r", "a", ""});
  const Words pop{"Q.POP", "2", "q", "r", "WORKER", "w", "REQID", "1"};
  CHECK(ids_of(*run(1, pop)) == "a");
  add("b");
  CHECK(ids_of(*run(1, pop)) == "a");
  CHECK(pop_ids() == "b");
}

TEST_CASE_FIXTURE(Fixture, "Q.ACK POP: one step, waits, and may be repeated") {
  add("a");
  add("b");
  pop_ids();
  const std::string lease = lease_of("a");
  const Words next{"POP", "WORKER", "w", "REQID", "7", "BLOCK", "0"};
  const auto ack_pop = [&](const std::string& id, const std::string& token) {
    Words words{"Q.ACK", "q", id, token};
    words.insert(words.end(), next.begin(), next.end());
    return words;
  };
  CHECK(ask(ack_pop("a", std::to_string(std::stoll(lease) + 5))).starts_with("-STALELEASE"));
  CHECK(run(0, {"Q.GET", "q", "b"})->field("state") == "pending");
  CHECK(ids_of(*run(1, ack_pop("a", lease))) == "b");
  CHECK(ids_of(*run(2, ack_pop("a", lease))) == "b");
  CHECK(run(0, {"Q.STATS", "q"})->field("completed") == "1");

  // No longer retained: only the token shows that it is the same request.
  ask({"Q.CONFIG", "q", "SET", "retain_completed", "0"});
  const std::string last = lease_of("b");
  Words words{"Q.ACK", "q", "b", last, "POP", "WORKER", "w", "REQID", "8", "BLOCK", "0"};
  wait(1, words);
  CHECK(ask({"Q.GET", "q", "b"}) == "null");
  wait(2, words);
  CHECK(served() == "1=null");
  add("c");
  CHECK(served() == "2=c");
}

TEST_CASE_FIXTURE(Fixture,
                  "in transactions and scripts nobody blocks, and waiters are served after") {
  wait_pop(1);
  ask({"MULTI"});
  ask({"Q.ADD", "q", "a", ""});
  ask({"Q.POP", "1", "q", "BLOCK", "0"});
  ask({"Q.POP", "1", "q", "BLOCK", "0"});
  ask({"Q.ADD", "q", "b", ""});
  const RespValue results = *run(0, {"EXEC"});
  CHECK(ids_of(results.items.at(1)) == "a");
  CHECK(results.items.at(2).is_null());
  CHECK(served() == "1=b");

  wait_pop(1);
  const std::string script =
      "redis.call('Q.ADD', KEYS[1], 'c', 'x') "
      "local jobs = redis.call('Q.POP', 1, KEYS[1], 'BLOCK', 0) "
      "local none = redis.call('Q.POP', 1, KEYS[1], 'BLOCK', 0) "
      "redis.call('Q.ADD', KEYS[1], 'd', 'x') "
      "return {jobs[1][4], tostring(none)}";
  CHECK(ask({"EVAL", script, "1", "q"}) == "[c false]");
  CHECK(served() == "1=d");
}

TEST_CASE_FIXTURE(Fixture, "a key of another type is no queue, and its waiters are their own") {
  wait(1, {"BLPOP", "q", "0"});
  wait_pop(2);
  ask({"RPUSH", "q", "x", "y"});
  CHECK(take_deliveries().at(1).show() == "[q x]");
  CHECK(ask({"Q.POP", "1", "q"}).starts_with("-WRONGTYPE"));
  CHECK(ask({"Q.ADD", "q", "a", ""}).starts_with("-WRONGTYPE"));
  ask({"DEL", "q"});
  add("a");
  CHECK(served() == "2=a");
}

TEST_CASE("a waiter ends once: it is served, or it has gone") {
  for (const bool pops : {false, true}) {
    Waiter gone;
    gone.queue.pops = pops;
    CHECK(gone.give_up());
    CHECK_FALSE(gone.claim());
    CHECK_FALSE(gone.is_waiting());
    Waiter served;
    served.queue.pops = pops;
    CHECK(served.claim());
    CHECK_FALSE(served.give_up());
    CHECK_FALSE(served.claim());
  }
}

TEST_CASE("Q.ACK ... POP takes the options of Q.POP: MATCH, CAP, ID, COUNT and BLOCK") {
  QueueTalk q;
  q.add("a");
  REQUIRE(q.pop() == "a");
  q.add("java", "KEY lang:java");
  q.add("go", "KEY lang:go");
  q.add("c", "KEY lang:c KEY os:linux");
  const auto ack_pop = [&](const std::string& id, const std::string& options) {
    return q.ids_of(q.ask("Q.ACK q " + id + " " + q.lease(id) + " POP " + options));
  };
  CHECK(ack_pop("a", "MATCH lang:go MATCH os:linux") == "go");
  // The acknowledgement takes effect though no job is accepted.
  CHECK(ack_pop("go", "MATCH lang:none") == "null");
  CHECK(q.state("go") == "completed");
  REQUIRE(q.pop("MATCH os:linux") == "c");
  CHECK(q.say_as(1, "Q.ACK q c " + q.lease("c") + " POP MATCH lang:go BLOCK 0") == "(waits)");
  CHECK(q.state("c") == "completed");
  q.add("other", "KEY lang:rust");
  CHECK(q.take_deliveries().empty());
  q.add("late", "KEY lang:go");
  const auto told = q.take_deliveries();
  REQUIRE(told.size() == 1);
  CHECK(q.ids_of(told.at(1)) == "late");
  CHECK(ack_pop("late", "MATCH lang:java MATCH lang:rust COUNT 5") == "java other");
  CHECK(ack_pop("java", "MATCH lang:java CAP 9") == "null");
}

TEST_CASE("who has lost the right to a command gets nothing more from it") {
  QueueTalk q;
  q.say("ACL SETUSER eve on nopass ~q +@all");
  q.session(1).client.user = q.engine().acl().find("eve");
  q.session(2).client.user = q.engine().acl().find("eve");
  CHECK(q.say_as(1, "Q.POP 1 q BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.ADD q done x DELAY 1000 WAIT 0") == "(waits)");
  CHECK(q.say_as(3, "Q.POP 1 q BLOCK 0") == "(waits)");
  q.say("ACL SETUSER eve resetkeys ~other");
  q.add("a");
  q.say("Q.CANCEL q done");
  const auto told = q.take_deliveries();
  REQUIRE(told.size() == 3);
  CHECK(told.at(1).show().rfind("-NOPERM", 0) == 0);
  CHECK(told.at(2).show().find("-NOPERM") != std::string::npos);
  CHECK(q.ids_of(told.at(3)) == "a");
}

namespace {

const WaiterLists& waiters_at(QueueServer& server,
                              const std::string& key) NO_THREAD_SAFETY_ANALYSIS {
  return server.engine().shard(KeyRef(key).shard).waiters;
}

}  // namespace

TEST_CASE("who waits for several jobs leaves nothing behind, however the waiting ends") {
  for (const std::string how : {"served", "gives up", "is lost"}) {
    CAPTURE(how);
    QueueTalk q;
    q.add("a b c");
    CHECK(q.say_as(1, "Q.EVENTS q $ ID a ID b ID c TYPE cancelled BLOCK 0") == "(waits)");
    REQUIRE(waiters_at(q, "q").find_queue(0, "q") != nullptr);
    if (how == "served") {
      q.say("Q.CANCEL q b");
      CHECK(q.take_deliveries().size() == 1);
    } else if (how == "gives up") {
      CHECK(q.give_up(1));
    } else {
      q.disconnect(1);
    }
    CHECK(waiters_at(q, "q").find_queue(0, "q") == nullptr);
    CHECK(waiters_at(q, "q").empty());
  }
}

TEST_CASE("a list needs other shards for as long as somebody waits to move its elements") {
  for (const std::string how : {"served", "gives up"}) {
    CAPTURE(how);
    QueueTalk q;
    std::string to = "to";
    while (KeyRef(to).shard == KeyRef("from").shard) to += '+';
    CHECK(q.say_as(1, "BLMOVE from " + to + " LEFT RIGHT 0") == "(waits)");
    CHECK(waiters_at(q, "from").need_other_shards());
    if (how == "served") {
      q.say("RPUSH from a");
      CHECK(q.take_deliveries().at(1).show() == "a");
    } else {
      CHECK(q.give_up(1));
    }
    CHECK_FALSE(waiters_at(q, "from").need_other_shards());
    CHECK(waiters_at(q, "from").empty());
  }
}

// A job of the same id in the next queue of that name is another job.
TEST_CASE("a wait ends with its queue, also if another queue takes the name at once") {
  const std::vector<std::vector<std::string>> cases{
      {"RENAME other q"},
      {"COPY other q REPLACE"},
      {"SWAPDB 0 1"},
      {"MULTI", "DEL q", "Q.ADD q a x", "Q.ADD q b x", "EXEC"},
      {"MULTI", "FLUSHALL", "Q.ADD q a x", "Q.ADD q b x", "EXEC"},
      {"MULTI", "RENAME other q", "Q.CANCEL q a", "Q.CANCEL q b", "EXEC"}};
  for (const std::vector<std::string>& commands : cases) {
    CAPTURE(commands.back());
    QueueTalk q;
    q.say("Q.CONFIG q SET paused out");
    q.say("Q.ADD q a x");
    for (const char* words : {"Q.ADD other a x", "Q.ADD other b x", "SELECT 1", "Q.ADD q a x",
                              "Q.ADD q b x", "SELECT 0"}) {
      q.say(words);
    }
    CHECK(q.say_as(1, "Q.GET q a WAIT 0") == "(waits)");
    CHECK(q.say_as(2, "Q.ADD q b x WAIT 0") == "(waits)");
    CHECK(q.say_as(3, "Q.LOG q a BLOCK 0") == "(waits)");
    for (const std::string& words : commands) q.say(words);
    const auto told = q.take_deliveries();
    REQUIRE(told.size() == 3);
    CHECK(told.at(1).show() == "null");
    CHECK(told.at(2).items.at(1).is_null());
    CHECK(told.at(3).show() == "null");
  }
}

}  // namespace sluice::test
