// Q.GET: every code of `why`, each with a queue that produces it, and waiting for an end.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/random_queue.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using namespace sluice::test;

std::string why(QueueClient& server, const std::string& id) {
  return server.run({"Q.GET", "q", id}).field("why");
}

void add(QueueClient& server, const std::string& id, Words options = {}) {
  Words words = {"Q.ADD", "q", id, ""};
  words.insert(words.end(), options.begin(), options.end());
  const RespValue reply = server.run(words);
  INFO(reply.show());
  REQUIRE(reply.field("result") == "added");
}

void configure(QueueClient& server, Words fields, Words level = {}) {
  Words words = {"Q.CONFIG", "q"};
  words.insert(words.end(), level.begin(), level.end());
  words.push_back("SET");
  words.insert(words.end(), fields.begin(), fields.end());
  REQUIRE(server.run(words).show() == "OK");
}

std::string pop(QueueClient& server) {
  const RespValue jobs = server.run({"Q.POP", "1", "q"});
  REQUIRE(jobs.items.size() == 1);
  return jobs.items[0].field("id");
}

// The reply to the second connection's command; nothing while it waits.
std::optional<RespValue> run_second(QueueClient& client, const Words& words) {
  return client.server.run(1, words);
}
// The reply that the second connection was waiting for.
RespValue awaited(QueueClient& client) {
  const auto delivered = client.server.take_deliveries();
  REQUIRE(delivered.count(1) == 1);
  return delivered.at(1);
}

TEST_CASE("no_worker, behind, and nothing for who runs or has ended") {
  QueueClient server;
  add(server, "a");
  add(server, "b");
  add(server, "urgent", {"PRI", "HIGH"});
  CHECK(why(server, "urgent") == "no_worker");
  CHECK(why(server, "a") == "behind 1");
  CHECK(why(server, "b") == "behind 2");
  CHECK(pop(server) == "urgent");
  CHECK(why(server, "urgent") == "null");
  CHECK(why(server, "a") == "no_worker");
  server.run({"Q.CANCEL", "q", "b"});
  CHECK(why(server, "b") == "null");
}

TEST_CASE("next: a worker waits, for another job") {
  QueueClient server(2);
  add(server, "a");
  add(server, "later", {"DELAY", "1000"});
  CHECK(!run_second(server, {"Q.POP", "1", "q", "BLOCK", "0", "ID", "later"}).has_value());
  CHECK(why(server, "a") == "next");
}

TEST_CASE("not_before and blocked_by") {
  QueueClient server;
  add(server, "later", {"DELAY", "1500"});
  CHECK(why(server, "later") == "not_before " + std::to_string(server.now_ms() + 1500));
  CHECK(server.run({"Q.GET", "q", "later"}).number("not_before") == server.now_ms() + 1500);
  add(server, "a b");
  add(server, "c");
  add(server, "needy", {"NEED", "a b", "NEED", "c"});
  CHECK(why(server, "needy") == "blocked_by a%20b c");
  CHECK(pop(server) == "a b");
  server.run({"Q.ACK", "q", "a b", server.run({"Q.GET", "q", "a b"}).field("lease")});
  CHECK(why(server, "needy") == "blocked_by c");
}

TEST_CASE("queue_cap, of all who wait where no slot is left") {
  QueueClient server;
  configure(server, {"max_active", "2"});
  for (const char* id : {"a", "b", "c", "d"}) add(server, id);
  pop(server);
  CHECK(why(server, "b") == "no_worker");
  pop(server);
  CHECK(why(server, "c") == "queue_cap 2/2");
  CHECK(why(server, "d") == "queue_cap 2/2");
}

TEST_CASE("too_large: the cap was lowered below the cost") {
  QueueClient server;
  configure(server, {"max_active", "4"});
  add(server, "large", {"COST", "3"});
  CHECK(why(server, "large") == "no_worker");
  configure(server, {"max_active", "2"});
  CHECK(why(server, "large") == "too_large");
  configure(server, {"max_active", "4"});
  add(server, "grouped", {"COST", "3", "GROUP", "g", "KEY", "k"});
  configure(server, {"max_active", "2"}, {"GROUP", "g"});
  CHECK(why(server, "grouped") == "too_large");
  configure(server, {"max_active", "3"}, {"GROUP", "g"});
  CHECK(why(server, "grouped") == "behind 1");
  configure(server, {"max_active", "2"}, {"KEY", "k"});
  CHECK(why(server, "grouped") == "too_large");
}

TEST_CASE("group_cap and key_cap") {
  QueueClient server;
  configure(server, {"max_active", "1"}, {"GROUP", "*"});
  configure(server, {"max_active", "2"}, {"KEY", "lang:*"});
  add(server, "a", {"GROUP", "team", "KEY", "lang:c"});
  add(server, "b", {"GROUP", "team", "KEY", "lang:c"});
  add(server, "c", {"GROUP", "other", "KEY", "lang:c"});
  add(server, "d", {"GROUP", "third", "KEY", "lang:c"});
  CHECK(pop(server) == "a");
  CHECK(why(server, "b") == "group_cap 1/1");
  CHECK(why(server, "c") == "no_worker");
  CHECK(pop(server) == "c");
  CHECK(why(server, "d") == "key_cap lang:c 2/2");
  CHECK(why(server, "b") == "group_cap 1/1");
  CHECK(server.run({"Q.POP", "1", "q"}).is_null());
}

