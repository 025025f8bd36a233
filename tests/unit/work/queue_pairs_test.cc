// Q.ACK, Q.NACK and Q.TOUCH of several jobs in one command.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::ByteBuffer;
using sluice::RespReply;
using sluice::test::QueueTalk;

struct Fixture : QueueTalk {
  // `id lease` of jobs that were popped, with AND between them.
  std::string pairs(const std::string& ids, const std::string& options = "") {
    std::string out;
    for (const std::string& id : words(ids)) {
      out += (out.empty() ? "" : " AND ") + id + " " + lease(id);
      if (!options.empty()) out += " " + options;
    }
    return out;
  }
  std::string ack_all(const std::string& ids, const std::string& options = "") {
    return say("Q.ACK q " + pairs(ids) + " " + options);
  }
  // What a waiting connection is told when its time is up.
  std::string timed_out(size_t connection) {
    const auto waiter = session(connection).client.waiter;
    REQUIRE(waiter != nullptr);
    REQUIRE(give_up(connection));
    ByteBuffer bytes;
    RespReply reply(bytes, waiter->protocol);
    waiter->reply_timeout(reply);
    return sluice::test::resp_value(bytes.view()).show();
  }
  // What a waiting connection has been told, a job as its id.
  std::string heard(int connection) {
    const auto deliveries = take_deliveries();
    const auto found = deliveries.find(connection);
    return found == deliveries.end() ? "(nothing)" : answered(found->second);
  }
  // The reply of Q.ACK ... AND ... POP: "[OK OK] a b".
  std::string answered(const sluice::test::RespValue& reply) {
    if (reply.kind != sluice::test::RespValue::Kind::kArray) return reply.show();
    REQUIRE(reply.items.size() == 2);
    return reply.items[0].show() + " " + ids_of(reply.items[1]);
  }
};

// --- Q.ACK ---

TEST_CASE_FIXTURE(Fixture, "several jobs are acknowledged, and one does not hinder another") {
  add("a b c d");
  CHECK(pop("COUNT 3") == "a b c");
  CHECK(say("Q.ACK q a " + lease("a") + " RESULT ra AND nosuch 1 AND b 999 AND d 1 AND c " +
            lease("c") + " RESULT rc") ==
        "[OK -NOJOB id=nosuch -STALELEASE id=b state=active -STALELEASE id=d state=pending OK]");
  CHECK(job("a", {"state", "result"}) == "completed ra");
  CHECK(job("c", {"state", "result"}) == "completed rc");
  CHECK(state("b") == "active");
  CHECK(stat("completed") == "2");
  CHECK(ack_all("a b c") == "[OK OK OK]");
  CHECK(stat("completed") == "3");
  restart(4);
  CHECK(job("c", {"state", "result"}) == "completed rc");
  CHECK(ack_all("a b c") == "[OK OK OK]");
}

TEST_CASE_FIXTURE(Fixture, "an id may be a word of the grammar") {
  add("AND POP RESULT WORKER LEASE SILENT");
  CHECK(pop("COUNT 9") == "AND POP RESULT WORKER LEASE SILENT");
  CHECK(say("Q.TOUCH q " + pairs("AND LEASE WORKER POP", "LEASE 1000")) ==
        "[f [null null null null]]");
  CHECK(say("Q.NACK q " + pairs("SILENT LEASE", "SILENT")) ==
        "[{state=pending not_before=null attempts_left=1} "
        "{state=pending not_before=null attempts_left=1}]");
  CHECK(say("Q.ACK q AND " + lease("AND") + " RESULT AND AND POP " + lease("POP") + " AND RESULT " +
            lease("RESULT") + " RESULT POP AND WORKER " + lease("WORKER") + " POP MATCH k") ==
        "[[OK OK OK OK] null]");
  CHECK(job("AND", {"result"}) == "AND");
  CHECK(job("RESULT", {"result"}) == "POP");
}

