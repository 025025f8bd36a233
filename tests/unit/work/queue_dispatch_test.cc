// Q.LIST BY DISPATCH: pops take exactly what it lists, in that order, whatever the queue's rules;
// and listing changes nothing.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/random_queue.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using namespace sluice::test;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Words look_ahead(QueueClient& server, size_t count) {
  const RespValue reply =
      server.run({"Q.LIST", "q", "BY", "DISPATCH", "COUNT", std::to_string(count)});
  INFO(reply.show());
  REQUIRE(reply.items.size() == 2);
  REQUIRE(reply.items[0].text == "0");
  Words ids;
  for (const RespValue& job : reply.items[1].items) ids.push_back(job.field("id"));
  return ids;
}

// Pops jobs one after the other; no run ends.
Words pop_all(QueueClient& server, size_t count) {
  Words ids;
  while (ids.size() < count) {
    const RespValue jobs = server.run({"Q.POP", "1", "q"});
    if (jobs.items.empty()) break;
    ids.push_back(jobs.items[0].field("id"));
  }
  return ids;
}

// Everything that could show that the list was read.
std::string whole_state(RandomQueue& queue) {
  std::string text = queue.server.run({"Q.STATS", "q"}).show();
  for (const char* by : {"PRI", "GROUP"}) {
    text += queue.server.run({"Q.STATS", "q", "BY", by}).show();
  }
  for (const RespValue& job : queue.all()) text += job.show();
  return text;
}

struct Style {
  const char* name;
  RandomQueueOptions options;
};

std::vector<Style> styles() {
  const Words many = {"SET", "max_active", "0"};
  const Words group_caps = {"GROUP", "g*", "SET", "max_active", "2"};
  const Words key_caps = {"KEY", "k1", "SET", "max_active", "3"};
  const Words fair = {"SET", "fair", "on"};
  return {
      {"plain", {.config = {many}}},
      {"capped", {}},
      {"groups and keys with caps", {.costs = true, .config = {many, group_caps, key_caps}}},
      {"all caps at once", {.needs = true, .costs = true, .config = {group_caps, key_caps}}},
      {"fair", {.costs = true, .config = {many, fair, {"GROUP", "h*", "SET", "weight", "3"}}}},
      {"fair with caps", {.config = {fair, group_caps}}},
      {"lifo", {.lifo = true, .config = {many}}},
      {"lifo, fair, caps", {.lifo = true, .costs = true, .config = {fair, group_caps, key_caps}}},
      {"aging", {.lifo = true, .config = {many, {"SET", "aging_ms", "700"}}}},
      {"reserve", {.config = {{"SET", "max_active", "6", "reserve", "1:2"}}}},
      {"rates",
       {.config = {many,
                   {"SET", "rate", "9/1000:6"},
                   {"GROUP", "g1", "SET", "rate", "3/1000:2"},
                   {"KEY", "k2", "SET", "rate", "2/1000:2"}}}},
      {"a paused group", {.config = {many, {"GROUP", "g1", "SET", "paused", "out"}}}},
  };
}

// What the queue admits now is the beginning of the list; the rest of it follows when only the
// queue's own slots become free.
void check_foretold(RandomQueue& queue, size_t count) {
  queue.add();  // queue time is the same for the pops
  const Words foretold = look_ahead(queue.server, count);
  const Words popped = pop_all(queue.server, foretold.size() + 1);
  INFO("foretold " << joined(foretold) << ", popped " << joined(popped));
  const size_t same = std::min(popped.size(), foretold.size());
  REQUIRE(std::equal(popped.begin(), popped.begin() + static_cast<long>(same), foretold.begin()));
  if (foretold.size() < count) REQUIRE(popped.size() <= foretold.size());
  if (popped.size() >= foretold.size()) return;
  for (const Words& open : {Words{"max_active", "0"}, Words{"rate", "0"}}) {
    REQUIRE(queue.server.run(Words{"Q.CONFIG", "q", "SET"} + open).show() == "OK");
  }
  const Words rest = pop_all(queue.server, foretold.size() - same);
  INFO("then " << joined(rest));
  REQUIRE(std::equal(rest.begin(), rest.end(), foretold.begin() + static_cast<long>(same),
                     foretold.end()));
}

TEST_CASE("what is foretold is what pops take") {
  for (const Style& style : styles()) {
    for (const uint64_t seed : sluice::testing::seeds(6, 7919)) {
      sluice::testing::use_seed(seed);
      INFO(style.name << ", seed " << seed);
      RandomQueue queue(seed, style.options);
      const size_t steps = 60 + queue.random(200);
      for (size_t i = 0; i < steps; ++i) queue.step();
      check_foretold(queue, 1 + queue.random(100));
    }
  }
}

