// Q.CONFIG with many groups and keys: those that a change does not concern are not visited, and the
// others take it over in slices.
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

// More than fit into one slice.
constexpr int kMany = 3000;

class ManyGroups : public QueueTalk {
 public:
  explicit ManyGroups(const std::string& config = "max_active 100000") {
    say("Q.CONFIG q SET " + config);
  }

  void add_groups(int from = 0, int to = kMany) {
    for (int i = from; i < to; ++i) {
      const std::string number = std::to_string(i);
      add("j" + number, "GROUP g" + number + " KEY k" + number);
    }
  }
  Queue& queue() { return *find_queue("q"); }
  bool is_reconfiguring() { return queue().lanes.is_reconfiguring(); }
  int groups_with(uint64_t max_active) {
    int count = 0;
    queue().lanes.groups().for_each(
        [&](const Group* group) { count += group->limiter.max_active == max_active ? 1 : 0; });
    return count;
  }
  int keys_with(uint64_t max_active) {
    int count = 0;
    queue().lanes.keys().for_each(
        [&](const Key* key) { count += key->limiter.max_active == max_active ? 1 : 0; });
    return count;
  }
  // Runs one slice of the timers.
  void go_on() {
    run_some_timers();
    queue().check();
  }
};

}  // namespace

TEST_CASE(
    "a glob's rule reaches each group and key in its turn, the old value holding until then") {
  ManyGroups q;
  q.add_groups();
  CHECK(q.say("Q.CONFIG q GROUP g* SET max_active 1") == "OK");
  CHECK(q.say("Q.CONFIG q KEY k* SET max_active 2") == "OK");
  CHECK(q.is_reconfiguring());
  q.queue().check();
  // A slice is some hundred of them, about a millisecond.
  CHECK(q.groups_with(1) > 0);
  CHECK(q.groups_with(1) < 600);
  // Groups added in the meantime have the new value at once, like the configuration.
  q.add_groups(kMany, kMany + 1);
  CHECK(q.queue().lanes.find_group("g" + std::to_string(kMany))->limiter.max_active == 1);
  CHECK(q.say("Q.CONFIG q GROUP g7 GET max_active") == "{}");
  int slices = 0;
  for (; q.is_reconfiguring(); ++slices) {
    const int before = q.groups_with(1) + q.keys_with(2);
    q.go_on();
    CHECK(q.groups_with(1) + q.keys_with(2) - before < 600);
  }
  CHECK(slices > 2 * kMany / 600);
  CHECK(q.groups_with(1) == kMany + 1);
  CHECK(q.keys_with(2) == kMany + 1);
}

TEST_CASE("another change begins again, and the last one counts for all") {
  ManyGroups q;
  q.add_groups();
  q.say("Q.CONFIG q GROUP g* SET max_active 1");
  for (int i = 0; i < 3; ++i) q.go_on();
  CHECK(q.is_reconfiguring());
  q.say("Q.CONFIG q GROUP g* SET max_active 7");
  // In the middle of it, a pointer to a queue moves.
  q.say("RENAME q elsewhere");
  q.say("RENAME elsewhere q");
  q.pass(1);
  CHECK_FALSE(q.is_reconfiguring());
  CHECK(q.groups_with(7) == kMany);
  q.say("Q.CONFIG q GROUP g* RESET");
  q.restart(4);
  q.pass(1);
  CHECK(q.groups_with(0) == kMany);
}