TEST_CASE_FIXTURE(Fixture, "whatever is wrong in a pair is found before anything is done") {
  add("a b");
  CHECK(pop("COUNT 2") == "a b");
  const std::string first = "a " + lease("a");
  const std::string second = "b " + lease("b");
  for (const char* command : {"Q.ACK", "Q.NACK", "Q.TOUCH"}) {
    const std::string start = std::string(command) + " q " + first;
    CHECK(say(start + " AND") == "-ERR syntax error");
    CHECK(say(start + " AND b") == "-ERR syntax error");
    CHECK(say(start + " AND " + second + " NOSUCH") == "-ERR syntax error");
    CHECK(say(start + " AND " + second + " AND " + first) == "-BADFIELD field=id");
    CHECK(say(start + " AND a 1") == "-BADFIELD field=id");
    CHECK(say(start + " AND ALL 1") == "-BADFIELD field=id");
    CHECK(say(start + " AND '' 1") == "-BADFIELD field=id");
    CHECK(say(start + " AND b x") == "-BADFIELD field=lease");
    CHECK(say(start + " AND b 0") == "-BADFIELD field=lease");
  }
  CHECK(say("Q.ACK q " + first + " AND " + second + " RESULT") == "-ERR syntax error");
  CHECK(say("Q.ACK q " + first + " POP AND " + second) == "-ERR syntax error");
  CHECK(say("Q.ACK q " + first + " AND " + second + " POP COUNT 0") == "-BADFIELD field=count");
  CHECK(say("Q.ACK q " + first + " AND " + second + " POP REQID r") == "-BADFIELD field=worker");
  CHECK(say("Q.NACK q " + first + " SILENT AND " + second + " FAIL FATAL") == "-ERR syntax error");
  CHECK(say("Q.TOUCH q " + first + " AND " + second + " LEASE 1") == "-BADFIELD field=lease");
  CHECK(say("Q.TOUCH q " + first + " LEASE 604800001") == "-BADFIELD field=lease");
  CHECK(say("Q.TOUCH q " + first + " WORKER ''") == "-BADFIELD field=worker");
  CHECK(state("a") == "active");
  CHECK(state("b") == "active");
  CHECK(say("Q.NACK q " + first + " SILENT AND " + second + " FATAL") ==
        "[{state=pending not_before=null attempts_left=1} "
        "{state=failed not_before=null attempts_left=0}]");
}

TEST_CASE_FIXTURE(Fixture, "at most 256 pairs") {
  std::string ids;
  for (int i = 0; i < 257; ++i) ids += "j" + std::to_string(i) + " ";
  add(ids);
  pop("COUNT 256");
  pop();
  CHECK(ack_all(ids) == "-BADFIELD field=and");
  CHECK(say("Q.TOUCH q " + pairs(ids)) == "-BADFIELD field=and");
  CHECK(say("Q.NACK q " + pairs(ids)) == "-BADFIELD field=and");
  CHECK(stat("active") == "257");
  const std::string most = ids.substr(0, ids.rfind("j256"));
  CHECK(ask("Q.TOUCH q " + pairs(most)).items.at(1).items.size() == 256);
  CHECK(ask("Q.ACK q " + pairs(most)).items.size() == 256);
  CHECK(stat("active") == "1");
  CHECK(stat("completed") == "256");
}

TEST_CASE_FIXTURE(Fixture, "a result or progress that is too large is an error of its pair") {
  say("Q.CONFIG q SET max_payload 3");
  say("Q.ADD q a x");
  say("Q.ADD q b x");
  say("Q.ADD q c x");
  CHECK(pop("COUNT 2") == "a b");
  CHECK(say("Q.TOUCH q a " + lease("a") + " PROGRESS long AND b " + lease("b") + " PROGRESS x") ==
        "[f [-TOOBIG limit=3 null]]");
  CHECK(job("b", {"progress"}) == "x");
  CHECK(answered(ask("Q.ACK q a " + lease("a") + " RESULT long AND b " + lease("b") +
                     " RESULT x POP")) == "[-TOOBIG limit=3 OK] c");
  CHECK(state("a") == "active");
  // Alone it is the reply, and nothing is popped.
  add("d");
  CHECK(ack("a", "RESULT long POP") == "-TOOBIG limit=3");
  CHECK(state("d") == "pending");
}