TEST_CASE("rate") {
  QueueClient server;
  configure(server, {"rate", "1/1000"});
  add(server, "a");
  add(server, "b");
  CHECK(why(server, "a") == "no_worker");
  CHECK(pop(server) == "a");
  CHECK(why(server, "b") == "rate 1000");
  server.advance(400);
  CHECK(why(server, "b") == "rate 600");
  server.advance(600);
  CHECK(why(server, "b") == "no_worker");
}

TEST_CASE("paused, the queue or the group") {
  QueueClient server;
  add(server, "a");
  add(server, "b", {"GROUP", "g"});
  configure(server, {"paused", "out"}, {"GROUP", "g"});
  CHECK(why(server, "a") == "no_worker");
  CHECK(why(server, "b") == "paused");
  configure(server, {"paused", "out"});
  CHECK(why(server, "a") == "paused");
  configure(server, {"paused", "in"});
  CHECK(why(server, "a") == "no_worker");
}

TEST_CASE("reserved") {
  QueueClient server;
  configure(server, {"max_active", "2", "reserve", "HIGH:1"});
  add(server, "a");
  add(server, "b");
  CHECK(pop(server) == "a");
  CHECK(why(server, "b") == "reserved");
  CHECK(server.run({"Q.POP", "1", "q"}).is_null());
  add(server, "urgent", {"PRI", "HIGH"});
  CHECK(why(server, "urgent") == "no_worker");
  CHECK(pop(server) == "urgent");
  CHECK(why(server, "b") == "queue_cap 2/2");
}

TEST_CASE("fair_share") {
  QueueClient server;
  configure(server, {"fair", "on"});
  add(server, "a", {"GROUP", "busy"});
  add(server, "b", {"GROUP", "busy"});
  add(server, "c", {"GROUP", "idle"});
  CHECK(pop(server) == "a");
  server.advance(1000);
  // By rank b is first; but its group has had a run, the other none.
  CHECK(why(server, "b") == "fair_share");
  CHECK(why(server, "c") == "no_worker");
  CHECK(pop(server) == "c");
}

TEST_CASE("behind a job that has aged") {
  QueueClient server;
  configure(server, {"aging_ms", "1000"});
  add(server, "old", {"PRI", "LOW"});
  server.advance(5000);
  add(server, "young", {"PRI", "HIGH"});
  CHECK(why(server, "old") == "no_worker");
  CHECK(why(server, "young") == "behind 1");
  CHECK(pop(server) == "old");
}

TEST_CASE("the newest of a LIFO stack has the earliest ticket") {
  QueueClient server;
  configure(server, {"order", "lifo"});
  for (const char* id : {"a", "b"}) add(server, id, {"GROUP", "g"});
  add(server, "later", {"GROUP", "g", "DELAY", "1000"});
  // The newest job is first; the ticket that is not due yet is the oldest job's.
  CHECK(why(server, "later") == "no_worker");
  CHECK(why(server, "b") == "behind 1");
  CHECK(why(server, "a") == "not_before " + std::to_string(server.now_ms() + 1000));
  CHECK(server.run({"Q.GET", "q", "a"}).field("state") == "delayed");
  CHECK(server.run({"Q.LIST", "q", "WHERE", "STATE", "delayed"}).items[1].items[0].field("id") ==
        "a");
  CHECK(pop(server) == "later");
}

// The pending jobs by their code.
std::map<std::string, Words> jobs_by_why(RandomQueue& queue) {
  std::map<std::string, Words> jobs;
  for (const RespValue& job : queue.all()) {
    if (job.field("state") != "pending") continue;
    const std::string text = job.field("why");
    jobs[text.substr(0, text.find(' '))].push_back(job.field("id"));
  }
  return jobs;
}

// The number of jobs with queue_cap although a slot is free.
size_t queue_cap_with_room(RandomQueue& queue) {
  size_t count = 0;
  for (const RespValue& job : queue.all()) {
    const std::string text = job.field("why");
    if (text.rfind("queue_cap ", 0) != 0) continue;
    const size_t slash = text.find('/');
    if (text.substr(10, slash - 10) != text.substr(slash + 1)) ++count;
  }
  return count;
}

