// Many waiting pops are served in slices: in order, whatever happens in between.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "tests/support/queue_talk.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr size_t kWaiting = 200;
// A later connection.
constexpr size_t kLate = kWaiting + 10;

struct Fixture : QueueTalk {
  Fixture() { connect(2 * kWaiting); }

  void pause() { REQUIRE(say("Q.CONFIG q SET paused out") == "OK"); }
  void resume() { REQUIRE(say("Q.CONFIG q SET paused none") == "OK"); }
  void add_jobs(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) add(std::to_string(i));
  }
  // Connections 1 to kWaiting wait, in order.
  void wait_all(const std::string& options = "BLOCK 0") {
    for (size_t i = 1; i <= kWaiting; ++i) {
      REQUIRE(say_as(i, "Q.POP 1 q " + options) == "(waits)");
    }
  }
  // Records what has been delivered, by connection.
  void take() {
    for (const auto& [connection, reply] : take_deliveries()) {
      REQUIRE(got.find(static_cast<size_t>(connection)) == got.end());
      got[static_cast<size_t>(connection)] = ids_of(reply);
    }
  }
  void step() {
    run_some_timers();
    take();
  }
  void settle() {
    run_timers();
    take();
  }
  // Runs the first slice of serving `jobs` jobs to all waiting pops.
  void begin_serving(size_t jobs) {
    pause();
    add_jobs(1, jobs);
    wait_all();
    resume();
    take();
    REQUIRE(got.size() > 0);
    REQUIRE(got.size() < std::min(jobs, kWaiting) / 2);
  }
  // The connections up to `last`, except some, have the jobs from 1 on in order.
  void check_order(size_t last, const std::set<size_t>& without = {}) {
    size_t job = 0;
    for (size_t i = 1; i <= last; ++i) {
      if (without.contains(i)) continue;
      CHECK_MESSAGE(got[i] == std::to_string(++job), "connection ", i);
    }
  }
  std::string waiting() { return stat("waiting_pops"); }

  std::map<size_t, std::string> got;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a pause that ends serves those who wait in slices, each in its unit") {
  begin_serving(kWaiting + 100);
  while (got.size() != kWaiting) {
    const size_t before = got.size();
    const Lsn units_before = units();
    step();
    REQUIRE(got.size() > before);
    CHECK(got.size() - before <= 64);
    CHECK(units() - units_before == got.size() - before);
  }
  check_order(kWaiting);
  CHECK(pop() == std::to_string(kWaiting + 1));
}

TEST_CASE_FIXTURE(Fixture, "a transaction and a script that add serve in slices") {
  for (const bool script : {false, true}) {
    wait_all();
    if (script) {
      say_as(0, "DEL q");
      CHECK(session(0).eval("for i = 1, 200 do redis.call('Q.ADD', KEYS[1], i, '') end", {"q"}) ==
            "_\r\n");
    } else {
      say("MULTI");
      add_jobs(1, kWaiting);
      CHECK(say("EXEC") != "null");
    }
    take();
    CHECK(got.size() < kWaiting / 2);
    settle();
    CHECK(got.size() == kWaiting);
    check_order(kWaiting);
    got.clear();
  }
}

