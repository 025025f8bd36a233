// The logs of jobs: Q.TOUCH ... LOG and Q.LOG.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using sluice::Job;
using sluice::JobLog;
using sluice::test::QueueTalk;
using sluice::test::QuietServer;
using sluice::test::RespValue;

// A queue whose job `a` is active.
struct Talk : QueueTalk {
  Talk() {
    add("a");
    pop();
  }
  void write(const std::string& bytes, const std::string& id = "a") {
    REQUIRE(run(0, {"Q.TOUCH", "q", id, lease(id), "LOG", bytes})->kind == RespValue::Kind::kMap);
  }
  std::string log(const std::string& options = "") { return say("Q.LOG q a " + options); }
  // What connection 1 is told.
  std::string told(int connection = 1) {
    const auto deliveries = take_deliveries();
    const auto found = deliveries.find(connection);
    return found == deliveries.end() ? "(nothing)" : found->second.show();
  }
  uint64_t usage() { return static_cast<uint64_t>(std::atoll(say("MEMORY USAGE q").c_str())); }
};

TEST_CASE("a log is read from any offset, in parts") {
  Talk q;
  CHECK(q.log() == "[0  0 f]");
  q.write("hello ");
  q.write("world");
  CHECK(q.log() == "[0 hello world 11 f]");
  CHECK(q.log("FROM 6") == "[6 world 11 f]");
  CHECK(q.log("COUNT 4") == "[0 hell 4 f]");
  CHECK(q.log("FROM 4 COUNT 4") == "[4 o wo 8 f]");
  CHECK(q.log("FROM 11") == "[11  11 f]");
  CHECK(q.say("Q.LOG q nobody") == "null");
  CHECK(q.say("Q.LOG r a") == "null");
  CHECK(q.say("EXISTS r") == "0");
  q.ack("a");
  CHECK(q.log("COUNT 4") == "[0 hell 4 f]");
  CHECK(q.log("FROM 4") == "[4 o world 11 t]");
  CHECK(q.log("FROM 11") == "[11  11 t]");
}

TEST_CASE("an offset beyond the end is answered with the end, at once") {
  Talk q;
  q.write("hello");
  for (const char* from : {"6", "9007199254740991"}) {
    CHECK(q.log(std::string("FROM ") + from) == "[5  5 f]");
    CHECK(q.log(std::string("BLOCK 0 FROM ") + from) == "[5  5 f]");
  }
}

