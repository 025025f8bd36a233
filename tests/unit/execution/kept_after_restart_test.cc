// State that must be the same after a restart, from the journal and from a checkpoint: expiries of
// all kinds of values, used rates, fair shares.
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::test::QueueTalk;

// Ways to end a process and start the next one.
const std::vector<std::pair<const char*, std::function<void(QueueTalk&)>>> kRestarts = {
    {"from the journal", [](QueueTalk& q) { q.restart(4); }},
    {"from a checkpoint", [](QueueTalk& q) { q.restart_from_checkpoint(4); }},
    {"twice",
     [](QueueTalk& q) {
       q.restart_from_checkpoint(4);
       q.restart_from_checkpoint(4);
     }},
};

// --- Expiries ---

// Creates a value of every type with `elements` elements; returns the names of the keys.
std::vector<std::string> make_values(QueueTalk& q, int elements) {
  q.say("SET string x");
  for (int i = 0; i < elements; ++i) {
    const std::string number = std::to_string(i);
    q.say("RPUSH list " + number);
    q.say("SADD set member" + number);
    q.say("ZADD zset " + number + " member" + number);
    q.say("HSET hash field" + number + " x");
    q.say("XADD stream * field " + number);
    q.say("Q.ADD queue " + number + " x");
  }
  return {"string", "list", "set", "zset", "hash", "stream", "queue"};
}

TEST_CASE("values of all types keep their expiry, small and large") {
  for (const auto& [how, restart] : kRestarts) {
    for (const int elements : {3, 1000}) {
      INFO(how, ", elements: ", elements);
      QueueTalk q;
      const std::vector<std::string> keys = make_values(q, elements);
      const std::string expiry = std::to_string(q.wall_ms() + 3'600'000);
      for (const std::string& key : keys) REQUIRE(q.say("PEXPIREAT " + key + " " + expiry) == "1");
      restart(q);
      for (const std::string& key : keys) {
        INFO(key);
        CHECK(q.say("PEXPIRETIME " + key) == expiry);
      }
      q.pass(3'600'000);
      CHECK(q.say("DBSIZE") == "0");
    }
  }
}

TEST_CASE("a copy keeps the expiry of what it was copied from") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    const std::vector<std::string> keys = make_values(q, 3);
    const std::string expiry = std::to_string(q.wall_ms() + 3'600'000);
    for (const std::string& key : keys) {
      REQUIRE(q.say("COPY " + key + " " + key + ".for-ever") == "1");
      q.say("PEXPIREAT " + key + " " + expiry);
      REQUIRE(q.say("COPY " + key + " " + key + ".copy") == "1");
    }
    const auto check = [&] {
      for (const std::string& key : keys) {
        INFO(key);
        CHECK(q.say("PEXPIRETIME " + key + ".copy") == expiry);
        CHECK(q.say("PEXPIRETIME " + key + ".for-ever") == "-1");
      }
    };
    check();
    restart(q);
    check();
  }
}

// --- Rates ---

TEST_CASE("a rate has given out after a restart what it had given out before") {
  for (const auto& [how, restart] : kRestarts) {
    for (const std::string level : {"", "GROUP g ", "KEY k "}) {
      for (const bool named_meanwhile : {true, false}) {
        INFO(how, ", level: '", level, "', named meanwhile: ", named_meanwhile);
        QueueTalk q;
        q.say("Q.CONFIG q " + level + "SET rate 2/3600000");
        q.add("a b", "GROUP g KEY k");
        if (named_meanwhile) q.add("c", "GROUP g KEY k");
        REQUIRE(q.pop("COUNT 2") == "a b");
        q.ack("a");
        q.ack("b");
        q.say("Q.PURGE q WHERE STATE completed");
        restart(q);
        if (!named_meanwhile) q.add("c", "GROUP g KEY k");
        CHECK(q.pop() == "null");
        q.pass(1'799'000);
        CHECK(q.pop() == "null");
        q.pass(1'000);
        CHECK(q.pop() == "c");
      }
    }
  }
}

// --- Fairness ---

TEST_CASE("a group that has received more than others waits for them after a restart as well") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    q.say("Q.CONFIG q SET fair on");
    // Group b has jobs all the time, and none of them may run before the restart.
    q.say("Q.CONFIG q GROUP b SET paused out");
    q.add("b0", "GROUP b");
    for (const std::string number : {"1", "2", "3", "4"}) {
      q.add("a" + number, "GROUP a");
      REQUIRE(q.pop() == "a" + number);
      q.pass(10'000);
      q.ack("a" + number);
    }
    q.add("a5 a6", "GROUP a");
    q.add("b1 b2 b3", "GROUP b");
    restart(q);
    q.say("Q.CONFIG q GROUP b SET paused none");
    CHECK(q.drain() == "b0 b1 b2 b3 a5 a6");
  }
}