TEST_CASE_FIXTURE(Fixture, "without a queue, and with another type") {
  CHECK(say("Q.ACK q a 1 AND b 2") == "[-NOJOB id=a -NOJOB id=b]");
  CHECK(say("Q.NACK q a 1 AND b 2") == "[-NOJOB id=a -NOJOB id=b]");
  CHECK(say("Q.TOUCH q a 1 AND b 2 WORKER w") == "[f [-NOJOB id=a -NOJOB id=b]]");
  CHECK(say("Q.ACK q a 1 AND b 2 POP") == "[[-NOJOB id=a -NOJOB id=b] null]");
  CHECK(say("Q.ACK q a 1 AND b 2 POP ID c") ==
        "[[-NOJOB id=a -NOJOB id=b] -GONE id=c state=unknown]");
  CHECK(say("EXISTS q") == "0");
  say("SET s x");
  CHECK(say("Q.ACK s a 1 AND b 2 POP").rfind("-WRONGTYPE", 0) == 0);
  say("ZADD waiting 1 m");
  say("Q.ADOPT adopted PENDING waiting ACTIVE running");
  CHECK(say("Q.ACK adopted a 1 AND b 2 POP") == "-ADOPTED");
}

TEST_CASE_FIXTURE(Fixture, "the star is the current lease of each pair, unless fencing is on") {
  add("a b");
  CHECK(pop("COUNT 2") == "a b");
  CHECK(say("Q.ACK q a * AND b " + lease("b")) == "[-BADFIELD field=lease OK]");
  say("Q.CONFIG q SET fencing off");
  CHECK(say("Q.TOUCH q a * AND b *") == "[f [null -STALELEASE id=b state=completed]]");
  CHECK(say("Q.ACK q a * AND b *") == "[OK -STALELEASE id=b state=completed]");
}

// --- With POP ---

TEST_CASE_FIXTURE(Fixture, "the pop takes place whatever the pairs were answered") {
  add("a b c");
  CHECK(pop() == "a");
  CHECK(answered(ask("Q.ACK q nosuch 1 AND a 999 POP")) ==
        "[-NOJOB id=nosuch -STALELEASE id=a state=active] b");
  CHECK(answered(ask("Q.ACK q " + pairs("a b") + " POP COUNT 5 WORKER w")) == "[OK OK] c");
  CHECK(say("Q.ACK q c " + lease("c") + " AND x 1 POP") == "[[OK -NOJOB id=x] null]");
  // One pair has the shape that it always had.
  add("d e");
  CHECK(pop() == "d");
  CHECK(ids_of(ask("Q.ACK q d " + lease("d") + " POP")) == "e");
  CHECK(ack("e", "POP") == "null");
  CHECK(say("Q.ACK q e 999 POP") == "-STALELEASE id=e state=completed");
}

TEST_CASE_FIXTURE(Fixture, "the slots of all pairs are free for the pop") {
  say("Q.CONFIG q SET max_active 2");
  add("a b c d");
  CHECK(pop("COUNT 9") == "a b");
  CHECK(answered(ask("Q.ACK q " + pairs("a b") + " POP COUNT 9")) == "[OK OK] c d");
}

TEST_CASE_FIXTURE(Fixture, "a pop that waits keeps the answers, however it ends") {
  add("a b");
  CHECK(pop("COUNT 2") == "a b");
  const std::string line = "Q.ACK q " + pairs("a b") + " AND x 1 POP BLOCK 0 WORKER w ";
  const std::string told = "[OK OK -NOJOB id=x]";
  CHECK(say_as(1, line) == "(waits)");
  CHECK(state("a") == "completed");
  SUBCASE("served") {
    add("c");
    CHECK(heard(1) == told + " c");
  }
  SUBCASE("timed out") { CHECK(timed_out(1) == "[" + told + " null]"); }
  SUBCASE("the queue is deleted and comes back") {
    say("DEL q");
    CHECK(heard(1) == "(nothing)");
    add("c");
    CHECK(heard(1) == told + " c");
  }
  SUBCASE("the connection dies") {
    disconnect(1);
    add("c");
    CHECK(state("c") == "pending");
    CHECK(state("a") == "completed");
    CHECK(stat("waiting_pops") == "0");
  }
  SUBCASE("a restart") {
    restart(4);
    CHECK(state("a") == "completed");
    add("c");
    CHECK(heard(1) == "(nothing)");
    CHECK(pop() == "c");
  }
}

