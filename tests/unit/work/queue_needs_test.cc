// Ends that concern very many jobs: dependents of an ended job, and leases of a lost connection,
// are processed some at a time.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace {

using sluice::Queue;
using sluice::test::QueueTalk;
using sluice::test::RespValue;

constexpr int kToldPerHold = 256;

std::string name_of(int number) { return "j" + std::to_string(number); }

// A queue in which `count` jobs need the job "base".
class Needed : public QueueTalk {
 public:
  explicit Needed(int dependents) : dependents_(dependents) {
    add("base");
    for (int i = 0; i < dependents; ++i) add(name_of(i), "NEED base");
  }
  void end_base(const std::string& how = "") {
    pop("ID base");
    how.empty() ? ack("base") : nack("base", how);
  }
  Queue& queue(const std::string& name = "q") {
    Queue& found = *find_queue(name);
    found.check();
    return found;
  }
  std::string last() const { return name_of(dependents_ - 1); }
  uint64_t blocked() { return queue().count(sluice::JobState::kBlocked); }
  // Runs all slices; returns their number.
  int go_on() {
    int slices = 0;
    for (; !queue().releases.empty(); ++slices) run_some_timers();
    return slices;
  }

 private:
  int dependents_;
};

TEST_CASE("256 dependents are told with the end, the others in slices, by their ranks") {
  Needed exactly(kToldPerHold);
  const uint64_t next_seq = exactly.queue().next_seq;
  exactly.end_base();
  CHECK(exactly.blocked() == 0);
  CHECK(exactly.queue().next_seq == next_seq);

  Needed more(3 * kToldPerHold + 1);
  more.say("Q.MOVE q " + more.last() + " BOOST 5");
  more.say("Q.MOVE q j0 BACK");
  more.end_base();
  CHECK(more.state("base") == "completed");
  CHECK(more.blocked() == 2 * kToldPerHold + 1);
  CHECK(more.state(more.last()) == "pending");
  CHECK(more.state(name_of(kToldPerHold - 1)) == "pending");
  CHECK(more.job(name_of(kToldPerHold), {"state", "why"}) == "blocked releasing");
  const std::vector<RespValue> listed =
      more.ask("Q.LIST q WHERE STATE blocked COUNT 1000").items.at(1).items;
  CHECK(listed.size() == 2 * kToldPerHold + 1);
  CHECK(std::all_of(listed.begin(), listed.end(),
                    [](const RespValue& job) { return job.field("why") == "releasing"; }));
  more.run_some_timers();
  CHECK(more.blocked() == kToldPerHold + 1);
  CHECK(more.job("j0", {"state", "why"}) == "blocked releasing");
  CHECK(more.go_on() == 2);
  CHECK(more.blocked() == 0);
  const std::vector<RespValue> events = more.ask("Q.EVENTS q - COUNT 1000 TYPE ready").items;
  CHECK(events.size() == 3 * kToldPerHold + 1);
  CHECK(events.front().items.at(3).text == more.last());
  CHECK(events.back().items.at(3).text == "j0");
}

TEST_CASE("what is blocked by several says what has not ended, or that it is being released") {
  Needed q(300);
  q.add("other");
  q.say("Q.ADD q both '' NEED base NEED other");
  q.end_base();
  CHECK(q.job("both", {"state", "why"}) == "blocked blocked_by other");
  q.say("Q.CANCEL q other");
  CHECK(q.job("both", {"state"}) == "cancelled");

  Needed failing(300);
  failing.add("other");
  failing.say("Q.ADD q both '' NEED base NEED other");
  failing.end_base("FATAL");
  CHECK(failing.job("both", {"state", "why"}) == "blocked releasing");
  failing.run_timers();
  CHECK(failing.job("both", {"state", "error"}) == "cancelled need base");
}

