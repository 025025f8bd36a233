// A queue over restarts and changes of its key: the queue recovered from the journal and from fuzzy
// checkpoints equals the original; tokens never go back; large queues are processed in steps.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/queue/queue.h"
#include "tests/support/large_moves.h"
#include "tests/support/queue_dump.h"
#include "tests/support/queue_site.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

std::vector<Piece> walk_all(Engine& engine) {
  std::vector<Piece> pieces;
  const auto walk = engine.begin_walk();
  bool more = true;
  while (more) {
    ByteBuffer records;
    uint64_t count = 0;
    more = walk->step(records, count);
    pieces.push_back({std::string(records.view()), count});
  }
  return pieces;
}

void compare(Site& site, Engine& recovered, const Words& names) {
  for (const std::string& name : names) {
    INFO("queue ", name);
    Queue* live = site.queue(name);
    Queue* other = Site::find(recovered, name);
    REQUIRE((live == nullptr) == (other == nullptr));
    if (live == nullptr) continue;
    live->check();
    other->check();
    CHECK(dump_difference(dump_queue(*live), dump_queue(*other)) == "");
  }
  CHECK(recovered.token_floor.load() == site.engine->token_floor.load());
}

// --- Random histories ---

class History {
 public:
  History(Site& site, uint64_t seed) : site_(site), random_(seed) {}

  static const Words& names() {
    static const Words kNames{"qa", "qb", "qc"};
    return kNames;
  }

  void step() {
    const std::string queue = names()[pick(names().size())];
    switch (pick(24)) {
      case 0:
        site_.run(configure(queue));
        return;
      case 1:
        site_.run(keys_command(queue));
        return;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
        return pop(queue);
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        return end(queue);
      case 12:
      case 13:
        site_.run(steer(queue));
        return;
      case 14:
      case 15:
        site_.pass(static_cast<int64_t>(pick(3000)));
        site_.run_timers();
        return;
      default:
        site_.run(add(queue));
    }
  }

  // Queue time advances with reads too; a change at the end records it.
  void settle() {
    for (const std::string& name : names()) {
      if (site_.queue(name) != nullptr) site_.run({"Q.CONFIG", name, "SET", "aging_ms", "0"});
    }
  }

 private:
  uint64_t pick(uint64_t count) { return random_() % count; }
  bool chance(uint64_t one_in) { return pick(one_in) == 0; }
  std::string number(uint64_t below) { return std::to_string(pick(below)); }
  std::string id() { return "job" + number(400); }

  Words add(const std::string& queue) {
    Words words{"Q.ADD", queue, id(), std::string(pick(40), 'p')};
    const auto option = [&](uint64_t one_in, const Words& more) {
      if (chance(one_in)) words.insert(words.end(), more.begin(), more.end());
    };
    option(2, {"PRI", number(5)});
    option(2, {"GROUP", "g" + number(6)});
    option(3, {"KEY", "k" + number(4)});
    option(8, {"KEY", "k" + number(4)});
    option(5, {"DELAY", number(5000)});
    option(8, {"BOOST", std::to_string(static_cast<int64_t>(pick(4000)) - 2000)});
    option(8, {"COST", std::to_string(1 + pick(3))});
    option(6, {"TTL", std::to_string(1 + pick(6000))});
    option(8, {"LEASE", std::to_string(100 + pick(4000))});
    option(8, {"MAXRUN", std::to_string(500 + pick(4000))});
    option(4, {"RETRY", number(4)});
    option(8, {"BACKOFF", "100", "3000"});
    option(12, {"NEED", id()});
    option(12, {"AFTER", id()});
    option(6, {"TAG", "lang", "l" + number(3)});
    const Words modes{"ERROR", "KEEP", "UPDATE", "REPLACE"};
    option(2, {"IFDUP", modes[pick(4)]});
    return words;
  }

  void pop(const std::string& queue) {
    Words words{"Q.POP", "1", queue, "COUNT", std::to_string(1 + pick(4))};
    if (!chance(4)) words.insert(words.end(), {"WORKER", "w" + number(4)});
    if (chance(4)) words.push_back("TIED");
    if (chance(6)) words.insert(words.end(), {"CAP", std::to_string(1 + pick(8))});
    if (chance(6)) words.insert(words.end(), {"MATCH", "k" + number(4)});
    const RespValue jobs = resp_value(site_.run(words));
    for (const RespValue& job : jobs.items) {
      runs_.push_back({queue, job.field("id"), job.field("lease")});
    }
  }