TEST_CASE("whoever is said to be next is what a pop gets") {
  const std::vector<Words> configs = {{"GROUP", "g*", "SET", "max_active", "2"},
                                      {"KEY", "k1", "SET", "max_active", "1"},
                                      {"SET", "fair", "on"},
                                      {"SET", "aging_ms", "700"},
                                      {"SET", "reserve", "HIGH:2"},
                                      {"GROUP", "h1", "SET", "rate", "2/900:2"},
                                      {"SET", "rate", "3/500"},
                                      {"KEY", "k2", "SET", "rate", "1/300"}};
  int popped = 0;
  int kept = 0;
  const auto seeds = sluice::testing::seeds(24, 49979687);
  for (const uint64_t seed : seeds) {
    sluice::testing::use_seed(seed);
    RandomQueueOptions options{.lifo = seed % 2 == 0, .needs = true, .costs = seed % 3 == 0};
    for (size_t i = 0; i < configs.size(); ++i) {
      if ((seed * 2654435761 >> (8 + i)) % 2 == 0) options.config.push_back(configs[i]);
    }
    RandomQueue queue(seed, options);
    for (int round = 0; round < 30; ++round) {
      for (int i = 0; i < 10; ++i) queue.step();
      auto jobs = jobs_by_why(queue);
      INFO("seed " << seed << ", round " << round);
      // If a slot is free, the queue's cap only blocks one job: the next, which takes several
      // slots.
      const size_t kept_by_cost = queue_cap_with_room(queue);
      CHECK(jobs["no_worker"].size() + kept_by_cost <= 1);
      CHECK((jobs["no_worker"].empty() || jobs["queue_cap"].empty()));
      CHECK(jobs.count("next") == 0);  // no pop is waiting
      const RespValue reply = queue.server.run({"Q.POP", "1", "q"});
      if (reply.is_null()) {
        ++kept;
        CHECK(jobs["no_worker"].empty());
      } else {
        ++popped;
        std::string text;
        for (const auto& [code, ids] : jobs) {
          text += code + ":";
          for (const std::string& id : ids) text += ' ' + id;
          text += "; ";
        }
        INFO(text << " popped " << reply.items[0].field("id"));
        CHECK(jobs["no_worker"] == Words{reply.items[0].field("id")});
      }
    }
  }
  // Both results have been seen, and often.
  CHECK(popped > static_cast<int>(seeds.size()));
  CHECK(kept > static_cast<int>(seeds.size()));
}

TEST_CASE("Q.GET waits until the job has ended") {
  QueueClient server(2);
  add(server, "a");
  const Words get = {"Q.GET", "q", "a", "WITH", "result", "WAIT", "0"};
  CHECK(!run_second(server, get).has_value());
  add(server, "b");
  const RespValue popped = server.run({"Q.POP", "1", "q"});
  const std::string lease = popped.items[0].field("lease");
  CHECK(server.server.take_deliveries().empty());
  server.run({"Q.ACK", "q", "a", lease, "RESULT", "42"});
  const RespValue job = awaited(server);
  CHECK(job.field("state") == "completed");
  CHECK(job.field("result") == "42");
  // For an ended job the reply is immediate, and so it is for an unknown one.
  CHECK(run_second(server, get)->field("result") == "42");
  CHECK(run_second(server, {"Q.GET", "q", "none", "WAIT", "0"})->is_null());
}

TEST_CASE("Q.GET that waits hears of every kind of end") {
  QueueClient server(2);
  const auto wait_for = [&](const std::string& id) {
    REQUIRE(!run_second(server, {"Q.GET", "q", id, "WAIT", "0"}).has_value());
  };
  add(server, "cancelled");
  wait_for("cancelled");
  server.run({"Q.CANCEL", "q", "cancelled"});
  CHECK(awaited(server).field("state") == "cancelled");

  add(server, "expired", {"TTL", "100"});
  wait_for("expired");
  server.advance(101);
  CHECK(awaited(server).field("state") == "expired");

  add(server, "failed");
  wait_for("failed");
  const RespValue popped = server.run({"Q.POP", "1", "q"});
  server.run({"Q.NACK", "q", "failed", popped.items[0].field("lease"), "FATAL", "ERROR", "broken"});
  const RespValue reply = awaited(server);
  CHECK(reply.field("state") == "failed");
  CHECK(reply.field("error") == "broken");

  add(server, "gone");
  wait_for("gone");
  server.run({"DEL", "q"});
  CHECK(awaited(server).is_null());
}

TEST_CASE("in a transaction Q.GET does not wait") {
  QueueClient server;
  add(server, "a");
  server.run({"MULTI"});
  server.run({"Q.GET", "q", "a", "WAIT", "0"});
  const RespValue replies = server.run({"EXEC"});
  REQUIRE(replies.items.size() == 1);
  CHECK(replies.items[0].field("state") == "pending");
}

TEST_CASE("in RESP3 a job is a map") {
  QueueClient server;
  add(server, "a", {"TAG", "lang", "c", "KEY", "k2", "KEY", "k1", "GROUP", "g"});
  const RespValue job = server.run({"Q.GET", "q", "a"});
  CHECK(job.kind == RespValue::Kind::kMap);
  CHECK(job.find("tags")->show() == "{lang=c}");
  CHECK(job.find("keys")->show() == "[k1 k2]");
  CHECK(job.field("successor") == "f");
  const RespValue popped = server.run({"Q.POP", "1", "q", "WORKER", "w"});
  REQUIRE(popped.items.size() == 1);
  CHECK(popped.items[0].kind == RespValue::Kind::kMap);
  CHECK(popped.items[0].size() == 15);
  CHECK(popped.items[0].number("deadline") == server.now_ms() + 30000);
  CHECK(server.run({"Q.GET", "q", "a"}).field("worker") == "w");
}

}  // namespace