TEST_CASE("a pop with the acknowledgement, and one that waits, get those that go first") {
  Needed q(600);
  q.pop("ID base");
  CHECK(q.ids_of(q.ask("Q.ACK q base " + q.lease("base") + " POP")) == "j0");
  Needed waiting(600);
  waiting.pop("ID base");
  CHECK(waiting.say_as(1, "Q.POP 1 q ID j599 BLOCK 0") == "(waits)");
  waiting.ack("base");
  CHECK(waiting.take_deliveries().empty());
  waiting.run_timers();
  const auto delivered = waiting.take_deliveries();
  REQUIRE(delivered.count(1) == 1);
  CHECK(waiting.ids_of(delivered.at(1)) == "j599");
}

TEST_CASE("who waits for the end of a dependent hears of it in its turn") {
  Needed q(600);
  CHECK(q.say_as(1, "Q.GET q j599 WAIT 0") == "(waits)");
  CHECK(q.say_as(2, "Q.GET q j0 WAIT 0") == "(waits)");
  CHECK(q.say_as(3, "Q.GET q base WAIT 0") == "(waits)");
  q.say("Q.CONFIG q SET retain_completed 0 retain_failed 0");
  q.say("Q.CANCEL q base");
  auto delivered = q.take_deliveries();
  CHECK(delivered.size() == 2);
  CHECK(delivered.at(2).field("error") == "need base");
  CHECK(delivered.at(3).field("state") == "cancelled");
  q.run_timers();
  delivered = q.take_deliveries();
  CHECK(delivered.at(1).field("error") == "need base");
  CHECK(q.queue().jobs.empty());
}

TEST_CASE("the release of a job that is not retained goes on, also where its id comes again") {
  for (const bool completes : {true, false}) {
    Needed q(600);
    q.say("Q.CONFIG q SET retain_completed 0 retain_failed 0");
    q.end_base(completes ? "" : "FATAL");
    CHECK(q.state("base") == "null");
    q.add("base");
    q.add("later", "NEED base");
    CHECK(q.job("later", {"why"}) == "blocked_by base");
    CHECK(q.job("j599", {"why"}) == "releasing");
    // Its arrival distinguishes it from later jobs.
    q.say("Q.MOVE q j598 BACK");
    q.say("Q.ADD q j597 other IFDUP UPDATE PRI LOW");
    CHECK(q.job("j597", {"why"}) == "releasing");
    CHECK(q.job("j598", {"why"}) == "releasing");
    // A job that replaces a dependent needs the job that has the id now.
    CHECK(q.say("Q.ADD q j596 '' NEED base IFDUP REPLACE", "state") == "blocked");
    CHECK(q.job("j596", {"why"}) == "blocked_by base");
    q.restart(4);
    CHECK(q.job("j596", {"why"}) == "blocked_by base");
    q.run_timers();
    for (const char* id : {"j597", "j598", "j599"}) {
      CHECK(q.state(id) == (completes ? "pending" : "null"));
    }
    CHECK(q.state("j596") == "blocked");
    CHECK(q.state("later") == "blocked");
    q.end_base();
    CHECK(q.blocked() == 0);
  }
}

TEST_CASE("the same id ends twice while its first release is under way") {
  Needed q(600);
  q.end_base();
  q.say("Q.RETRY q base");
  for (int i = 0; i < 300; ++i) q.add("again" + std::to_string(i), "NEED base");
  q.end_base("FATAL");
  CHECK(q.queue().releases.size() == 2);
  q.restart_from_checkpoint(4);
  CHECK(q.queue().releases.size() == 2);
  CHECK(q.job("j599", {"why"}) == "releasing");
  CHECK(q.job("again299", {"why"}) == "releasing");
  q.run_timers();
  CHECK(q.queue().releases.empty());
  CHECK(q.state("j599") == "pending");
  CHECK(q.job("again299", {"state", "error"}) == "cancelled need base");
}

