// Scripts and transactions of several concurrent threads: the shared cache, flushes, SCRIPT KILL,
// WATCH.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/script/script_engine.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

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
  CompleteEngine engine(port, 7);
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
            script_engine(engine).machine_bytes(false);
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
  CompleteEngine engine(port, 7);
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
  CompleteEngine engine(port, 7);
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

// A script that runs until it is killed, on a thread of its own.
class Runaway {
 public:
  explicit Runaway(Engine& engine, Bytes script = "while true do end")
      : engine_(engine), thread_([this, script] {
          Execution execution(engine_);
          EngineSession session(engine_, execution);
          reply_ = session.eval(script);
        }) {
    while (!engine_.script_busy.load()) std::this_thread::yield();
  }
  // The script's reply.
  std::string kill() {
    CHECK(script_engine(engine_).kill(false).ok());
    thread_.join();
    return reply_;
  }

 private:
  Engine& engine_;
  std::string reply_;
  std::thread thread_;
};

bool nobody_waits_or_watches(Engine& engine) NO_THREAD_SAFETY_ANALYSIS {
  bool nobody = true;
  for (unsigned i = 0; i < kShards; ++i) {
    MutexLock lock(engine.shard(i).mutex);
    nobody = nobody && engine.shard(i).waiters.empty() && engine.shard(i).watched_keys == 0;
  }
  return nobody;
}

TEST_CASE("a script that declares itself locks the shards of its keys") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  const auto shard = [](Bytes key) { return ShardMask{1} << KeyRef(key).shard; };
  REQUIRE(shard("a") != shard("b"));
  // The reply, and the shards that are locked when the script has ended.
  const auto locked_by = [&](Bytes script, std::vector<Bytes> keys, const std::string& reply) {
    const std::string count = std::to_string(keys.size());
    std::vector<Bytes> args{"EVAL", script, count};
    args.insert(args.end(), keys.begin(), keys.end());
    CHECK(session.run_unfinished(args) == reply);
    const ShardMask locked = execution.locked();
    execution.finish();
    return locked;
  };
  CHECK(locked_by("return 1", {"a"}, ":1\r\n") == kAllShards);
  CHECK(locked_by("#!lua\nreturn 1", {}, ":1\r\n") == 0);
  CHECK(locked_by("#!lua\nreturn redis.call('INCR', KEYS[1])", {"a"}, ":1\r\n") == shard("a"));
  CHECK(locked_by("#!lua\nreturn #KEYS", {"a", "b"}, ":2\r\n") == (shard("a") | shard("b")));
  CHECK(locked_by("#!lua flags=allow-cross-slot-keys\nreturn 1", {"a"}, ":1\r\n") == kAllShards);
  // As in Redis a script may access undeclared keys; it is then known to do so.
  const Bytes reaching = "#!lua\nredis.call('INCR', KEYS[1]) return redis.call('INCR', 'b')";
  CHECK(locked_by(reaching, {"a"}, ":1\r\n") == (shard("a") | shard("b")));
  CHECK(locked_by(reaching, {"a"}, ":2\r\n") == kAllShards);
  CHECK(locked_by("#!lua\nreturn #redis.call('KEYS', '*')", {"a"}, ":2\r\n") == kAllShards);
}

TEST_CASE("a declared script gets no shard that another thread keeps") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  std::atomic<bool> locked{false};
  std::atomic<bool> done{false};
  std::thread other([&] {
    Execution own(engine);
    own.lock(1U << KeyRef("b").shard);
    locked = true;
    while (!done) std::this_thread::yield();
    own.finish();
  });
  while (!locked) std::this_thread::yield();
  const std::string script =
      "#!lua\nredis.call('INCR', KEYS[1]) local r = redis.pcall('INCR', 'b') "
      "return type(r) == 'table' and r.err or r";
  CHECK(session.eval(script, {"a"}).find("a key that it has not declared") != std::string::npos);
  done = true;
  other.join();
  // Its earlier changes remain, as after every error of a script.
  CHECK(session.run({"GET", "a"}) == "$1\r\n1\r\n");
  CHECK(session.run({"EXISTS", "b"}) == ":0\r\n");
  CHECK(session.eval(script, {"a"}) == ":1\r\n");
}

