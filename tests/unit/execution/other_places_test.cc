// What a value keeps under another name, the order of its members, what it costs in the journal and
// in memory, and what random choices take of it.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/execution/queue_names.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/queue_talk.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;
using sluice::test::RespValue;

int64_t number(QueueTalk& q, const std::string& line) { return std::stoll(q.say(line)); }

// --- Names ---

TEST_CASE("a value of any type expires under its next name, be that longer or shorter") {
  for (const std::string make : {"SET key v", "RPUSH key v", "SADD key v", "ZADD key 1 v",
                                 "HSET key f v", "XADD key 1-0 f v"}) {
    INFO(make);
    QueueTalk q;
    q.say(make);
    REQUIRE(q.say("PEXPIRE key 5000") == "1");
    const std::string expiry = q.say("PEXPIRETIME key");
    CHECK(q.say("RENAME key a-longer-name") == "OK");
    CHECK(q.say("PEXPIRETIME a-longer-name") == expiry);
    CHECK(q.say("RENAME a-longer-name k") == "OK");
    CHECK(q.say("PEXPIRETIME k") == expiry);
    CHECK(q.say("MOVE k 1") == "1");
    q.say("SELECT 1");
    CHECK(q.say("PEXPIRETIME k") == expiry);
    q.pass(4999);
    CHECK(q.say("DBSIZE") == "1");
    q.pass(1);
    CHECK(q.say("DBSIZE") == "0");
  }
}

TEST_CASE("names of queues come page by page, in the order of their bytes") {
  QueueTalk q;
  std::set<std::string> expected;
  for (int i = 0; i < 400; ++i) {
    std::string name(static_cast<size_t>(i % 10), static_cast<char>(i * 37));
    name += static_cast<char>(i * 101);
    name += std::to_string(i % 50);
    q.run(0, {"Q.ADD", name, "job", "payload"});
    expected.insert(name);
  }
  std::vector<std::string> seen;
  for (bool more = true; more;) {
    const auto page = sluice::queue_names(q.engine(), 0, seen.empty() ? nullptr : &seen.back(), 7);
    seen.insert(seen.end(), page.begin(), page.end());
    more = !page.empty() && seen.size() <= expected.size();
  }
  CHECK(seen == std::vector<std::string>(expected.begin(), expected.end()));
}

TEST_CASE("SWAPDB takes queues along for those who read them without a command") {
  QueueTalk q;
  q.say("Q.ADD q job payload");
  q.say("SWAPDB 0 3");
  q.say("SWAPDB 3 5");
  for (int database = 0; database < 6; ++database) {
    CAPTURE(database);
    const bool here = database == 5;
    CHECK(sluice::queue_names(q.engine(), database, nullptr, 9).size() == (here ? 1 : 0));
    CHECK(sluice::last_event(q.engine(), {database, "q"}).exists == here);
  }
  const std::vector<sluice::QueueName> all{{5, "q"}};
  CHECK((sluice::QueueWalk().next(q.engine(), 9) == all));
}

TEST_CASE("a few large elements are not written to the journal again by RENAME") {
  QueueTalk q;
  q.take_moves(true);
  const std::string text(100'000, 'x');
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    q.say("HSET hash " + name + " " + text);
    q.say("RPUSH list " + name + text);
    q.say("SADD set " + name + text);
    q.say("ZADD zset 1 " + name + text);
    q.say("XADD stream * f " + text);
  }
  for (const std::string key : {"hash", "list", "set", "zset", "stream"}) {
    INFO(key);
    CHECK(q.say("RENAME " + key + " moved-" + key) == "OK");
    CHECK(q.last_move() == q.units());
  }
  q.restart(4);
  CHECK(q.say("EXISTS moved-hash moved-list moved-set moved-zset moved-stream") == "5");
}

TEST_CASE("a change near an end of a long list writes little to the journal") {
  sluice::test::QuietServer port;
  sluice::test::MemoryJournal journal;
  sluice::CompleteEngine engine(port, 7);
  engine.attach_journal(&journal);
  sluice::Execution execution(engine);
  sluice::test::EngineSession session(engine, execution);
  for (int i = 0; i < 5000; ++i) session.run({"RPUSH", "list", std::to_string(i)});
  const std::vector<std::vector<sluice::Bytes>> changes{{"LINSERT", "list", "BEFORE", "3", "new"},
                                                        {"LINSERT", "list", "AFTER", "4996", "new"},
                                                        {"LREM", "list", "1", "new"},
                                                        {"LREM", "list", "-1", "new"},
                                                        {"LSET", "list", "2500", "new"},
                                                        {"LTRIM", "list", "1", "-2"}};
  for (const auto& change : changes) {
    CAPTURE(change[0]);
    const sluice::Lsn before = journal.last_lsn();
    session.run(change);
    REQUIRE(journal.last_lsn() == before + 1);
    CHECK(journal.unit(before + 1).records.size() < 500);
  }
}

TEST_CASE("a key that has been idle for longer than can be counted is the longest idle") {
  QueueTalk q;
  q.say("SET k 10");
  const std::string payload = q.say("DUMP k");
  for (const std::string idle_s : {"33554431", "40000000", "1000000000", "9000000000000000000"}) {
    CHECK(q.run(0, {"RESTORE", "r", "0", payload, "REPLACE", "IDLETIME", idle_s})->show() == "OK");
    CHECK(q.say("OBJECT IDLETIME r") == "33554431");
  }
}

// --- Order ---

