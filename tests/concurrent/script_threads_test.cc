// Scripts and transactions of several threads at once: the shared cache, flushes, SCRIPT KILL,
// WATCH.
#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/script/script_engine.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"

// The engine and doctest both have a CHECK; the test's is meant here.
#undef CHECK
#include <doctest/doctest.h>

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::QuietServer;

constexpr int kThreads = 3;

uint64_t chosen_seed() {
  const char* given = std::getenv("SLUICE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

TEST_CASE("threads run, load and flush scripts at the same time") {
  const uint64_t seed = chosen_seed();
  INFO("SLUICE_SEED=" << seed);
  QuietServer port;
  Engine engine(port, 7);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + static_cast<uint64_t>(t));
      Execution execution(engine);
      EngineSession session(engine, execution);
      for (int i = 0; i < 1500; ++i) {
        const std::string number = std::to_string(random() % 8);
        const std::string body = "redis.call('INCR', 'n') return " + number;
        const std::string expected = ":" + number + "\r\n";
        switch (random() % 8) {
          case 0:
            session.run({"SCRIPT", "FLUSH"});
            break;
          case 1:
            engine.scripts().machine_bytes();
            break;
          case 2:
            session.run({"SCRIPT", "KILL"});
            break;
          case 3: {
            const std::string loaded = session.run({"SCRIPT", "LOAD", body});
            const std::string reply = session.run({"EVALSHA", Bytes(loaded).substr(5, 40), "0"});
            if (reply != expected && reply.substr(0, 9) != "-NOSCRIPT") ++wrong;
            break;
          }
          default:
            if (session.run({"EVAL", body, "0"}) != expected) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("WATCH, MULTI and EXEC of several threads lose no increment") {
  QuietServer port;
  Engine engine(port, 7);
  constexpr int kIncrements = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Execution execution(engine);
      EngineSession session(engine, execution);
      for (int done = 0; done < kIncrements;) {
        session.run({"WATCH", "counter"});
        const std::string reply = session.run({"GET", "counter"});
        int value = 0;
        if (reply[1] != '-') value = std::atoi(reply.c_str() + reply.find('\n') + 1);
        session.run({"MULTI"});
        session.run({"SET", "counter", std::to_string(value + 1)});
        if (session.run({"EXEC"}) == "*1\r\n+OK\r\n") ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Execution execution(engine);
  EngineSession session(engine, execution);
  const std::string total = std::to_string(kThreads * kIncrements);
  CHECK(session.run({"GET", "counter"}) ==
        "$" + std::to_string(total.size()) + "\r\n" + total + "\r\n");
}

TEST_CASE("another thread kills a slow script") {
  QuietServer port;
  Engine engine(port, 7);
  engine.options().busy_reply_threshold_ms = 1;
  port.step_us = 2000;
  std::thread runner([&] {
    Execution execution(engine);
    EngineSession session(engine, execution);
    const std::string reply = session.eval("while true do end");
    CHECK(reply.find("Script killed by user") != std::string::npos);
  });
  Execution execution(engine);
  EngineSession session(engine, execution);
  while (session.run({"SCRIPT", "KILL"}) != "+OK\r\n") std::this_thread::yield();
  runner.join();
}

}  // namespace