TEST_CASE("a group that began to wait has after a restart no credit for the time before") {
  for (const auto& [how, restart] : kRestarts) {
    INFO(how);
    QueueTalk q;
    q.say("Q.CONFIG q SET fair on");
    for (const std::string number : {"1", "2", "3", "4"}) {
      q.add("a" + number, "GROUP a");
      REQUIRE(q.pop() == "a" + number);
      q.pass(10'000);
      q.ack("a" + number);
    }
    q.add("a5 a6", "GROUP a");
    q.add("b1 b2", "GROUP b");
    restart(q);
    // Runs that take no time change no share.
    CHECK(q.drain() == "a5 a6 b1 b2");
  }
}

// --- Checkpoints ---

// In order of insertion, with records that are too many bytes for one hold of the lock.
TEST_CASE("a checkpoint has all of a hash and of a set that are small and have a long name") {
  QueueTalk q;
  const std::string hash(200, 'h');
  const std::string set(1000, 's');
  for (int i = 0; i < 512; ++i) {
    q.say("HSET " + hash + " field" + std::to_string(i) + " " + std::to_string(i));
  }
  for (int i = 0; i < 128; ++i) q.say("SADD " + set + " member" + std::to_string(i));
  q.restart_from_checkpoint(4);
  CHECK(q.say("HLEN " + hash) == "512");
  CHECK(q.say("HGET " + hash + " field511") == "511");
  CHECK(q.say("SCARD " + set) == "128");
  CHECK(q.say("SISMEMBER " + set + " member127") == "1");
}

TEST_CASE("a checkpoint has all keys that share a shard with large ones") {
  QueueTalk q;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "{one-shard}" + std::to_string(i);
    // Every 30th one is longer than what is written in one hold of the lock.
    q.say("SETRANGE " + name + (i % 30 == 0 ? " 200000 x" : " 3 x"));
  }
  q.restart_from_checkpoint(4);
  int kept = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string size = i % 30 == 0 ? "200001" : "4";
    if (q.say("STRLEN {one-shard}" + std::to_string(i)) == size) ++kept;
  }
  CHECK(kept == 300);
}

TEST_CASE("a checkpoint holds a list that loses its head, or its tail, while it is written") {
  for (const bool head : {true, false}) {
    INFO("head: ", head);
    QueueTalk q;
    for (int i = 0; i < 1000; ++i) q.say("RPUSH list " + std::to_string(i));
    int steps = 0;
    bool popped = false;
    q.restart_from_checkpoint(4, [&](uint64_t records) {
      // The walk has begun to write the list, and has not finished.
      if (records != 0 && !popped) {
        REQUIRE(records < 1000);
        q.say(std::string(head ? "LPOP" : "RPOP") + " list 900");
        popped = true;
      }
      // Fail instead of running forever.
      if (++steps > 10'000) throw std::runtime_error("the checkpoint does not end");
    });
    CHECK(popped);
    CHECK(q.say("LLEN list") == "100");
    CHECK(q.say("LINDEX list 0") == (head ? "900" : "0"));
    CHECK(q.say("LINDEX list -1") == (head ? "999" : "99"));
  }
}

TEST_CASE("a checkpoint keeps the share of a group whose jobs it has missed") {
  // Which jobs it misses depends on the hashes of their ids.
  for (int i = 0; i < 24; ++i) {
    const std::string number = std::to_string(i);
    INFO("ids ", number);
    QueueTalk q;
    q.say("Q.CONFIG q SET fair on retain_completed 0");
    q.add("run early" + number, "GROUP a");
    REQUIRE(q.pop() == "run");
    q.pass(5000);
    q.ack("run");
    for (int other = 0; other < 1000; ++other) q.add("b" + std::to_string(other), "GROUP b");
    bool done = false;
    q.restart_from_checkpoint(4, [&](uint64_t records) {
      if (done || records < 500) return;
      done = true;
      q.add("late" + number, "GROUP a");
      q.say("Q.CANCEL q early" + number);
    });
    const sluice::Group* group = q.find_queue("q")->lanes.find_group("a");
    REQUIRE(group != nullptr);
    CHECK(group->virtual_ms == 5000);
  }
}

}  // namespace