TEST_CASE("members with equal scores are in the order of all of their bytes") {
  QueueTalk q;
  // Their first eight bytes are the same.
  for (const char* end : {"2", "10", "", "1", "3"}) {
    q.say("ZADD jobs 5 job:2026-" + std::string(end));
    q.say("ZADD names 0 job:2026-" + std::string(end));
  }
  q.say("ZADD jobs 4 job:2026-9 6 job:2026-0");
  CHECK(q.say("ZRANGE jobs 0 -1") ==
        "[job:2026-9 job:2026- job:2026-1 job:2026-10 job:2026-2 job:2026-3 job:2026-0]");
  CHECK(q.say("ZRANK jobs job:2026-10") == "3");
  CHECK(q.say("ZRANGEBYLEX names (job:2026-1 [job:2026-2") == "[job:2026-10 job:2026-2]");
  CHECK(q.say("ZLEXCOUNT names - (job:2026-2") == "3");
}

// --- Memory ---

TEST_CASE("a string that becomes short gives its memory back") {
  for (const int64_t length : {3000, 30'000, 300'000}) {
    CAPTURE(length);
    for (const std::string shorten : {"SET k short", "SETEX k 100 short", "GETSET k short"}) {
      CAPTURE(shorten);
      QueueTalk q;
      q.say("SET k " + std::string(static_cast<size_t>(length), 'x'));
      CHECK(number(q, "MEMORY USAGE k") >= length);
      q.say(shorten);
      CHECK(number(q, "MEMORY USAGE k") < 1000);
    }
  }
}

TEST_CASE("MEMORY USAGE is of all elements, however few it looks at") {
  QueueTalk q;
  constexpr int64_t kElements = 1000;
  for (int i = 0; i < kElements; ++i) {
    const std::string name = std::to_string(10'000 + i);
    q.say("HSET hash " + name + " " + std::string(100, 'x'));
    q.say("SADD set member" + name);
    q.say("ZADD zset " + name + " member" + name);
    q.say("RPUSH list " + std::string(100, 'x'));
  }
  for (const std::string samples : {"", " SAMPLES 0", " SAMPLES 1", " SAMPLES 5000"}) {
    CAPTURE(samples);
    CHECK(number(q, "MEMORY USAGE hash" + samples) > 105 * kElements);
    CHECK(number(q, "MEMORY USAGE hash" + samples) < 160 * kElements);
    CHECK(number(q, "MEMORY USAGE list" + samples) > 100 * kElements);
    CHECK(number(q, "MEMORY USAGE set" + samples) > 20 * kElements);
    // Its order has an entry for each member.
    CHECK(number(q, "MEMORY USAGE zset" + samples) >
          number(q, "MEMORY USAGE set" + samples) + 16 * kElements);
  }
}

TEST_CASE("MEMORY USAGE of a stream is of its entries, and of what groups have not acknowledged") {
  QueueTalk q;
  for (int i = 0; i < 2000; ++i) q.say("XADD stream * field " + std::string(100, 'x'));
  const int64_t entries = number(q, "MEMORY USAGE stream");
  CHECK(entries > 2000 * 100);
  q.say("XGROUP CREATE stream g 0");
  q.say("XREADGROUP GROUP g c COUNT 2000 STREAMS stream >");
  CHECK(number(q, "MEMORY USAGE stream") > entries + 2000 * 32);
}

// --- Chance ---

// How many different elements `rounds` repetitions of the command have replied. Each must reply
// `count` different ones.
size_t chosen(QueueTalk& q, const std::string& line, size_t count, int rounds) {
  std::set<std::string> met;
  for (int i = 0; i < rounds; ++i) {
    const RespValue reply = q.ask(line);
    REQUIRE(reply.items.size() == count);
    std::set<std::string> once;
    for (const RespValue& item : reply.items) {
      once.insert(item.items.empty() ? item.text : item.items.at(0).text);
    }
    REQUIRE(once.size() == count);
    met.insert(once.begin(), once.end());
  }
  return met.size();
}

TEST_CASE("random elements with a count are different ones, and each has its turn") {
  for (const int elements : {100, 1000}) {
    CAPTURE(elements);
    QueueTalk q;
    for (int i = 0; i < elements; ++i) {
      const std::string name = std::to_string(i);
      q.say("SADD set m" + name);
      q.say("HSET hash m" + name + " v");
      q.say("ZADD zset " + name + " m" + name);
    }
    // A few of them are drawn, from many of them some are left out.
    const auto few = static_cast<size_t>(elements) / 10;
    const auto many = static_cast<size_t>(elements) * 6 / 10;
    for (const size_t count : {few, many}) {
      CAPTURE(count);
      const std::string number = std::to_string(count);
      const int rounds = count == few ? 300 : 40;
      const auto all = static_cast<size_t>(elements);
      CHECK(chosen(q, "SRANDMEMBER set " + number, count, rounds) == all);
      CHECK(chosen(q, "HRANDFIELD hash " + number, count, rounds) == all);
      CHECK(chosen(q, "HRANDFIELD hash " + number + " WITHVALUES", count, rounds) == all);
      CHECK(chosen(q, "ZRANDMEMBER zset " + number, count, rounds) == all);
    }
    // And SPOP takes as many as it replies.
    const RespValue popped = q.ask("SPOP set " + std::to_string(few));
    CHECK(popped.items.size() == few);
    CHECK(q.say("SCARD set") == std::to_string(static_cast<size_t>(elements) - few));
  }
}

}  // namespace