TEST_CASE("who waits for its turn can be cancelled, purged and cancelled by another release") {
  Needed q(600);
  q.add("second");
  // The last dependents of "second" are also those of "base".
  for (int i = 0; i < 300; ++i) {
    q.say("Q.ADD q both" + std::to_string(i) + " '' NEED base NEED second");
  }
  q.say("Q.CONFIG q SET retain_completed 0 retain_failed 0");
  q.end_base("FATAL");
  q.say("Q.CANCEL q second");
  CHECK(q.queue().releases.size() == 2);
  CHECK(q.say("Q.CANCEL q both299") == "cancelled");
  CHECK(q.state("both299") == "null");
  q.go_on();
  CHECK(q.queue().jobs.empty());

  // The other way round: the first release empties the second one.
  Needed other(300);
  for (int i = 0; i < 300; ++i) {
    other.add("x" + std::to_string(i), i == 0 ? "NEED j299" : "NEED x" + std::to_string(i - 1));
  }
  other.say("Q.CONFIG q SET retain_failed 0 retain_completed 0");
  for (int i = 1; i < 300; ++i) other.say("Q.ADD q y" + std::to_string(i) + " '' NEED x0 NEED x1");
  other.end_base("FATAL");
  other.go_on();
  CHECK(other.queue().jobs.empty());
}

TEST_CASE("a chain of needs ends in slices") {
  QueueTalk q;
  q.say("Q.CONFIG q SET retain_completed 100000");
  q.add("j0");
  for (int i = 1; i < 2000; ++i) q.add(name_of(i), "NEED " + name_of(i - 1));
  q.say("Q.CANCEL q j0");
  CHECK(q.state(name_of(kToldPerHold)) == "cancelled");
  CHECK(q.job(name_of(kToldPerHold + 1), {"state", "why"}) == "blocked releasing");
  CHECK(q.job(name_of(kToldPerHold + 2), {"why"}) == "blocked_by " + name_of(kToldPerHold + 1));
  q.run_some_timers();
  q.find_queue("q")->check();
  CHECK(q.stat("blocked") != "0");
  q.run_timers();
  CHECK(q.stat("blocked") == "0");
  CHECK(q.job("j1999", {"error"}) == "need j1998");
}

TEST_CASE("one command tells no more than 256, however many ends it makes") {
  QueueTalk q;
  for (int i = 0; i < 200; ++i) {
    q.add("hub" + std::to_string(i), "PRI HIGH");
    for (int j = 0; j < 3; ++j) {
      q.add(name_of(3 * i + j), "NEED hub" + std::to_string(i));
    }
  }
  q.say("Q.CANCEL q WHERE STATE pending");
  CHECK(q.stat("blocked") == std::to_string(600 - kToldPerHold));
  q.find_queue("q")->check();
  q.run_timers();
  CHECK(q.stat("blocked") == "0");
}

TEST_CASE("a release goes with its queue: RENAME, MOVE, SWAPDB, COPY, DEL, a restart") {
  const auto released = [](Needed& q, const std::string& name) {
    CHECK(q.queue(name).count(sluice::JobState::kBlocked) != 0);
    q.run_timers();
    return q.queue(name).count(sluice::JobState::kPending);
  };
  // By its values, and by a record that says where it was moved.
  for (const int dependents : {300, 2000}) {
    Needed q(dependents);
    q.end_base();
    q.say("RENAME q r");
    q.restart(4);
    CHECK(released(q, "r") == static_cast<uint64_t>(dependents));
  }
  Needed moved(600);
  moved.end_base();
  moved.say("MOVE q 1");
  moved.say("SWAPDB 0 1");
  moved.restart(4);
  moved.say("SELECT 0");
  CHECK(moved.say("Q.STATS q", "blocked") != "0");
  moved.run_timers();
  CHECK(moved.say("Q.STATS q", "blocked") == "0");
  CHECK(moved.say("Q.STATS q", "pending") == "600");

  Needed copied(600);
  copied.add("base2");
  copied.say("Q.ADD q both '' NEED base NEED base2");
  copied.end_base();
  copied.say("COPY q c");
  copied.say("DEL q");
  copied.restart(4);
  CHECK(copied.say("Q.GET c both", "why") == "blocked_by base2");
  CHECK(released(copied, "c") == 601);
  copied.say("Q.CANCEL c base2");
  CHECK(copied.say("Q.GET c both", "state") == "cancelled");
}