TEST_CASE_FIXTURE(Fixture, "a pop by ID that waits tells of its job's end behind the answers") {
  say("Q.CONFIG q SET max_active 1");
  add("a b c");
  CHECK(pop() == "a");
  CHECK(say_as(1, "Q.ACK q x 1 AND y 2 POP ID c BLOCK 0") == "(waits)");
  const std::string told = "[-NOJOB id=x -NOJOB id=y] ";
  SUBCASE("served") {
    ack("a");
    ack("b");
    say("Q.CANCEL q b");
    CHECK(heard(1) == told + "c");
  }
  SUBCASE("cancelled") {
    say("Q.CANCEL q c");
    CHECK(heard(1) == told + "-GONE id=c state=cancelled");
  }
  SUBCASE("deleted") {
    say("DEL q");
    CHECK(heard(1) == told + "-GONE id=c state=unknown");
  }
  SUBCASE("replaced by another type") {
    say("MULTI");
    say("DEL q");
    say("SET q x");
    say("EXEC");
    const std::string all = heard(1);
    CHECK(all.rfind(told + "-WRONGTYPE", 0) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "a repeat skips what is done and returns the same jobs") {
  add("a b c");
  CHECK(pop("COUNT 2") == "a b");
  const std::string line = "Q.ACK q " + pairs("a b") + " POP WORKER w REQID r1";
  const std::string reply = answered(ask(line));
  CHECK(reply == "[OK OK] c");
  CHECK(answered(ask(line)) == reply);
  CHECK(stat("completed") == "2");
  CHECK(stat("started") == "3");
  // What the queue has forgotten is unknown to it.
  say("Q.PURGE q WHERE STATE completed");
  CHECK(answered(ask(line)) == "[-NOJOB id=a -NOJOB id=b] c");
}

TEST_CASE_FIXTURE(Fixture, "a repeat acknowledges no other run, where a star stands for a lease") {
  say("Q.CONFIG q SET fencing off");
  add("a b c");
  CHECK(pop("COUNT 2") == "a b");
  const std::string line = "Q.ACK q a * AND b " + lease("b") + " POP WORKER w REQID r1";
  CHECK(answered(ask(line)) == "[OK OK] c");
  CHECK(say("Q.ADD q a again IFDUP UPDATE", "result") == "added");
  CHECK(pop("WORKER other") == "a");
  CHECK(answered(ask(line)) == "[OK OK] c");
  CHECK(state("a") == "active");
}

TEST_CASE_FIXTURE(Fixture, "a repeat ends the pop that waits, which hears its own answers") {
  add("a b");
  CHECK(pop("COUNT 2") == "a b");
  const std::string line = "Q.ACK q " + pairs("a b") + " POP WORKER w REQID r1 BLOCK 0";
  CHECK(say_as(1, line) == "(waits)");
  say("Q.PURGE q WHERE ALL");
  CHECK(say_as(2, line) == "(waits)");
  CHECK(heard(1) == "[OK OK] null");
  // A plain pop of the same request as well.
  CHECK(say_as(3, "Q.POP 1 q WORKER w REQID r1") == "null");
  CHECK(heard(2) == "[-NOJOB id=a -NOJOB id=b] null");
}

TEST_CASE_FIXTURE(Fixture, "in MULTI and in scripts the shape is the same, and nothing waits") {
  add("a b c d e");
  CHECK(pop("COUNT 4") == "a b c d");
  say("MULTI");
  CHECK(say("Q.ACK q " + pairs("a b") + " POP BLOCK 0") == "QUEUED");
  CHECK(say("Q.ACK q " + pairs("c d") + " AND x 9 POP BLOCK 0") == "QUEUED");
  CHECK(say("Q.NACK q x 1 AND y 2") == "QUEUED");
  const auto done = ask("EXEC");
  CHECK(answered(done.items.at(0)) == "[OK OK] e");
  CHECK(answered(done.items.at(1)) == "[OK OK -NOJOB id=x] null");
  CHECK(done.items.at(2).show() == "[-NOJOB id=x -NOJOB id=y]");

  add("f g");
  CHECK(pop() == "f");
  const std::string script =
      "local r = redis.call('Q.ACK', KEYS[1], 'f', ARGV[1], 'AND', 'x', 1, 'POP', 'BLOCK', 0) "
      "local t = redis.call('Q.TOUCH', KEYS[1], 'g', r[2][1][6], 'AND', 'x', 1) "
      "return {r[1][1].ok, r[1][2].err, r[2][1][4], #t, t[2][2].err}";
  CHECK(sluice::test::resp_value(session(0).eval(script, {"q"}, {lease("f")})).show() ==
        "[OK NOJOB id=x g 2 NOJOB id=x]");
  CHECK(state("f") == "completed");
}

TEST_CASE_FIXTURE(Fixture, "behind the turns of others the answers wait too") {
  constexpr size_t kWaiting = 200;
  connect(kWaiting + 2);
  add("x y");
  CHECK(pop("COUNT 2") == "x y");
  say("Q.CONFIG q SET paused out");
  for (size_t i = 0; i < kWaiting; ++i) {
    say_as(i + 4, "Q.POP 1 q BLOCK 0");
    add("j" + std::to_string(i));
  }
  say("Q.CONFIG q SET paused none");
  const std::string line = "Q.ACK q " + pairs("x y") + " POP";
  SUBCASE("none is left for it") {
    CHECK(say_as(1, line) == "(waits)");
    CHECK(state("x") == "completed");
    run_timers();
    CHECK(heard(1) == "[OK OK] null");
  }
  SUBCASE("one is left") {
    add("last");
    CHECK(say_as(1, line) == "(waits)");
    run_timers();
    CHECK(heard(1) == "[OK OK] last");
  }
}

// --- Q.NACK and Q.TOUCH ---

TEST_CASE_FIXTURE(Fixture, "each pair of Q.NACK has its own options") {
  say("Q.CONFIG q SET retry 2");
  add("a b c");
  CHECK(pop("COUNT 3") == "a b c");
  const auto reply = ask("Q.NACK q a " + lease("a") + " SILENT AND b " + lease("b") +
                         " DELAY 500 ERROR e1 AND c " + lease("c") + " FATAL ERROR e2 AND x 1");
  CHECK(reply.items.at(0).show() == "{state=pending not_before=null attempts_left=3}");
  CHECK(reply.items.at(1).show() == "{state=delayed not_before=1700000000500 attempts_left=2}");
  CHECK(reply.items.at(2).show() == "{state=failed not_before=null attempts_left=0}");
  CHECK(reply.items.at(3).show() == "-NOJOB id=x");
  CHECK(job("b", {"error"}) == "e1");
  CHECK(job("c", {"error"}) == "e2");
}

TEST_CASE_FIXTURE(Fixture, "one Q.TOUCH extends several leases and tells which jobs have to stop") {
  add("a b c");
  CHECK(pop("COUNT 3") == "a b c");
  pass(20'000);
  say("Q.CANCEL q b REASON enough");
  CHECK(say("Q.TOUCH q a " + lease("a") + " LEASE 5000 PROGRESS half AND b " + lease("b") +
            " AND c 999 AND c2 1 WORKER w") ==
        "[f [null enough -STALELEASE id=c state=active -NOJOB id=c2]]");
  CHECK(job("a", {"progress", "lease_ms"}) == "half 5000");
  CHECK(say("Q.TOUCH q " + pairs("a c")) == "[f [null null]]");
  pass(10'001);
  CHECK(state("c") == "active");
  CHECK(state("b") == "cancelled");
  CHECK(state("a") == "pending");
}

TEST_CASE_FIXTURE(Fixture, "Q.TOUCH of one job shows `quiet` to a worker that says its name") {
  add("a");
  CHECK(pop() == "a");
  CHECK(touch("a") == "{left_ms=30000 cancel=null}");
  CHECK(touch("a", "WORKER w") == "{left_ms=30000 cancel=null quiet=f}");
  CHECK(touch("a", "WORKER w LEASE 1000") == "{left_ms=1000 cancel=null quiet=f}");
  CHECK(say("Q.TOUCH q a 999 WORKER w") == "-STALELEASE id=a state=active");
}

}  // namespace