TEST_CASE("what concerns no group, one of them, or nothing at all, walks over none") {
  ManyGroups q;
  q.add_groups();
  q.say("Q.CONFIG q GROUP g* SET max_active 3");
  q.pass(1);
  for (const char* change :
       {"SET lease_ms 5000 max_active 9 rate 1000/1 retry 3", "GROUP g7 SET max_active 1",
        "GROUP g\\* SET paused out", "KEY k9 SET max_active 4", "GROUP g* SET max_active 3",
        "GROUP x* RESET", "GROUP g7 RESET", "SET ttl_ms 0", "RESET"}) {
    CAPTURE(change);
    CHECK(q.say("Q.CONFIG q " + std::string(change)) == "OK");
    CHECK_FALSE(q.is_reconfiguring());
    q.queue().check();
  }
  CHECK(q.groups_with(3) == kMany);
  CHECK(q.keys_with(4) == 1);
  for (const char* change : {"SET ttl_ms 60000", "SET order lifo", "SET weight 2", "SET fair on",
                             "KEY k* SET rate 5/1000", "GROUP g? SET ttl_ms 5"}) {
    CAPTURE(change);
    q.say("Q.CONFIG q " + std::string(change));
    CHECK(q.is_reconfiguring());
    q.queue().check();
    q.pass(1);
    CHECK_FALSE(q.is_reconfiguring());
    q.queue().check();
  }
  CHECK(q.queue().lanes.find_group("g11")->config.ttl_ms == 60'000);
  CHECK(q.queue().lanes.find_group("g1")->config.ttl_ms == 5);
}

TEST_CASE("bands that change are read anew by the rules that name them") {
  ManyGroups q("bands low,high");
  q.say("Q.CONFIG q GROUP g* SET order lifo:high");
  q.add_groups();
  q.pass(1);
  CHECK(q.queue().lanes.find_group("g5")->config.order.is_lifo(1));
  CHECK_FALSE(q.queue().lanes.find_group("g5")->config.order.is_lifo(0));
  CHECK(q.say("Q.CONFIG q SET bands high,low") == "OK");
  q.pass(1);
  CHECK(q.queue().lanes.find_group("g5")->config.order.is_lifo(0));
}

TEST_CASE("fair shares are turned on and off under way, and every job is given once") {
  for (const bool ends_on : {false, true}) {
    CAPTURE(ends_on);
    ManyGroups q;
    q.add_groups();
    int popped = 0;
    const auto pop = [&] {
      const std::string id = q.pop();
      if (id != "null") ++popped;
      q.pass(0);
      q.ack(id);
    };
    q.say("Q.CONFIG q SET fair on");
    // A change ends within sixteen slices. A check takes far longer than a slice.
    for (int i = 0; i < 80; ++i) {
      q.go_on();
      pop();
      if (i % 16 == 15) CHECK_FALSE(q.is_reconfiguring());
      if (i % 16 == 3) q.say("Q.CONFIG q SET fair off");
      if (i % 16 == 7) q.say("Q.CONFIG q SET fair on weight " + std::to_string(1 + i % 5));
    }
    q.say("Q.CONFIG q SET fair " + std::string(ends_on ? "on" : "off"));
    while (q.stat("pending") != "0") pop();
    CHECK(popped == kMany);
    q.queue().check();
  }
}

TEST_CASE(
    "a rate owes no more than its new burst, also where a restart or a takeover comes before it") {
  for (const std::string level : {"GROUP g*", "KEY k*"}) {
    for (const bool idle : {false, true}) {
      for (const std::string meanwhile : {"nothing", "restart", "takeover"}) {
        CAPTURE(level);
        CAPTURE(idle);
        CAPTURE(meanwhile);
        ManyGroups q;
        if (meanwhile == "takeover") q.begin_following();
        q.say("Q.CONFIG q " + level + " SET rate 1/3600000");
        q.add_groups();
        // Each owes an hour.
        for (int i = 0; i < kMany; i += 100) q.pop("COUNT 100");
        if (idle) {
          for (int i = 0; i < kMany; ++i) q.ack("j" + std::to_string(i));
          q.say("Q.CONFIG q SET retain_completed 0");
        }
        q.pass(10'000);
        CHECK(q.queue().lanes.groups().empty() == idle);
        q.say("Q.CONFIG q " + level + " SET rate 1/5000:3");
        CHECK(q.is_reconfiguring());
        if (meanwhile == "restart") q.restart(4);
        if (meanwhile == "takeover") q.take_over(4);
        // Some return before their idle rates are processed.
        q.add_groups(0, idle ? kMany / 2 : 0);
        q.pass(0);
        CHECK_FALSE(q.is_reconfiguring());
        for (int i = 0; i < kMany; i += 97) {
          const std::string number = std::to_string(i);
          const bool is_back = idle && i < kMany / 2;
          if (!is_back) q.add("new" + number, "GROUP g" + number + " KEY k" + number);
          CHECK(q.job((is_back ? "j" : "new") + number, {"why"}) == "rate 5000");
        }
        // From then on a restart or a takeover adds nothing to what it owes.
        if (meanwhile == "nothing") continue;
        if (meanwhile == "takeover") q.begin_following();
        q.pass(3000);
        if (meanwhile == "restart") q.restart(4);
        if (meanwhile == "takeover") q.take_over(4);
        q.pass(0);
        for (int i = 0; i < kMany; i += 97) {
          const bool is_back = idle && i < kMany / 2;
          CHECK(q.job((is_back ? "j" : "new") + std::to_string(i), {"why"}) == "rate 2000");
        }
      }
    }
  }
}

}  // namespace sluice::test