  void end(const std::string& queue) {
    if (runs_.empty()) return;
    const size_t at = pick(runs_.size());
    const Words run = runs_[at];
    if (chance(8)) {
      site_.run({"Q.TOUCH", queue, run[1], run[2], "PROGRESS", number(100)});
      return;
    }
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(at));
    switch (pick(6)) {
      case 0:
        site_.run({"Q.NACK", run[0], run[1], run[2], "ERROR", "it failed"});
        return;
      case 1:
        site_.run({"Q.NACK", run[0], run[1], run[2], "SILENT"});
        return;
      case 2:
        site_.run({"Q.NACK", run[0], run[1], run[2], "FATAL", "ERROR", "never again"});
        return;
      case 3:
        return;  // its lease expires
      default:
        site_.run({"Q.ACK", run[0], run[1], run[2], "RESULT", number(1000)});
    }
  }

  Words steer(const std::string& queue) {
    switch (pick(8)) {
      case 0:
        return {"Q.CANCEL", queue, id(), "REASON", "because"};
      case 1:
        return {"Q.CANCEL", queue, id(), "GRACE", number(500)};
      case 2:
        return {"Q.MOVE", queue, id(), "FRONT"};
      case 3:
        return {"Q.MOVE", queue, id(), "PRI", number(5), "BACK"};
      case 4:
        return {"Q.MOVE", queue, id(), "DELAY", number(3000)};
      case 5:
        return {"Q.RETRY", queue, "WHERE", "STATE", "failed", "LIMIT", "5"};
      case 6:
        return {"Q.PURGE", queue, "WHERE", "STATE", "cancelled", "LIMIT", "5"};
      default:
        return {"Q.RETRY", queue, id()};
    }
  }

  Words configure(const std::string& queue) {
    switch (pick(12)) {
      case 0:
        return {"Q.CONFIG", queue, "SET", "max_active", std::to_string(4 + pick(20))};
      case 1:
        return {"Q.CONFIG", queue, "SET", "fair", chance(2) ? "on" : "off"};
      case 2:
        return {"Q.CONFIG", queue, "SET", "order", chance(2) ? "lifo:2" : "fifo"};
      case 3:
        return {"Q.CONFIG", queue, "GROUP", "g" + number(4), "SET", "max_active", number(4)};
      case 4:
        return {"Q.CONFIG", queue, "KEY", "k*", "SET", "max_active", number(6)};
      case 5:
        return {"Q.CONFIG", queue, "SET", "rate", chance(2) ? "100/1000" : "none"};
      case 6:
        return {"Q.CONFIG", queue, "GROUP", "g1", "SET", "rate", "5/1000:2"};
      case 7:
        return {"Q.CONFIG", queue, "GROUP", "g" + number(4), "RESET"};
      case 8:
        return {"Q.CONFIG", queue, "SET", "retain_completed", number(30) + ":60000"};
      case 9:
        return {"Q.CONFIG", queue, "GROUP", "*", "SET", "order", chance(2) ? "lifo" : "fifo"};
      case 10:
        return {"Q.CONFIG", queue, "RESET"};
      default:
        return {"Q.CONFIG", queue, "SET", "adaptive", chance(2) ? "2:20:10:400" : "off"};
    }
  }

  Words keys_command(const std::string& queue) {
    if (!chance(12)) return {"EXPIRE", queue, "100000"};
    switch (pick(4)) {
      case 0:
        return {"DEL", queue};
      case 1:
        return {"SET", queue, "a string"};
      case 2:
        return {"DEL", queue, names()[pick(names().size())]};
      default:
        return {"RENAME", queue, names()[pick(names().size())]};
    }
  }

  Site& site_;
  std::mt19937_64 random_;
  std::vector<Words> runs_;  // queue, id, lease
};