TEST_CASE("threads run declared scripts on keys of their own and on shared ones") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  constexpr int kRuns = 1000;
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Execution execution(engine);
      EngineSession session(engine, execution);
      const std::string own = "own" + std::to_string(t);
      const std::string beyond = "other" + std::to_string((t + 1) % kThreads);
      for (int i = 0; i < kRuns; ++i) {
        session.eval("#!lua\nredis.call('INCR', KEYS[1]) redis.call('INCR', KEYS[2])",
                     {own, "shared"});
        const std::string reply =
            session.eval("#!lua\nreturn redis.call('INCR', ARGV[1])", {own}, {beyond});
        if (reply[0] != ':') ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Execution execution(engine);
  EngineSession session(engine, execution);
  CHECK(session.run({"GET", "shared"}) == "$4\r\n3000\r\n");
  int total = refused;
  for (int t = 0; t < kThreads; ++t) {
    CHECK(session.run({"GET", "own" + std::to_string(t)}) == "$4\r\n1000\r\n");
    const std::string reply = session.run({"GET", "other" + std::to_string(t)});
    total += std::atoi(reply.c_str() + reply.find('\n') + 1);
  }
  CHECK(total == kThreads * kRuns);
}

TEST_CASE("the end of a connection waits for no script") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  engine.options().busy_reply_threshold_ms = 1;
  port.step_us = 2000;
  Execution execution(engine);
  auto blocked = std::make_unique<EngineSession>(engine, execution);
  auto timed_out = std::make_unique<EngineSession>(engine, execution);
  auto watching = std::make_unique<EngineSession>(engine, execution);
  CHECK(blocked->run({"BLPOP", "a", "b", "c", "0"}).empty());
  CHECK(timed_out->run({"BZPOPMIN", "a", "z", "1"}).empty());
  CHECK(watching->run({"WATCH", "a", "b", "c"}) == "+OK\r\n");
  CHECK(!nobody_waits_or_watches(engine));

  Runaway script(engine);
  CHECK(engine.cancel_waiter(timed_out->client));
  CHECK(timed_out->client.waiter == nullptr);
  blocked.reset();
  watching.reset();
  CHECK(!engine.departures().none());
  CHECK(script.kill().find("Script killed by user") != std::string::npos);

  // Cleaned up by the script's own thread, or by the next one.
  timed_out->run({"PING"});
  CHECK(engine.departures().none());
  CHECK(nobody_waits_or_watches(engine));
  timed_out->run({"RPUSH", "a", "1"});
  CHECK(timed_out->run({"LLEN", "a"}) == ":1\r\n");
}

TEST_CASE("a watch that ends while a script is busy is not told of its keys any more") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  engine.options().busy_reply_threshold_ms = 1;
  port.step_us = 2000;
  Execution execution(engine);
  EngineSession session(engine, execution);
  EngineSession other(engine, execution);
  session.run({"WATCH", "k"});
  Runaway script(engine);
  CHECK(session.run({"UNWATCH"}) == "+OK\r\n");
  CHECK(session.run({"MULTI"}) == "+OK\r\n");
  CHECK(session.run({"DISCARD"}) == "+OK\r\n");
  script.kill();
  other.run({"SET", "k", "1"});
  session.run({"MULTI"});
  session.run({"GET", "k"});
  CHECK(session.run({"EXEC"}) == "*1\r\n$1\r\n1\r\n");

  // A WATCH that begins during the script counts as broken, because the script's changes are
  // unknown.
  Runaway second(engine);
  CHECK(session.run({"WATCH", "k"}) == "+OK\r\n");
  second.kill();
  session.run({"MULTI"});
  session.run({"GET", "k"});
  CHECK(session.run({"EXEC"}) == "*-1\r\n");
  session.run({"MULTI"});
  session.run({"GET", "k"});
  CHECK(session.run({"EXEC"}) == "*1\r\n$1\r\n1\r\n");
  CHECK(nobody_waits_or_watches(engine));
}

TEST_CASE("EXEC while a script is busy ends the transaction, and waits for nothing") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  engine.options().busy_reply_threshold_ms = 1;
  port.step_us = 2000;
  Execution execution(engine);
  EngineSession session(engine, execution);
  session.run({"WATCH", "k"});
  session.run({"MULTI"});
  Runaway script(engine);
  CHECK(session.run({"SET", "k", "1"}).substr(0, 5) == "-BUSY");
  CHECK(session.run({"EXEC"}).substr(0, 49) == "-EXECABORT Transaction discarded because of: BUSY");
  CHECK(session.run({"EXEC"}).substr(0, 10) == "-EXECABORT");
  CHECK(session.run({"RESET"}) == "+RESET\r\n");
  script.kill();
  CHECK(session.run({"EXEC"}) == "-ERR EXEC without MULTI\r\n");
  CHECK(nobody_waits_or_watches(engine));
}

}  // namespace
