// Native queues under several concurrent threads: a client waiting on queues of several shards is
// claimed once, and nothing is lost or handed out twice.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/resp_value.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int kProducers = 2;
constexpr int kConsumers = 3;
constexpr int kJobs = 2000;  // of each producer
constexpr int kRounds = 2000;

using Words = std::vector<std::string>;

class WaitingPort final : public ClientPort {
 public:
  void deliver(ByteBuffer, Lsn) override {}
  void deliver_blocked_reply(ByteBuffer bytes, Lsn) override {
    reply = std::string(bytes.view());
    arrived.store(true, std::memory_order_release);
  }
  std::string reply;
  std::atomic<bool> arrived{false};
};

std::string run(EngineSession& session, const Words& words) {
  const std::vector<Bytes> args(words.begin(), words.end());
  return session.run(args);
}

std::string queue_name(uint64_t number) { return "queue" + std::to_string(number); }

void produce(EngineSession& session, uint64_t seed, int number) {
  std::mt19937_64 random(seed * 10 + static_cast<uint64_t>(number));
  for (int i = 0; i < kJobs; ++i) {
    const std::string id = std::to_string(number) + "." + std::to_string(i);
    Words words{"Q.ADD", queue_name(random() % 3), id, "payload"};
    if (random() % 3 != 0) words.insert(words.end(), {"KEY", random() % 2 == 0 ? "a" : "b"});
    if (random() % 4 == 0) words.insert(words.end(), {"PRI", std::to_string(random() % 5)});
    const std::string reply = run(session, words);
    REQUIRE(resp_value(reply).field("id") == id);
  }
}

Words random_pop(std::mt19937_64& random, int number) {
  Words words{"Q.POP", "3", "queue0", "queue1", "queue2", "WORKER", "w" + std::to_string(number)};
  switch (random() % 5) {
    case 0:
      words.insert(words.end(), {"MATCH", "a"});
      break;
    case 1:
      words.insert(words.end(), {"COUNT", "3"});
      break;
    case 2:
      words.insert(words.end(), {"CAP", "2"});
      break;
    default:
      break;
  }
  words.insert(words.end(), {"BLOCK", "0"});
  return words;
}

// Pops and acknowledges until all producers have ended and a pop returns nothing.
class Consumer {
 public:
  Consumer(Engine& engine, EngineSession& session, const std::atomic<int>& producing)
      : engine_(engine), session_(session), producing_(producing) {
    session_.client.protocol = 3;
    session_.client.port = port_;
  }

  void run_all(uint64_t seed, int number) {
    std::mt19937_64 random(seed * 100 + static_cast<uint64_t>(number));
    while (true) {
      const bool last = producing_.load() == 0;
      const std::string reply = wait_for(run(session_, random_pop(random, number)), random);
      if (!reply.empty()) {
        take(resp_value(reply));
      } else if (last) {
        return;
      }
    }
  }
  std::vector<std::string> taken;

 private:
  // Returns the reply, also of a pop that blocked; empty if the pop was given up.
  std::string wait_for(std::string reply, std::mt19937_64& random) {
    if (!reply.empty()) return reply;
    const uint64_t patience = random() % 300;
    for (uint64_t spins = 0; spins < patience && !port_->arrived.load(); ++spins) {
      std::this_thread::yield();
    }
    if (!port_->arrived.load() && engine_.cancel_waiter(session_.client)) return {};
    while (!port_->arrived.load(std::memory_order_acquire)) std::this_thread::yield();
    engine_.end_waiter(session_.client);
    port_->arrived.store(false);
    return std::exchange(port_->reply, {});
  }

  void take(const RespValue& jobs) {
    REQUIRE(jobs.kind == RespValue::Kind::kArray);
    for (const RespValue& job : jobs.items) {
      taken.push_back(job.field("id"));
      const std::string reply =
          run(session_, {"Q.ACK", job.field("queue"), job.field("id"), job.field("lease")});
      REQUIRE(reply == "+OK\r\n");
    }
  }

  Engine& engine_;
  EngineSession& session_;
  const std::atomic<int>& producing_;
  std::shared_ptr<WaitingPort> port_ = std::make_shared<WaitingPort>();
};

}  // namespace