uint64_t rounds() {
  const char* text = std::getenv("SLUICE_ROUNDS");
  return text == nullptr ? 12 : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("a queue that is recovered from the journal is the queue that was") {
  const LargeMoves large;
  for (const uint64_t seed : testing::seeds(rounds(), 11)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    Site site;
    site.journal.take_moves(seed % 2 == 0);
    History history(site, seed);
    for (int i = 0; i < 1500; ++i) history.step();
    history.settle();
    compare(site, *site.recover({}, 0), History::names());
  }
}

TEST_CASE("a fuzzy checkpoint and the journal since its beginning give the queue") {
  const LargeMoves large;
  for (const uint64_t seed : testing::seeds(rounds(), 13)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    Site site;
    History history(site, seed);
    site.journal.take_moves(true);
    for (int i = 0; i < 1500; ++i) history.step();
    site.journal.take_moves(false);
    const Lsn begin = site.journal.last_lsn();
    const auto walk = site.engine->begin_walk();
    std::vector<Piece> checkpoint;
    bool more = true;
    while (more) {
      ByteBuffer records;
      uint64_t count = 0;
      more = walk->step(records, count);
      checkpoint.push_back({std::string(records.view()), count});
      if (checkpoint.back().count == 0) continue;
      for (int i = 0; i < 60; ++i) history.step();
    }
    site.journal.take_moves(true);
    for (int i = 0; i < 300; ++i) history.step();
    history.settle();
    compare(site, *site.recover(checkpoint, begin), History::names());
    compare(site, *site.recover(walk_all(*site.engine), site.journal.last_lsn()), History::names());
  }
}

TEST_CASE("a long queue comes back in its order, from the journal and from a checkpoint") {
  Site site;
  const Words kBands{"high", "normal", "low"};
  for (size_t i = 0; i < 20'000; ++i) {
    const std::string number = std::to_string(i * 7919 % 20'000);
    site.run({"Q.ADD", "q", "job" + number, "p", "PRI", kBands[i % 3], "GROUP", number.substr(0, 2),
              "DELAY", i % 100 == 0 ? "60000" : "0"});
    if (i % 50 == 0) site.pass(1);
  }
  for (int i = 0; i < 100; ++i) REQUIRE(site.pop("q") != 0);
  compare(site, *site.recover({}, 0), {"q"});
  compare(site, *site.recover(walk_all(*site.engine), site.journal.last_lsn()), {"q"});
}

TEST_CASE("an ordinary job's records are small") {
  Site site;
  site.run({"Q.ADD", "jobs", "warm", "up"});
  site.pop("jobs", {"WORKER", "worker-1"});
  const auto last_unit = [&] {
    const MemoryJournal::Unit unit = site.journal.unit(site.journal.last_lsn());
    Bytes rest = unit.records;
    std::vector<std::pair<EffectType, size_t>> sizes;
    Effect effect;
    while (!rest.empty()) {
      REQUIRE(decode_effect(rest, effect));
      sizes.emplace_back(effect.type, effect.value.size());
    }
    return sizes;
  };
  site.run({"Q.ADD", "jobs", "job-1", "payload"});
  auto sizes = last_unit();
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].first == EffectType::kJobPut);
  CHECK(sizes[0].second <= 20 + 7);  // and the payload
  CHECK(sizes[1].first == EffectType::kQueueHead);
  CHECK(sizes[1].second <= 30);
  site.pass(1234);
  const uint64_t lease = site.pop("jobs", {"WORKER", "worker-1"});
  sizes = last_unit();
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].first == EffectType::kJobState);
  MESSAGE("start: ", sizes[0].second, " bytes");
  CHECK(sizes[0].second <= 80);
  site.pass(4321);
  site.run({"Q.ACK", "jobs", "job-1", std::to_string(lease)});
  sizes = last_unit();
  CHECK(sizes[0].first == EffectType::kJobState);
  MESSAGE("completion: ", sizes[0].second, " bytes");
  CHECK(sizes[0].second <= 80);
}

TEST_CASE("tokens of a name never go back: DEL, RENAME, FLUSHALL, a new type, a restart") {
  Site site;
  std::map<std::string, uint64_t> last;  // by name
  const auto take = [&](const std::string& queue) {
    site.run({"Q.ADD", queue, "*", "x"});
    const uint64_t lease = site.pop(queue);
    CHECK(lease > last[queue]);
    last[queue] = lease;
  };
  for (int i = 0; i < 5; ++i) take("a");
  site.run({"DEL", "a"});
  take("a");
  take("b");
  for (int i = 0; i < 5; ++i) take("a");
  site.run({"RENAME", "a", "b"});
  take("b");
  take("a");
  site.run({"RENAME", "b", "a"});
  take("a");
  site.run({"FLUSHALL"});
  take("a");
  site.run({"SET", "a", "text"});
  site.run({"DEL", "a"});
  take("a");
  site.run({"DEL", "a"});
  // Only the checkpoint knows of it now, and then only the journal.
  const auto of_checkpoint = site.recover(walk_all(*site.engine), site.journal.last_lsn());
  CHECK(of_checkpoint->token_floor.load() > last["a"]);
  const auto of_journal = site.recover({}, 0);
  CHECK(of_journal->token_floor.load() > last["a"]);
  take("a");
}

