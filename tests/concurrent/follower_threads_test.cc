// A standby whose records are applied by one thread while others read, and that takes over while
// they do.
#include <atomic>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/key_history.h"
#include "tests/support/seeds.h"
#include "tests/support/standby.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int kReaders = 3;

Words random_read(std::mt19937_64& random, const Words& names) {
  const auto pick = [&](size_t count) { return random() % count; };
  const std::string key = names[pick(names.size())];
  const std::string other = names[pick(names.size())];
  switch (pick(12)) {
    case 0:
      return {"GET", key};
    case 1:
      return {"LRANGE", key, "0", "-1"};
    case 2:
      return {"HGETALL", key};
    case 3:
      return {"XRANGE", key, "-", "+"};
    case 4:
      return {"Q.LIST", key};
    case 5:
      return {"Q.STATS", key, "BY", "GROUP"};
    case 6:
      return {"Q.GET", key, "j" + std::to_string(pick(5))};
    case 7:
      return {"EVAL", "return redis.call('TYPE', KEYS[1])", "1", key};
    case 8:
      return {"MGET", key, other};
    case 9:
      return {"SELECT", std::to_string(pick(3))};
    case 10:
      return {"Q.EVENTS", key, "-", "COUNT", "20"};
    default:
      return {"SET", key, "value"};
  }
}

}  // namespace

TEST_CASE("threads read a standby while records are applied, and write once it has taken over") {
  for (const uint64_t seed : testing::seeds(2, 29)) {
    testing::use_seed(seed);
    INFO("seed ", seed);
    QuietServer server;
    MemoryJournal journal;
    CompleteEngine engine(server, 7);
    engine.attach_journal(&journal);
    engine.options().debug_access = DebugAccess::kEverybody;
    Execution execution(engine);
    execution.set_now_ms(kNowMs);
    EngineSession session(engine, execution);
    WholeHistory history(seed);
    Standby standby(server, journal);
    std::deque<Execution> executions;
    std::deque<EngineSession> sessions;
    for (int i = 0; i < kReaders; ++i) {
      executions.emplace_back(standby.engine).set_now_ms(kNowMs);
      sessions.emplace_back(standby.engine, executions.back());
    }
    std::atomic<bool> over{false};
    std::atomic<int> refused{0};
    std::atomic<int> written{0};
    std::vector<std::thread> readers;
    for (size_t i = 0; i < kReaders; ++i) {
      readers.emplace_back([&, i] {
        std::mt19937_64 random(seed + i);
        while (!over.load()) {
          const Words words = random_read(random, history.names);
          const std::string reply = run(sessions[i], words);
          if (words[0] == "SET") ++(reply.starts_with("-READONLY") ? refused : written);
        }
      });
    }
    const Times now = Times::agreeing(kNowMs, 0);
    for (int i = 0; i < 1000; ++i) {
      for (const Words& words : history.next_commands()) run(session, words);
      standby.follow(now);
    }
    CHECK(state_digest(standby.session) == state_digest(session));
    while (refused == 0) std::this_thread::yield();
    CHECK(written == 0);
    standby.promote(journal, now);
    while (written == 0) std::this_thread::yield();
    over = true;
    for (std::thread& reader : readers) reader.join();
    Standby next(server, journal);
    CHECK(state_digest(next.session) == state_digest(standby.session));
    dump_queues(standby.engine, now.queue_ms);
  }
}

}  // namespace sluice::test