TEST_CASE("every job reaches one worker once, whoever waits where") {
  for (const uint64_t seed : testing::seeds(4, 1)) {
    testing::use_seed(seed);
    QuietServer server;
    MemoryJournal journal;
    CompleteEngine engine(server, 7);
    engine.attach_journal(&journal);
    std::deque<Execution> executions;
    std::deque<EngineSession> sessions;
    for (int i = 0; i < kProducers + kConsumers; ++i) {
      executions.emplace_back(engine).set_now_ms(1'700'000'000'000);
      sessions.emplace_back(engine, executions.back());
    }
    run(sessions[0], {"Q.CONFIG", "queue0", "SET", "max_active", "4"});
    run(sessions[0], {"Q.CONFIG", "queue1", "KEY", "a", "SET", "max_active", "2"});
    sessions[0].client.protocol = sessions[1].client.protocol = 3;
    std::atomic<int> producing{kProducers};
    std::deque<Consumer> consumers;
    std::vector<std::thread> threads;
    for (int i = 0; i < kConsumers; ++i) {
      consumers.emplace_back(engine, sessions[static_cast<size_t>(kProducers + i)], producing);
    }
    for (int i = 0; i < kProducers; ++i) {
      threads.emplace_back([&, i] {
        produce(sessions[static_cast<size_t>(i)], seed, i);
        producing.fetch_sub(1);
      });
    }
    for (int i = 0; i < kConsumers; ++i) {
      threads.emplace_back([&, i] { consumers[static_cast<size_t>(i)].run_all(seed, i); });
    }
    for (std::thread& thread : threads) thread.join();

    std::vector<std::string> taken;
    for (const Consumer& consumer : consumers) {
      taken.insert(taken.end(), consumer.taken.begin(), consumer.taken.end());
    }
    // The last pop may have been one with MATCH or CAP and left some jobs.
    for (uint64_t i = 0; i < 3; ++i) {
      while (true) {
        const RespValue jobs =
            resp_value(run(sessions[0], {"Q.POP", "1", queue_name(i), "COUNT", "2"}));
        if (jobs.is_null()) break;
        for (const RespValue& job : jobs.items) {
          taken.push_back(job.field("id"));
          run(sessions[0], {"Q.ACK", queue_name(i), job.field("id"), job.field("lease")});
        }
      }
    }
    std::sort(taken.begin(), taken.end());
    CHECK(std::unique(taken.begin(), taken.end()) == taken.end());
    CHECK(taken.size() == kProducers * kJobs);
    int64_t completed = 0;
    for (uint64_t i = 0; i < 3; ++i) {
      completed += resp_value(run(sessions[0], {"Q.STATS", queue_name(i)})).number("completed");
    }
    CHECK(completed == kProducers * kJobs);
  }
}

TEST_CASE("a TIED lease that a pop gets while its connection ends is given back") {
  QuietServer server;
  CompleteEngine engine(server, 7);
  Execution adding(engine);
  Execution waiting(engine);
  for (Execution* each : {&adding, &waiting}) each->set_now_ms(1'700'000'000'000);
  EngineSession producer(engine, adding);
  producer.client.protocol = 3;
  run(producer, {"Q.CONFIG", "q", "SET", "disconnect_grace_ms", "0"});
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ready.fetch_add(1);
      while (ready.load() != 2) std::this_thread::yield();
    };
    EngineSession worker(engine, waiting);
    worker.client.port = std::make_shared<WaitingPort>();
    REQUIRE(run(worker, {"Q.POP", "1", "q", "TIED", "BLOCK", "0"}).empty());
    std::thread ending([&] {
      meet();
      for (int spins = round % 64; spins != 0; --spins) ready.load();
      waiting.disconnect(worker.client);
      waiting.finish();
    });
    meet();
    const std::string id = std::to_string(round);
    run(producer, {"Q.ADD", "q", id, "payload"});
    ending.join();
    adding.run_timers(Times::agreeing(1'700'000'000'001, 1));
    adding.finish();
    REQUIRE(resp_value(run(producer, {"Q.GET", "q", id})).field("state") == "pending");
    run(producer, {"Q.CANCEL", "q", id});
  }
}

}  // namespace sluice::test