TEST_CASE("a part has at most 65536 bytes, or COUNT, which may be a whole log") {
  Talk q;
  q.say("Q.CONFIG q SET log_bytes 1048576");
  q.write(std::string(70'000, 'x'));
  const auto size_of = [&](const std::string& options) {
    return q.ask("Q.LOG q a " + options).items.at(1).text.size();
  };
  CHECK(size_of("") == 65'536);
  CHECK(q.ask("Q.LOG q a").items.at(2).text == "65536");
  CHECK(size_of("FROM 65536") == 4'464);
  q.write(std::string(1'000'000, 'y'));
  CHECK(size_of("COUNT 1048576") == 1'048'576);
}

TEST_CASE("bad arguments") {
  Talk q;
  CHECK(q.log("FROM -1") == "-BADFIELD field=from");
  CHECK(q.log("FROM 9007199254740992") == "-BADFIELD field=from");
  CHECK(q.log("FROM 99999999999999999999") == "-BADFIELD field=from");
  CHECK(q.log("COUNT 0") == "-BADFIELD field=count");
  CHECK(q.log("COUNT 1048577") == "-BADFIELD field=count");
  CHECK(q.log("COUNT 1048576") == "[0  0 f]");
  CHECK(q.log("BLOCK -1") == "-BADFIELD field=block");
  CHECK(q.log("BLOCK") == "-ERR syntax error");
  CHECK(q.log("NOTHING") == "-ERR syntax error");
  CHECK(q.say("Q.LOG q ''") == "-BADFIELD field=id");
  CHECK(q.touch("a", "LOG") == "-ERR syntax error");
  CHECK(q.say("Q.TOUCH q a 99 LOG x") == "-STALELEASE id=a state=active");
  CHECK(q.log() == "[0  0 f]");
  q.say("Q.CONFIG q SET max_payload 10");
  CHECK(q.touch("a", "LOG 12345678901") == "-TOOBIG limit=10");
  CHECK(q.touch("a", "LOG 1234567890").front() == '{');
  q.say("SET string x");
  CHECK(q.say("Q.LOG string a").substr(0, 10) == "-WRONGTYPE");
  for (const char* field : {"1048577", "-1", "x"}) {
    CHECK(q.say(std::string("Q.CONFIG q SET log_bytes ") + field) == "-BADFIELD field=log_bytes");
  }
}

TEST_CASE("rights: Q.LOG reads, and like Q.ADD it may block") {
  Talk q;
  const auto is_in = [&](const std::string& category, const std::string& command) {
    const std::vector<RespValue> commands = q.ask("ACL CAT " + category).items;
    return std::any_of(commands.begin(), commands.end(),
                       [&](const RespValue& name) { return name.text == command; });
  };
  CHECK(is_in("read", "q.log"));
  CHECK_FALSE(is_in("write", "q.log"));
  CHECK(is_in("blocking", "q.log"));
  CHECK(is_in("write", "q.add"));
  CHECK(is_in("blocking", "q.add"));
}

TEST_CASE("ids may be words of the grammar") {
  Talk q;
  q.add("FROM LOG");
  q.pop("COUNT 2");
  q.say("Q.TOUCH q LOG " + q.lease("LOG") + " LOG LOG");
  CHECK(q.say("Q.LOG q LOG FROM 0") == "[0 LOG 3 f]");
  CHECK(q.say("Q.LOG q FROM FROM 0") == "[0  0 f]");
}

TEST_CASE("with AND each lease has a log of its own, and one that is refused hinders no other") {
  Talk q;
  q.add("b c");
  q.pop("COUNT 2");
  q.say("Q.CONFIG q SET max_payload 4");
  CHECK(q.say("Q.TOUCH q a " + q.lease("a") +
              " LOG one AND b 99 LOG two AND nobody 1 LOG x AND c " + q.lease("c") + " LOG AND") ==
        "[f [null -STALELEASE id=b state=active -NOJOB id=nobody null]]");
  CHECK(q.log() == "[0 one 3 f]");
  CHECK(q.say("Q.LOG q b") == "[0  0 f]");
  CHECK(q.say("Q.LOG q c") == "[0 AND 3 f]");
  CHECK(q.say("Q.TOUCH q a " + q.lease("a") + " LOG large AND c " + q.lease("c") + " LOG more") ==
        "[f [-TOOBIG limit=4 null]]");
  CHECK(q.log() == "[0 one 3 f]");
  CHECK(q.say("Q.LOG q c") == "[0 ANDmore 7 f]");
}

TEST_CASE("log_bytes bounds a log, and its oldest bytes go first") {
  Talk q;
  CHECK(q.say("Q.CONFIG q GET log_bytes") == "{log_bytes=16384}");
  q.say("Q.CONFIG q SET log_bytes 8");
  q.write("12345");
  q.write("678");
  CHECK(q.log() == "[0 12345678 8 f]");
  q.write("9");
  CHECK(q.log() == "[1 23456789 9 f]");
  CHECK(q.log("FROM 3 COUNT 2") == "[3 45 5 f]");
  // More than fits counts, though it is never there.
  q.write("abcdefghijkl");
  CHECK(q.log("FROM 9") == "[13 efghijkl 21 f]");
  q.find_queue("q")->check();
}

TEST_CASE("a bound below what is there applies when the log is written next") {
  Talk q;
  q.write("1234567890");
  q.say("Q.CONFIG q SET log_bytes 4");
  CHECK(q.log() == "[0 1234567890 10 f]");
  q.write("x");
  CHECK(q.log() == "[7 890x 11 f]");
  q.say("Q.CONFIG q SET log_bytes 0");
  q.write("dropped");
  CHECK(q.log() == "[7 890x 11 f]");
  q.say("Q.CONFIG q SET log_bytes 100");
  q.write("y");
  CHECK(q.log() == "[7 890xy 12 f]");
  q.restart(4);
  CHECK(q.log() == "[7 890xy 12 f]");
}

TEST_CASE("a log continues over the attempts of its job, and goes with it") {
  Talk q;
  q.say("Q.CONFIG q SET retry 5 backoff 0:0 crash_limit 5");
  q.write("1");
  q.nack("a");
  CHECK(q.log() == "[0 1 1 f]");
  q.pop("LEASE 1000");
  q.write("2");
  q.pass(1000);
  q.pop();
  q.write("3");
  q.nack("a", "SILENT");
  // An update of the waiting job keeps it.
  CHECK(q.say("Q.ADD q a other IFDUP UPDATE", "result") == "updated");
  q.pop();
  q.write("4");
  CHECK(q.log() == "[0 1234 4 f]");
  q.restart(4);
  CHECK(q.log() == "[0 1234 4 f]");
  q.restart_from_checkpoint(4);
  CHECK(q.log() == "[0 1234 4 f]");
  q.ack("a");
  q.say("Q.PURGE q WHERE ALL");
  CHECK(q.log() == "null");
  q.find_queue("q")->check();
}

TEST_CASE("Q.RETRY and a new job of the id begin anew, also after a restart") {
  const std::vector<std::vector<std::string>> ways = {
      {"ack", "Q.RETRY q a"},
      {"ack", "Q.ADD q a new IFDUP UPDATE"},
      {"ack", "Q.PURGE q WHERE ALL", "Q.ADD q a new"},
      {"nack", "Q.ADD q a new IFDUP REPLACE"},
      {"Q.ADD q a next IFDUP UPDATE", "ack"},
      {"Q.ADD q a next IFDUP UPDATE", "nack"},
      {"DEL q", "Q.ADD q a new"},
  };
  for (const auto& way : ways) {
    INFO(way.back());
    Talk q;
    q.write("old");
    for (const std::string& step : way) {
      if (step == "ack") {
        q.ack("a");
      } else if (step == "nack") {
        q.nack("a", "SILENT");
      } else {
        q.say(step);
      }
    }
    CHECK(q.log() == "[0  0 f]");
    q.restart(4);
    CHECK(q.log() == "[0  0 f]");
    q.pop();
    q.write("new");
    CHECK(q.log() == "[0 new 3 f]");
    q.restart(4);
    CHECK(q.log() == "[0 new 3 f]");
    q.restart_from_checkpoint(4);
    CHECK(q.log() == "[0 new 3 f]");
    q.find_queue("q")->check();
  }
}

TEST_CASE("a checkpoint that is written meanwhile has every byte once") {
  Talk q;
  q.say("Q.CONFIG q SET log_bytes 64");
  std::string ids;
  for (int i = 0; i < 600; ++i) ids += "j" + std::to_string(i) + " ";
  q.add(ids);
  for (int i = 0; i < 3; ++i) q.pop("COUNT 200");
  int step = 0;
  const auto meanwhile = [&](uint64_t) {
    for (int i = 0; i < 600; i += 7) {
      q.write("[" + std::to_string(step) + "]", "j" + std::to_string(i));
    }
    q.ack("j" + std::to_string(7 * step));
    q.say("Q.RETRY q j" + std::to_string(7 * step++));
    q.pop();
  };
  meanwhile(0);
  meanwhile(0);
  std::vector<std::string> before;
  const auto logs = [&] {
    std::vector<std::string> out;
    for (int i = 0; i < 600; ++i) out.push_back(q.say("Q.LOG q j" + std::to_string(i)));
    return out;
  };
  q.restart_from_checkpoint(4, [&](uint64_t records) {
    meanwhile(records);
    before = logs();
  });
  CHECK(step > 3);
  CHECK(logs() == before);
  q.find_queue("q")->check();
}

TEST_CASE("records of a log may be applied again, on later states, and after a gap") {
  JobLog log;
  log.write(0, "01234", 0);
  log.write(0, "01234", 0);
  log.write(2, "23456", 0);
  CHECK(log.bytes == "0123456");
  log.write(7, "789", 4);
  CHECK((log.offset == 4 && log.bytes == "456789"));
  log.write(0, "01234", 0);
  log.write(2, "23456", 1);
  CHECK((log.offset == 4 && log.bytes == "456789"));
  log.write(20, "abc", 20);
  CHECK((log.offset == 20 && log.bytes == "abc"));
  log.write(20, "abcdef", 24);
  CHECK((log.offset == 24 && log.bytes == "ef"));
  log.write(24, "efgh", 28);
  CHECK((log.offset == 28 && log.bytes.empty()));
}

TEST_CASE("in a LIFO group, whose jobs exchange tickets, each job keeps its own log") {
  QueueTalk q;
  q.say("Q.CONFIG q SET order lifo");
  q.add("a b c");
  std::string text;
  for (int i = 0; i < 9; ++i) {
    const std::string id = q.pop();
    q.run(0, {"Q.TOUCH", "q", id, q.lease(id), "LOG", id});
    q.nack(id, "SILENT");
    if (i % 3 == 1) q.say("Q.MOVE q b BACK");
  }
  const auto logs = [&] { return q.say("Q.LOG q a") + q.say("Q.LOG q b") + q.say("Q.LOG q c"); };
  const std::string before = logs();
  CHECK(before.find("ab") == std::string::npos);
  q.restart(4);
  CHECK(logs() == before);
  q.restart_from_checkpoint(4);
  CHECK(logs() == before);
}

// --- Memory ---

TEST_CASE("a log counts in the memory of its queue and in what is retained") {
  Talk q;
  q.say("Q.CONFIG q SET retain_completed 100:0:20000 log_bytes 20000");
  const uint64_t without = q.usage();
  q.write(std::string(16'000, 'x'));
  CHECK(q.usage() >= without + 16'000);
  q.find_queue("q")->check();
  q.ack("a");
  q.find_queue("q")->check();
  CHECK(q.state("a") == "completed");
  q.restart(4);
  CHECK(q.find_queue("q")->ended_bytes[0] > 16'000);
  q.restart_from_checkpoint(4);
  q.find_queue("q")->check();
  CHECK(q.find_queue("q")->ended_bytes[0] > 16'000);
  // A second one of its size is too much.
  q.add("b");
  q.pop();
  q.write(std::string(16'000, 'x'), "b");
  q.ack("b");
  CHECK(q.state("a") == "null");
  CHECK(q.state("b") == "completed");
}

TEST_CASE("a job without a log has no memory for it") {
  Talk q;
  const uint64_t before = q.usage();
  q.touch("a");
  q.touch("a", "LOG ''");
  q.say("Q.CONFIG q SET log_bytes 0");
  q.write("dropped");
  CHECK(q.find_queue("q")->find("a")->extras_if()->log == nullptr);
  CHECK(q.usage() < before + 256);  // the configuration's text
}

TEST_CASE("with the memory or the disk full the lease is renewed, and log bytes are dropped") {
  Talk q;
  q.write("before");
  auto& server = static_cast<QuietServer&>(q.engine().server());
  q.engine().options().max_memory_bytes.store(1000);
  server.used_bytes = 2000;
  q.pass(20'000);
  CHECK(q.touch("a", "LOG lost PROGRESS half") == "{left_ms=30000 cancel=null}");
  CHECK(q.job("a", {"progress"}) == "half");
  server.used_bytes = 0;
  q.engine().options().disk_nearly_full.store(true);
  CHECK(q.touch("a", "LOG lost") == "{left_ms=30000 cancel=null}");
  q.engine().options().disk_nearly_full.store(false);
  q.write(" after");
  CHECK(q.log() == "[0 before after 12 f]");
}

// --- Waiting ---

TEST_CASE("BLOCK waits for more of the log, or for the end of the job") {
  Talk q;
  CHECK(q.say_as(1, "Q.LOG q a BLOCK 0") == "(waits)");
  q.touch("a");
  q.touch("a", "PROGRESS half");
  q.add("b");
  q.pop();
  q.write("other", "b");
  CHECK(q.told() == "(nothing)");
  q.write("one");
  CHECK(q.told() == "[0 one 3 f]");
  CHECK(q.say_as(1, "Q.LOG q a BLOCK 0") == "[0 one 3 f]");
  CHECK(q.say_as(1, "Q.LOG q a FROM 3 BLOCK 0") == "(waits)");
  q.ack("a");
  CHECK(q.told() == "[3  3 t]");
  CHECK(q.say_as(1, "Q.LOG q a FROM 3 BLOCK 0") == "[3  3 t]");
}

TEST_CASE("what is written and ends in one unit is told, also if the job is not kept") {
  Talk q;
  q.say("Q.CONFIG q SET retain_completed 0");
  CHECK(q.say_as(1, "Q.LOG q a BLOCK 0") == "(waits)");
  CHECK(q.say_as(2, "Q.LOG q a COUNT 3 BLOCK 0") == "(waits)");
  const std::string lease = q.lease("a");
  q.say("MULTI");
  q.say("Q.TOUCH q a " + lease + " LOG last-words");
  q.say("Q.ACK q a " + lease);
  q.say("EXEC");
  const auto deliveries = q.take_deliveries();
  REQUIRE(deliveries.size() == 2);
  CHECK(deliveries.at(1).show() == "[0 last-words 10 t]");
  CHECK(deliveries.at(2).show() == "[0 las 3 f]");
  CHECK(q.log() == "null");
}

TEST_CASE("who waits for more hears that the log has begun anew") {
  Talk q;
  q.write("old");
  CHECK(q.say_as(1, "Q.LOG q a FROM 3 BLOCK 0") == "(waits)");
  q.say("Q.ADD q a next IFDUP UPDATE");
  q.nack("a", "SILENT");
  CHECK(q.told() == "[0  0 f]");
  CHECK(q.say_as(1, "Q.LOG q a BLOCK 0") == "(waits)");
  q.pop();
  q.write("new");
  CHECK(q.told() == "[0 new 3 f]");
  CHECK(q.say_as(1, "Q.LOG q a FROM 3 BLOCK 0") == "(waits)");
  q.say("MULTI");
  q.say("Q.CANCEL q a GRACE 0");
  q.say("Q.RETRY q a");
  q.say("EXEC");
  CHECK(q.told() == "[3  3 t]");
}

TEST_CASE("a waiter hears null if the queue goes, and the state when its time is over") {
  for (const char* line : {"DEL q", "RENAME q r", "FLUSHALL", "MOVE q 1", "SET q x"}) {
    INFO(line);
    Talk q;
    CHECK(q.say_as(1, "Q.LOG q a BLOCK 0") == "(waits)");
    q.say(line);
    CHECK(q.told() == "null");
  }
  Talk q;
  q.write("one");
  CHECK(q.say_as(1, "Q.LOG q a FROM 3 BLOCK 1000") == "(waits)");
  CHECK(q.give_up(1));
  CHECK(q.told() == "[3  3 f]");
  q.write("two");
  CHECK(q.told() == "(nothing)");
  CHECK(q.say_as(1, "Q.LOG q a FROM 6 BLOCK 0") == "(waits)");
  q.disconnect(1);
  q.write("three");
  CHECK(q.take_deliveries().empty());
}

TEST_CASE("in a transaction and in a script BLOCK is ignored") {
  Talk q;
  q.say("MULTI");
  q.say("Q.LOG q a BLOCK 0");
  CHECK(q.say("EXEC") == "[[0  0 f]]");
  CHECK(q.run(0, {"EVAL", "return redis.call('Q.LOG', 'q', 'a', 'BLOCK', 0)", "1", "q"})->show() ==
        "[0  0 0]");
}

// --- Whole queues ---

TEST_CASE("a log goes along with RENAME, MOVE, COPY and DEBUG RELOAD") {
  Talk q;
  q.write("bytes");
  q.nack("a", "SILENT");
  q.add("b");
  q.pop("ID b");
  q.say("Q.CONFIG q SET log_bytes 4");
  q.write("of-b", "b");
  q.write("!", "b");
  q.say("COPY q c");
  CHECK(q.say("Q.LOG c a") == "[0 bytes 5 f]");
  CHECK(q.say("Q.LOG c b") == "[1 f-b! 5 f]");
  q.say("RENAME q r");
  CHECK(q.say("Q.LOG r a") == "[0 bytes 5 f]");
  CHECK(q.say("Q.LOG r b") == "[1 f-b! 5 f]");
  q.say("DEBUG RELOAD");
  CHECK(q.say("Q.LOG r b") == "[1 f-b! 5 f]");
  const auto described = q.describe({"c", "r"}, {"a", "b"});
  CHECK(q.describe_replayed(q.units(), {"c", "r"}, {"a", "b"}) == described);
  CHECK(q.describe_walked({"c", "r"}, {"a", "b"}) == described);
  q.find_queue("r")->check();
  q.find_queue("c")->check();
}

TEST_CASE("a queue that shows plain keys has no logs") {
  QueueTalk q;
  q.say("ZADD waiting 1 a");
  q.say("Q.ADOPT q PENDING waiting ACTIVE running");
  CHECK(q.say("Q.LOG q a").substr(0, 8) == "-ADOPTED");
}

}  // namespace