TEST_CASE("looking ahead changes nothing") {
  for (const Style& style : styles()) {
    for (const uint64_t seed : sluice::testing::seeds(3, 104729)) {
      sluice::testing::use_seed(seed);
      INFO(style.name << ", seed " << seed);
      RandomQueue queue(seed, style.options);
      for (size_t i = 0; i < 150; ++i) {
        queue.step();
        if (i % 10 != 0) continue;
        const std::string before = whole_state(queue);
        const Words foretold = look_ahead(queue.server, 100);
        CHECK(look_ahead(queue.server, 100) == foretold);
        CHECK(whole_state(queue) == before);
        queue.server.server.find_queue("q")->check();
      }
    }
  }
}

TEST_CASE("a full queue tells who is next when a slot is free") {
  QueueTalk q;
  q.say("Q.CONFIG q SET max_active 1");
  q.add("a b c");
  q.pop();
  CHECK(q.ask("Q.LIST q BY DISPATCH").items[1].size() == 2);
  q.say("Q.CONFIG q SET paused out");
  CHECK(q.ask("Q.LIST q BY DISPATCH COUNT 1").items[1].items[0].field("id") == "b");
}

TEST_CASE("what a group has no room for is not among the next, nor what waits for a time") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET max_active 1");
  q.say("Q.ADD q g1 x GROUP g PRI 0");
  q.say("Q.ADD q g2 x GROUP g PRI 0");
  q.say("Q.ADD q late x DELAY 5000 PRI 0");
  q.say("Q.ADD q a x");
  const RespValue reply = q.ask("Q.LIST q BY DISPATCH WITH payload");
  REQUIRE(reply.items[1].size() == 2);
  CHECK(reply.items[1].items[0].field("id") == "g1");
  CHECK(reply.items[1].items[1].field("id") == "a");
  CHECK(reply.items[1].items[1].field("payload") == "x");
}

TEST_CASE("a look ahead goes a hundred jobs far, from the front") {
  QueueTalk q;
  CHECK(q.say("Q.LIST q BY DISPATCH") == "[0 []]");
  for (int i = 0; i < 120; ++i) q.say("Q.ADD q " + std::to_string(i) + " x");
  CHECK(q.ask("Q.LIST q BY DISPATCH").items[1].size() == 100);
  CHECK(q.ask("Q.LIST q BY DISPATCH COUNT 1000").items[1].size() == 100);
  CHECK(q.ask("Q.LIST q BY DISPATCH COUNT 7").items[1].size() == 7);
  CHECK(q.say("Q.LIST q BY DISPATCH COUNT 0") == "-BADFIELD field=count");
  CHECK(q.say("Q.LIST q BY DISPATCH CURSOR s1") == "-ERR invalid cursor");
  CHECK(q.say("Q.LIST q BY DISPATCH WHERE PRI 1") == "-BADFIELD field=where");
  CHECK(q.say("Q.LIST q WHERE STATE pending BY DISPATCH") == "-BADFIELD field=where");
}

TEST_CASE("what lists and `why` say holds as soon as a rate has refilled") {
  for (const std::string level : {"", "GROUP g ", "KEY k "}) {
    CAPTURE(level);
    QueueTalk q;
    q.say("Q.CONFIG q " + level + "SET rate 1/30");
    q.add("a b", "GROUP g KEY k");
    q.add("z", "PRI low");
    CHECK(q.pop() == "a");
    q.set_clock(q.wall_ms() + 31, q.steady_ms() + 31);
    SUBCASE("a list") {
      const RespValue reply = q.ask("Q.LIST q BY DISPATCH");
      REQUIRE(reply.items[1].size() == 2);
      CHECK(reply.items[1].items[0].field("id") == "b");
    }
    SUBCASE("why") { CHECK(q.job("b", {"why"}) == "no_worker"); }
    q.find_queue("q")->check();
    CHECK(q.pop() == "b");
  }
}

TEST_CASE(
    "a rate that has refilled serves a group although a large job for which it is full comes") {
  QueueTalk q;
  q.say("Q.CONFIG q GROUP g SET rate 1/30 max_active 2");
  q.add("a b", "GROUP g");
  CHECK(q.pop() == "a");
  CHECK(q.pop() == "null");
  q.set_clock(q.wall_ms() + 31, q.steady_ms() + 31);
  q.add("large", "GROUP g COST 2 PRI low");
  CHECK(q.pop() == "b");
  q.find_queue("q")->check();
}

TEST_CASE("a group keeps nothing of bands that its jobs with keys of their own have left") {
  QueueTalk q;
  q.add("stays", "GROUP g KEY stays PRI 0");
  const auto kept = [&] { return q.find_queue("q")->lanes.find_group("g")->own.size(); };
  for (int band = 1; band < 10; ++band) {
    const std::string number = std::to_string(band);
    q.add(number, "GROUP g KEY " + number + " PRI " + number);
    q.find_queue("q")->check();
    CHECK(kept() == 2);
    q.say("Q.CANCEL q " + number);
    q.find_queue("q")->check();
    CHECK(kept() == 1);
  }
}

}  // namespace