TEST_CASE_FIXTURE(Fixture, "adds that follow serve the longest waiting first") {
  begin_serving(100);
  add_jobs(101, 100);
  take();
  CHECK(got.size() > 100);
  settle();
  check_order(kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "a pop that comes while others are owed jobs stands behind them") {
  SUBCASE("jobs are left for it") {
    begin_serving(kWaiting + 2);
    CHECK(say_as(kLate, "Q.POP 1 q") == "(waits)");
    CHECK(say_as(kLate + 1, "Q.POP 1 q BLOCK 0") == "(waits)");
    settle();
    check_order(kWaiting);
    CHECK(got[kLate] == std::to_string(kWaiting + 1));
    CHECK(got[kLate + 1] == std::to_string(kWaiting + 2));
  }
  SUBCASE("none is left: the one that does not block is answered, the other waits") {
    begin_serving(kWaiting - 10);
    CHECK(say_as(kLate, "Q.POP 1 q") == "(waits)");
    CHECK(say_as(kLate + 1, "Q.POP 1 q BLOCK 0") == "(waits)");
    settle();
    check_order(kWaiting - 10);
    CHECK(got[kLate] == "null");
    CHECK(got.find(kLate + 1) == got.end());
    CHECK(waiting() == "11");
    CHECK(say_as(kLate, "Q.POP 1 q") == "null");
  }
  SUBCASE("Q.ACK ... POP as well") {
    begin_serving(kWaiting + 1);
    CHECK(say_as(kLate, "Q.ACK q 1 " + lease("1") + " POP") == "(waits)");
    settle();
    CHECK(got[kLate] == std::to_string(kWaiting + 1));
  }
  SUBCASE("of several queues it takes from one where nobody is owed, and stands at the others") {
    say("Q.ADD free f payload");
    begin_serving(kWaiting - 10);
    CHECK(say_as(kLate, "Q.POP 2 q free").find("id=f") != std::string::npos);
    CHECK(say_as(kLate, "Q.POP 2 q free") == "(waits)");
    settle();
    CHECK(got[kLate] == "null");
    CHECK(say("Q.STATS free", "waiting_pops") == "0");
  }
}

TEST_CASE_FIXTURE(Fixture, "a Q.ACK POP that has stood behind others acknowledges once") {
  say("Q.CONFIG q SET fencing off");
  begin_serving(kWaiting + 1);
  const std::string line = "Q.ACK q 1 * POP WORKER w REQID r1";
  CHECK(say_as(kLate, line) == "(waits)");
  disconnect(kLate);
  settle();
  CHECK(pop() == std::to_string(kWaiting + 1));
  add("1", "IFDUP UPDATE");
  CHECK(pop("WORKER other") == "1");
  CHECK(say_as(kLate, line) == "null");
  CHECK(state("1") == "active");
}

TEST_CASE_FIXTURE(Fixture, "a pop in passing at two queues ends when both have had their turns") {
  begin_serving(kWaiting - 10);
  // Another queue with its own waiters; connections above kLate are free.
  say("Q.CONFIG other SET paused out");
  for (int i = 0; i < 100; ++i) say("Q.ADD other o" + std::to_string(i) + " payload");
  for (size_t i = 0; i < 100; ++i) {
    REQUIRE(say_as(kLate + 10 + i, "Q.POP 1 other BLOCK 0") == "(waits)");
  }
  say("Q.CONFIG other SET paused none");
  SUBCASE("nothing is left") {
    CHECK(say_as(kLate, "Q.POP 2 q other") == "(waits)");
    settle();
    CHECK(got[kLate] == "null");
  }
  SUBCASE("the second has one more") {
    say("Q.ADD other last payload");
    CHECK(say_as(kLate, "Q.POP 2 q other") == "(waits)");
    settle();
    CHECK(got[kLate] == "last");
    CHECK(waiting() == "10");
  }
  check_order(kWaiting - 10);
}

TEST_CASE_FIXTURE(Fixture, "a pop for which there is no job is answered at once") {
  begin_serving(kWaiting);
  CHECK(say_as(kLate, "Q.POP 1 q MATCH key") == "null");
  CHECK(say_as(kLate, "Q.POP 1 q MATCH key BLOCK 0") == "(waits)");
  add("k", "KEY key");
  settle();
  check_order(kWaiting);
  CHECK(got[kLate] == "k");
}

TEST_CASE_FIXTURE(Fixture, "a pop in passing is answered after its turn, whoever comes back") {
  pause();
  add_jobs(1, 10 * kWaiting);
  add("k", "KEY key");
  wait_all();
  REQUIRE(say_as(kLate - 1, "Q.POP 1 q MATCH key BLOCK 0") == "(waits)");
  resume();
  REQUIRE(say_as(kLate, "Q.POP 1 q MATCH key") == "(waits)");
  size_t served = 0;
  while (served < 2 * kWaiting && got.find(kLate) == got.end()) {
    step();
    for (size_t i = 1; i <= kWaiting; ++i) {
      if (got.erase(i) == 0) continue;
      ++served;
      REQUIRE(say_as(i, "Q.POP 1 q BLOCK 0") == "(waits)");
    }
  }
  CHECK(served < kWaiting + 64);
  CHECK(got[kLate] == "null");
  CHECK(got[kLate - 1] == "k");
}

TEST_CASE_FIXTURE(Fixture, "who has had his turn comes first when there is something for him") {
  pause();
  add_jobs(1, kWaiting - 10);
  REQUIRE(say_as(kLate, "Q.POP 1 q MATCH key BLOCK 0") == "(waits)");
  wait_all();
  resume();
  step();
  REQUIRE(got.size() < kWaiting / 2);
  say("MULTI");
  add_jobs(kWaiting - 9, 9);
  add("k", "KEY key");
  say("EXEC");
  settle();
  check_order(kWaiting - 1);
  CHECK(got[kLate] == "k");
  CHECK(waiting() == "1");
}

TEST_CASE_FIXTURE(Fixture, "what needs no job is answered while others are owed some") {
  pause();
  add_jobs(1, kWaiting + 2);
  resume();
  const std::string first = say_as(kLate, "Q.POP 1 q WORKER w REQID t");
  pause();
  wait_all();
  resume();
  take();
  CHECK(got.size() < kWaiting);
  CHECK(say_as(kLate, "Q.POP 1 q WORKER w REQID t") == first);
  CHECK(say_as(kLate, "Q.POP 1 q ID 1").rfind("-GONE", 0) == 0);
  CHECK(say_as(kLate, "Q.POP 1 q ID unknown").rfind("-GONE", 0) == 0);
  // The last job is still available; the job of somebody who is owed it will be gone.
  CHECK(say_as(kLate, "Q.POP 1 q ID 202") == "(waits)");
  CHECK(say_as(kLate + 1, "Q.POP 1 q ID 200") == "(waits)");
  settle();
  CHECK(got[kLate] == "202");
  CHECK(got[kLate + 1].rfind("-GONE", 0) == 0);
  CHECK(waiting() == "0");
}

TEST_CASE_FIXTURE(Fixture,
                  "a pop in a transaction or a script cannot wait: it takes what is next") {
  begin_serving(kWaiting + 2);
  const size_t before = got.size();
  say_as(kLate, "MULTI");
  say_as(kLate, "Q.POP 1 q");
  CHECK(say_as(kLate, "EXEC").find("id=" + std::to_string(before + 1)) != std::string::npos);
  const std::string popped =
      session(kLate).eval("return redis.call('Q.POP', '1', KEYS[1])[1][4]", {"q"});
  CHECK(popped.find(std::to_string(before + 2 + 43)) == std::string::npos);
  settle();
  // No waiting pop is left out.
  CHECK(got.size() == kWaiting);
  CHECK(waiting() == "0");
  for (size_t i = 2; i <= kWaiting; ++i) CHECK(std::stoul(got[i]) > std::stoul(got[i - 1]));
}

TEST_CASE_FIXTURE(Fixture, "a pause in the middle keeps the rest, in their order") {
  begin_serving(kWaiting);
  const size_t before = got.size();
  CHECK(say_as(kLate, "Q.POP 1 q") == "(waits)");
  pause();
  settle();
  CHECK(got[kLate] == "null");
  got.erase(kLate);
  CHECK(got.size() == before);
  resume();
  settle();
  check_order(kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "a queue that goes in the middle leaves the rest waiting for its name") {
  begin_serving(kWaiting);
  const size_t before = got.size();
  CHECK(say_as(kLate, "Q.POP 1 q") == "(waits)");
  SUBCASE("DEL") { say("DEL q"); }
  SUBCASE("RENAME") { say("RENAME q elsewhere"); }
  SUBCASE("FLUSHALL") { say("FLUSHALL"); }
  SUBCASE("MOVE") { say("MOVE q 1"); }
  SUBCASE("another type") { say("SET q string"); }
  settle();
  CHECK(got[kLate] == "null");
  got.erase(kLate);
  CHECK(got.size() == before);
  say("DEL q");
  add_jobs(before + 1, kWaiting - before);
  settle();
  check_order(kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "SWAPDB in the middle serves them from the queue that comes") {
  say("SELECT 1");
  say("Q.ADD q other payload");
  say("SELECT 0");
  begin_serving(kWaiting);
  const size_t before = got.size();
  say("SWAPDB 0 1");
  settle();
  CHECK(got.size() == before + 1);
  CHECK(got[before + 1] == "other");
  say("SWAPDB 0 1");
  settle();
  CHECK(got.size() == kWaiting);
  check_order(kWaiting, {before + 1});
}

TEST_CASE_FIXTURE(Fixture, "who gives up or is lost in the middle is passed over") {
  begin_serving(kWaiting);
  const size_t next = got.size() + 1;
  CHECK(give_up(next));
  disconnect(next + 1);
  disconnect(kWaiting);
  settle();
  check_order(kWaiting, {next, next + 1, kWaiting});
  CHECK(got.size() == kWaiting - 3);
  CHECK(waiting() == "0");
  CHECK(pop() == std::to_string(kWaiting - 2));
}

TEST_CASE_FIXTURE(Fixture, "one that waits in passing may be lost") {
  begin_serving(kWaiting - 1);
  CHECK(say_as(kLate, "Q.POP 1 q") == "(waits)");
  CHECK(say_as(kLate + 1, "Q.POP 1 q") == "(waits)");
  disconnect(kLate);
  CHECK(give_up(kLate + 1));
  settle();
  check_order(kWaiting - 1);
  CHECK(got.size() == kWaiting - 1);
}

TEST_CASE_FIXTURE(Fixture, "queues take turns") {
  constexpr size_t kQueues = 100;
  for (size_t i = 1; i <= kWaiting; ++i) {
    const std::string queue = "q" + std::to_string(i % kQueues);
    REQUIRE(say_as(i, "Q.POP 1 " + queue + " BLOCK 0") == "(waits)");
  }
  say("MULTI");
  for (size_t i = 0; i < 2 * kQueues; ++i) {
    say("Q.ADD q" + std::to_string(i % kQueues) + " " + std::to_string(i) + " payload");
  }
  say("EXEC");
  settle();
  CHECK(got.size() == kWaiting);
  for (size_t i = 1; i <= kWaiting; ++i) {
    CHECK(std::stoul(got[i]) % kQueues == i % kQueues);
    CHECK((std::stoul(got[i]) < kQueues) == (i < kQueues || i == kQueues));
  }
}

TEST_CASE_FIXTURE(Fixture, "queues of different shards take turns") {
  std::string other = "r";
  while (KeyRef(other).shard == KeyRef("q").shard) other += "r";
  const auto queue_of = [&](size_t i) { return i % 2 == 0 ? std::string("q") : other; };
  for (size_t i = 1; i <= kWaiting; ++i) {
    REQUIRE(say_as(i, "Q.POP 1 " + queue_of(i) + " BLOCK 0") == "(waits)");
  }
  say("MULTI");
  for (size_t i = 1; i <= kWaiting; ++i) {
    say("Q.ADD " + queue_of(i) + " " + std::to_string(i) + " payload");
  }
  say("EXEC");
  take();
  const auto served = [&](size_t rest) {
    return std::count_if(got.begin(), got.end(),
                         [&](const auto& reply) { return reply.first % 2 == rest; });
  };
  const auto before = std::pair(served(0), served(1));
  step();
  CHECK(served(0) > before.first);
  CHECK(served(1) > before.second);
  settle();
  CHECK(got.size() == kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "pops of many kinds, and of many jobs, make shorter slices") {
  SUBCASE("COUNT") {
    pause();
    add_jobs(1, 10 * kWaiting);
    wait_all("COUNT 10 BLOCK 0");
    resume();
    take();
    CHECK(got.size() <= 12);
    CHECK(got[1] == "1 2 3 4 5 6 7 8 9 10");
  }
  SUBCASE("MATCH") {
    pause();
    for (size_t i = 1; i <= kWaiting; ++i) add(std::to_string(i), "KEY k" + std::to_string(i));
    for (size_t i = 1; i <= kWaiting; ++i) {
      REQUIRE(say_as(i, "Q.POP 1 q MATCH k" + std::to_string(i) + " BLOCK 0") == "(waits)");
    }
    resume();
    take();
    CHECK(got.size() <= 8);
    // Each turn handles one kind.
    step();
    CHECK(got.size() >= 20);
  }
  settle();
  CHECK(got.size() == kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "CLIENT PAUSE keeps the rest until it ends") {
  begin_serving(kWaiting);
  const size_t before = got.size();
  say("CLIENT PAUSE 100");
  settle();
  CHECK(got.size() == before);
  pass(101);
  settle();
  check_order(kWaiting);
}

TEST_CASE_FIXTURE(Fixture, "a restart in the middle loses no job") {
  begin_serving(kWaiting);
  step();
  const size_t active = got.size();
  CHECK(active < kWaiting);
  restart(4);
  CHECK(stat("active") == std::to_string(active));
  CHECK(stat("pending") == std::to_string(kWaiting - active));
  CHECK(pop() == std::to_string(active + 1));
}

TEST_CASE_FIXTURE(Fixture, "slices change nothing about who gets what") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t limit) { return random() % limit; };
    say("DEL q");
    got.clear();
    std::deque<size_t> jobs;
    std::deque<size_t> waiters;
    std::map<size_t, std::string> expected;
    bool passing = false;
    size_t next_job = 1;
    size_t next_connection = 1;
    const auto match = [&] {
      while (!jobs.empty() && !waiters.empty()) {
        expected[waiters.front()] = std::to_string(jobs.front());
        jobs.pop_front();
        waiters.pop_front();
      }
    };
    while (next_connection < 2 * kWaiting) {
      const size_t what = below(10);
      if (what < 2) {
        // Otherwise one that is expected to find nothing may find these.
        if (passing) settle();
        passing = false;
        const size_t count = 1 + below(150);
        say("MULTI");
        add_jobs(next_job, count);
        say("EXEC");
        for (size_t i = 0; i < count; ++i) jobs.push_back(next_job++);
      } else if (what < 6) {
        for (size_t i = below(60); i != 0 && next_connection < 2 * kWaiting; --i) {
          waiters.push_back(next_connection);
          match();
          const std::string ids = ids_of(
              run(next_connection, {"Q.POP", "1", "q", "BLOCK", "0"}).value_or(RespValue::of("")));
          if (!ids.empty()) got[next_connection] = ids;
          ++next_connection;
        }
      } else if (what < 8) {
        const size_t connection = next_connection++;
        match();
        expected[connection] = jobs.empty() ? "null" : std::to_string(jobs.front());
        if (!jobs.empty()) jobs.pop_front();
        const auto reply = run(connection, {"Q.POP", "1", "q"});
        reply ? void(got[connection] = ids_of(*reply)) : void(passing = true);
      } else {
        step();
      }
      match();
    }
    settle();
    CHECK_MESSAGE(got == expected, "seed ", seed);
    CHECK(waiting() == std::to_string(waiters.size()));
    for (const size_t connection : waiters) give_up(connection);
  }
}

// --- Answers that many wait for ---

TEST_CASE_FIXTURE(Fixture, "pops by ID hear in slices that their queue is gone") {
  pause();
  add_jobs(1, kWaiting);
  for (size_t i = 1; i <= kWaiting; ++i) {
    REQUIRE(say_as(i, "Q.POP 1 q BLOCK 0 ID " + std::to_string(i)) == "(waits)");
  }
  say("DEL q");
  take();
  CHECK(got.size() > 0);
  CHECK(got.size() < kWaiting / 2);
  // A job that is there again is given to its pop.
  size_t again = kWaiting;
  while (got.find(again) != got.end()) --again;
  size_t lost = again - 1;
  while (got.find(lost) != got.end()) --lost;
  add_jobs(again, 1);
  disconnect(lost);
  while (got.size() < kWaiting - 1) {
    const size_t before = got.size();
    step();
    REQUIRE(got.size() > before);
    CHECK(got.size() - before <= 66);
  }
  CHECK(got.find(lost) == got.end());
  for (const auto& [i, reply] : got) {
    const std::string id = std::to_string(i);
    CHECK(reply == (i == again ? id : "-GONE id=" + id + " state=unknown"));
  }
}

TEST_CASE_FIXTURE(Fixture, "an event that many follow is told in slices, to each of them once") {
  add("a");
  for (size_t i = 1; i <= kWaiting; ++i) {
    REQUIRE(say_as(i, "Q.EVENTS q $ BLOCK 0") == "(waits)");
  }
  add("b");
  std::map<int, RespValue> told = take_deliveries();
  CHECK(told.size() > 0);
  CHECK(told.size() < kWaiting / 2);
  // Those who still wait hear of both.
  add("c");
  run_timers();
  told.merge(take_deliveries());
  REQUIRE(told.size() == kWaiting);
  for (const auto& [connection, events] : told) {
    CAPTURE(connection);
    CHECK(events.items.at(0).show().find("b") != std::string::npos);
  }
  CHECK(told.at(kWaiting).items.size() == 2);
}

TEST_CASE("of very many pops by ID all are served, though the next job is nobody's") {
  constexpr size_t kPops = 700;
  QueueTalk q;
  q.connect(kPops);
  const auto wait = [&](size_t i) {
    REQUIRE(q.say_as(i, "Q.POP 1 q BLOCK 0 ID j" + std::to_string(i)) == "(waits)");
  };
  q.say("Q.CONFIG q KEY k SET max_active 1");
  q.add("first");
  for (size_t i = 1; i <= kPops; ++i) q.add("j" + std::to_string(i), "KEY k");
  q.add("holder", "KEY k PRI CRITICAL");
  REQUIRE(q.pop() == "holder");
  for (size_t i = 1; i <= kPops; ++i) wait(i);
  // A key with room for one: each end makes it the next one's turn, also of one who had a turn.
  std::string last = "holder";
  for (size_t i = 1; i <= 5; ++i) {
    q.ack(last);
    q.run_timers();
    const auto got = q.take_deliveries();
    REQUIRE(got.size() == 1);
    last = q.ids_of(got.begin()->second);
    CHECK(last == "j" + std::to_string(i));
  }
  q.say("Q.CONFIG q KEY k SET max_active 0");
  q.run_timers();
  CHECK(q.take_deliveries().size() == kPops - 5);
  CHECK(q.pop() == "first");
}

}  // namespace sluice::test