TEST_CASE("in a copy that is made amid a release no job runs whose need has failed") {
  Needed q(600);
  q.end_base("FATAL");
  CHECK(q.say("COPY q c") == "1");
  CHECK(q.queue("c").count(sluice::JobState::kBlocked) == 600 - kToldPerHold);
  q.run_timers();
  CHECK(q.queue("c").count(sluice::JobState::kPending) == 0);
  CHECK(q.say("Q.GET c j599", "error") == "need base");
}

TEST_CASE("what dependents need besides counts") {
  Needed q(0);
  std::string needs;
  for (int i = 0; i < 63; ++i) {
    const std::string id = std::string(300, 'n') + std::to_string(i);
    q.add(id);
    needs += " NEED " + id;
  }
  for (int i = 0; i < 40; ++i) q.add(name_of(i), "NEED base" + needs);
  SUBCASE("completed") { q.end_base(); }
  SUBCASE("failed") { q.end_base("FATAL"); }
  CHECK(q.go_on() >= 4);
  CHECK(q.state(name_of(39)) != "pending");
}

TEST_CASE("a lost connection's tied leases are shortened some at a time") {
  constexpr int kLeases = 3000;
  QueueTalk q;
  q.say("Q.CONFIG q SET disconnect_grace_ms 50 lease_ms 60000");
  for (int i = 0; i < kLeases; ++i) q.add(name_of(i));
  for (int i = 0; i < kLeases; i += 250) {
    q.ids_of(*q.run(1, QueueTalk::words("Q.POP 1 q TIED COUNT 250")));
  }
  q.disconnect(1);
  const auto shortened = [&] {
    Queue& queue = *q.find_queue("q");
    return queue.leases.count_below(static_cast<uint64_t>(q.steady_ms()) + 51);
  };
  CHECK(shortened() == 1024);
  // Another connection takes over a lease that has not been processed yet.
  q.say_as(2, "Q.TOUCH q " + name_of(kLeases - 1) + " " + q.lease(name_of(kLeases - 1)));
  q.say("RENAME q r");
  q.say("RENAME r q");
  q.engine().options().debug_access = sluice::DebugAccess::kEverybody;
  CHECK(q.say("DEBUG RELOAD") == "OK");
  CHECK(q.run_some_timers());
  CHECK(shortened() < kLeases - 1);
  q.run_timers();
  CHECK(shortened() == kLeases - 1);
  CHECK(q.find_queue("q")->lost_connections.empty());
  CHECK(q.stat("timer_lag_ms") == "0");
  q.pass(50);
  CHECK(q.stat("active") == "1");
}

TEST_CASE("shortening leases delays no timers of others") {
  constexpr int kLeases = 10'000;
  QueueTalk q;
  for (int i = 0; i < kLeases; ++i) q.add(name_of(i));
  for (int i = 0; i < kLeases; i += 250) q.run(1, QueueTalk::words("Q.POP 1 q TIED COUNT 250"));
  q.say("Q.ADD {q} other '' DELAY 1");
  q.disconnect(1);
  q.set_clock(q.wall_ms() + 5, q.steady_ms() + 5);
  q.run_some_timers();
  q.run_some_timers();
  CHECK(q.say("Q.GET {q} other", "state") == "pending");
  CHECK(!q.find_queue("q")->lost_connections.empty());
}

TEST_CASE("a lost connection may hold leases in very many queues") {
  QueueTalk q;
  for (int i = 0; i < 2000; ++i) {
    const std::string queue = "{q}" + std::to_string(i);
    q.say("Q.CONFIG " + queue + " SET disconnect_grace_ms 0");
    q.say("Q.ADD " + queue + " job ''");
    q.run(1, QueueTalk::words("Q.POP 1 " + queue + " TIED"));
  }
  q.disconnect(1);
  q.pass(0);
  int active = 0;
  for (int i = 0; i < 2000; ++i) {
    if (q.say("Q.STATS {q}" + std::to_string(i), "active") != "0") ++active;
  }
  CHECK(active == 0);
}

}  // namespace