TEST_CASE("tokens of a name never go back when databases change places") {
  Site site;
  uint64_t last = 0;  // of "a" in database 0
  const auto take = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      site.run({"Q.ADD", "a", "*", "x"});
      const uint64_t lease = site.pop("a");
      CHECK(lease > last);
      last = lease;
    }
  };
  site.run({"SELECT", "1"});
  take(1);
  last = 0;
  site.run({"SELECT", "0"});
  take(5);
  site.run({"SWAPDB", "0", "1"});
  const auto recovered = site.recover({}, 0);
  // Nothing has been popped since: the value comes from the records.
  CHECK(Site::find(*recovered, "a", 1)->next_token > last);
  take(5);
  // The name is free, and then given to a queue that was created before.
  site.run({"DEL", "a"});
  site.run({"SWAPDB", "0", "1"});
  take(1);
}

TEST_CASE("a large queue is freed beside; its name is free at once") {
  for (const Words& end : {Words{"DEL", "large"}, Words{"UNLINK", "large"}, Words{"FLUSHALL"},
                           Words{"SET", "large", "x"}}) {
    Site site;
    for (int i = 0; i < 2000; ++i) {
      site.run({"Q.ADD", "large", std::to_string(i), "payload", "DELAY", "1000"});
    }
    site.run({"Q.ADD", "small", "x", "y"});
    site.run(end);
    CHECK(site.queue("large") == nullptr);
    site.run({"DEL", "large"});
    site.run({"Q.ADD", "large", "1", "new"});
    Reclaimer& reclaimer = site.engine->reclaimer();
    reclaimer.wait();
    CHECK(reclaimer.freed() >= 1);
    site.run_timers();
    CHECK(site.queue("large")->jobs.size() == 1);
    compare(site, *site.recover({}, 0), {"large", "small"});
  }
  // What is not yet freed is freed with the engine.
  Site site;
  for (int i = 0; i < 1000; ++i) site.run({"Q.ADD", "large", std::to_string(i), "payload"});
  site.run({"DEL", "large"});
}

TEST_CASE("timers of both clocks: delays by the wall clock, leases by the steady one") {
  Site site;
  CHECK(site.engine->next_due().wait_ms(Times::agreeing(site.now_ms, site.steady_ms)) == kNeverMs);
  site.run({"Q.CONFIG", "q", "SET", "lease_ms", "5000", "events", "0", "retain_completed", "0"});
  CHECK(site.engine->next_due().wait_ms(Times::agreeing(site.now_ms, site.steady_ms)) == kNeverMs);
  site.run({"Q.ADD", "q", "later", "x", "DELAY", "700"});
  CHECK(site.engine->next_due().wait_ms(Times::agreeing(site.now_ms, site.steady_ms)) == 700);
  site.pass(699);
  site.run_timers();
  CHECK(site.pop("q") == 0);
  site.pass(31);
  site.run_timers();
  CHECK(site.queue("q")->timer_lag_ms == 30);
  const uint64_t lease = site.pop("q");
  CHECK(lease != 0);
  CHECK(site.engine->next_due().wait_ms(Times::agreeing(site.now_ms, site.steady_ms)) == 5000);
  // The wall clock jumps by a day: the lease is unaffected.
  site.now_ms += 86'400'000;
  site.pass(0);
  site.run_timers();
  CHECK(site.queue("q")->count(JobState::kActive) == 1);
  site.pass(5000);
  site.run_timers();
  CHECK(site.queue("q")->count(JobState::kPending) == 1);
  site.run({"Q.ACK", "q", "later", std::to_string(site.pop("q"))});
  // The ended lease was still listed: it is looked up once more, and then nothing is due.
  site.pass(5000);
  CHECK(site.run_timers() == 1);
  CHECK(site.engine->next_due().wait_ms(Times::agreeing(site.now_ms, site.steady_ms)) == kNeverMs);
}

TEST_CASE("a recovered queue has its timers, a full term for every lease") {
  Site site;
  site.run({"Q.ADD", "q", "1", "x", "LEASE", "4000"});
  site.run({"Q.ADD", "q", "2", "x", "DELAY", "900"});
  site.pop("q");
  const auto recovered = site.recover({}, 0);
  const DueTimes due = recovered->next_due();
  CHECK(due.steady_ms == 4000);
  CHECK(due.queue_ms == site.now_ms + 900);
  CHECK(due.wall_ms == kNeverMs);
}

TEST_CASE("keys of queues are keys: TYPE, SCAN, MEMORY USAGE, EXPIRE, WRONGTYPE") {
  Site site;
  site.run({"Q.ADD", "q", "1", "x"});
  site.run({"SET", "s", "x"});
  CHECK(site.run({"TYPE", "q"}) == "+queue\r\n");
  CHECK(site.run({"SCAN", "0", "TYPE", "queue"}) == "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nq\r\n");
  CHECK(site.run({"GET", "q"}).substr(0, 10) == "-WRONGTYPE");
  CHECK(site.run({"Q.ADD", "s", "1", "x"}).substr(0, 10) == "-WRONGTYPE");
  CHECK(std::stoll(site.run({"MEMORY", "USAGE", "q"}).substr(1)) > 200);
  site.run({"PEXPIRE", "q", "50"});
  site.pass(50);
  site.run_timers();
  CHECK(site.queue("q") == nullptr);
  CHECK(site.run({"EXISTS", "q"}) == ":0\r\n");
  compare(site, *site.recover({}, 0), {"q"});
  // An empty queue is still a queue.
  site.run({"Q.ADD", "q", "1", "x"});
  site.run({"Q.CANCEL", "q", "1"});
  site.run({"Q.PURGE", "q", "WHERE", "STATE", "cancelled"});
  CHECK(site.queue("q")->jobs.empty());
  compare(site, *site.recover({}, 0), {"q"});
  compare(site, *site.recover(walk_all(*site.engine), site.journal.last_lsn()), {"q"});
}

TEST_CASE("a walk keeps the rate of a group and a key that are taken up at any of its steps") {
  const Words job{"Q.ADD", "q", "b", "p", "GROUP", "g", "KEY", "k"};
  const Words successor{"Q.ADD", "q", "s", "p", "GROUP", "g", "IFDUP", "REPLACE"};
  bool walked = true;
  for (int run = 0; walked; ++run) {
    const int at = run / 2;
    CAPTURE(run);
    Site site;
    site.run({"Q.ADD", "q", "s", "p"});
    site.pop("q");
    site.run({"Q.CONFIG", "q", "GROUP", "g", "SET", "rate", "1/3600000"});
    site.run({"Q.CONFIG", "q", "KEY", "k", "SET", "rate", "1/3600000"});
    site.run({"Q.ADD", "q", "a", "p", "GROUP", "g", "KEY", "k"});
    site.run({"Q.ACK", "q", "a", std::to_string(site.pop("q"))});
    site.run({"Q.PURGE", "q", "WHERE", "ALL"});
    for (int i = 0; i < 300; ++i) {
      const std::string n = std::to_string(i);
      site.run({"Q.ADD", "q", "x" + n, "p", "GROUP", "x" + n, "KEY", "y" + n});
    }
    const Lsn begin = site.journal.last_lsn();
    const auto walk = site.engine->begin_walk();
    std::vector<Piece> pieces;
    bool more = true;
    for (int step = 0; more; ++step) {
      if (step == at) site.run(run % 2 == 0 ? job : successor);
      ByteBuffer records;
      uint64_t count = 0;
      more = walk->step(records, count);
      pieces.push_back({std::string(records.view()), count});
      walked = step >= at;
    }
    compare(site, *site.recover(pieces, begin), {"q"});
  }
}

TEST_CASE("after a restart a job that was told to stop has no more than the rest of its lease") {
  QueueTalk q;
  q.add("a b", "LEASE 1000");
  q.pop("COUNT 2");
  q.pass(400);
  CHECK(q.say("Q.CANCEL q a GRACE 200") == "signalled");
  CHECK(q.say("Q.CANCEL q b") == "signalled");
  q.restart(4);
  q.pass(199);
  CHECK(q.state("a") == "active");
  q.pass(1);
  CHECK(q.state("a") == "cancelled");
  q.pass(399);
  CHECK(q.state("b") == "active");
  q.pass(1);
  CHECK(q.state("b") == "cancelled");
}

}  // namespace sluice::test
