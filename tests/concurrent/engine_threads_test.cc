// The engine under several concurrent threads, each with its own Execution like an I/O thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/describe_effect.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"
#include "engine/unit/effects.h"
#include "tests/support/engine_session.h"
#include "tests/support/large_moves.h"
#include "tests/support/memory_journal.h"
#include "tests/support/queue_dump.h"
#include "tests/support/quiet_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int kThreads = 4;

// Runs `body(session, execution, number)` in each of kThreads threads and waits for them.
template <class Body>
void in_threads(Engine& engine, Body body) {
  std::deque<Execution> executions;
  std::deque<EngineSession> sessions;
  for (int i = 0; i < kThreads; ++i) {
    executions.emplace_back(engine).set_now_ms(1'700'000'000'000);
    sessions.emplace_back(engine, executions.back());
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [&, i] { body(sessions[static_cast<size_t>(i)], executions[static_cast<size_t>(i)], i); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Counts what is delivered to one connection.
class CountingPort final : public ClientPort {
 public:
  void deliver(ByteBuffer, Lsn) override {}
  void deliver_blocked_reply(ByteBuffer bytes, Lsn) override {
    last = std::string(bytes.view());
    replies.fetch_add(1);
  }
  std::string last;
  std::atomic<int> replies{0};
};

std::string number_of(const std::string& reply) { return reply.substr(1, reply.size() - 3); }

using Words = std::vector<std::string>;

std::string run(EngineSession& session, const Words& words) {
  const std::vector<Bytes> args(words.begin(), words.end());
  return session.run(args);
}

// A random command that changes or creates a queue.
Words random_queue_change(std::mt19937_64& random) {
  const auto pick = [&](uint64_t count) { return random() % count; };
  const std::string key = "key" + std::to_string(pick(12));
  const std::string id = std::to_string(pick(600));
  const std::string other = std::to_string(600 + pick(9));
  const std::string worker = "w" + std::to_string(pick(3));
  switch (pick(14)) {
    case 0:
      return {"Q.CONFIG", key, "SET", "fencing", "off", "max_active", std::to_string(pick(90))};
    case 1:
    case 2:
      return {"Q.POP", "1", key, "COUNT", "8", "WORKER", worker};
    case 3:
      return {"Q.ACK", key, id, "*", "RESULT", "done"};
    case 4:
      return {"Q.NACK", key, id, "*", "DELAY", "100"};
    case 5:
      return {"Q.CANCEL", key, id, "GRACE", "0"};
    case 6:
      return {"Q.MOVE", key, id, "FRONT"};
    case 7:
      return {"Q.ADD", key, id, "other", "IFDUP", "UPDATE"};
    case 8:
      return {"Q.ACK", key,   id,       "*",    "AND",   other,  "*",    "RESULT",
              "done",  "POP", "WORKER", worker, "BRIEF", "WITH", "error"};
    case 9:
      return {"Q.TOUCH", key, id,         "*",    "LOG",    "a line", "AND",
              other,     "*", "PROGRESS", "half", "WORKER", worker};
    case 10:
      return {"Q.NACK", key, "WHERE", "WORKER", worker, pick(2) == 0 ? "LOST" : "SILENT"};
    case 11:
      return {"Q.CONFIG", key, "WORKER", worker, "SET", "quiet", pick(4) == 0 ? "on" : "off"};
    default:
      return {"Q.ADD", key,
              id,      "payload",
              "GROUP", "g" + std::to_string(pick(4)),
              "PRI",   std::to_string(pick(3))};
  }
}

// A random command that changes something. There are few keys, so that types and generations of
// keys are mixed.
Words random_change(std::mt19937_64& random) {
  const auto pick = [&](uint64_t count) { return random() % count; };
  const std::string key = "key" + std::to_string(pick(12));
  const std::string other = "key" + std::to_string(pick(12));
  const std::string item = std::to_string(pick(40));
  const std::string many = std::to_string(pick(2000));
  if (pick(3) == 0) return random_queue_change(random);
  switch (const uint64_t choice = pick(31); choice < 30 ? choice : 4) {
    case 0:
      return {"SET", key, item};
    case 1:
      return {"APPEND", key, item};
    case 2:
      return {"SETRANGE", key, std::to_string(pick(20)), item};
    case 3:
      return {"DEL", key};
    case 4:
      return {"RENAME", key, other};
    case 5:
      return {"EXPIRE", key, "1000"};
    case 6:
      return {"PERSIST", key};
    case 7:
      return {"HSET", key, many, item};
    case 8:
      return {"HDEL", key, many};
    case 9:
      return {"HINCRBY", key, item, "1"};
    case 10:
      return {"SREM", key, many};
    case 11:
      return {"SPOP", key};
    case 12:
      return {"SMOVE", key, other, item};
    case 13:
      return {"ZADD", key, item, many};
    case 14:
      return {"ZINCRBY", key, "1", item};
    case 15:
      return {"ZREM", key, many};
    case 16:
      return {"ZPOPMIN", key, "3"};
    case 17:
      return {"LPUSH", key, item, "b", "c"};
    case 18:
      return {"RPUSH", key, item};
    case 19:
      return {"LPOP", key};
    case 20:
      return {"RPOP", key, "2"};
    case 21:
      return {"LINSERT", key, "BEFORE", item, "x"};
    case 22:
      return {"LREM", key, "0", item};
    case 23:
      return {"LSET", key, "1", item};
    case 24:
      return {"LTRIM", key, "1", "-2"};
    case 25:
      return {"RPOPLPUSH", key, other};
    case 26:
      if (pick(50) == 0) return {"FLUSHDB"};
      return {"GETDEL", key};
    default: {
      Words words{pick(2) == 0 ? "SADD" : "RPUSH", key};
      for (uint64_t i = 0; i < 30; ++i) words.push_back(std::to_string(pick(2000)));
      return words;
    }
  }
}

void move_a_key(EngineSession& session) {
  run(session, {"SET", "moves", "x"});
  run(session, {"RENAME", "moves", "moved"});
}

// Everything in the engine as sorted lines.
std::vector<std::string> contents(Engine& engine) {
  std::vector<std::string> lines;
  std::map<std::string, Queue> with_events;
  const auto walk = engine.begin_walk();
  bool more = true;
  while (more) {
    ByteBuffer records;
    uint64_t count = 0;
    more = walk->step(records, count);
    Bytes rest = records.view();
    Effect effect;
    for (; count != 0; --count) {
      REQUIRE(decode_effect(rest, effect));
      if (effect.type == EffectType::kQueueEvents) {
        // In pieces of any size.
        REQUIRE(apply_queue_effect(with_events[std::string(effect.key)], effect));
        continue;
      }
      lines.push_back(describe_effect(effect));
      // The readable description does not cover everything.
      if (is_queue_effect(effect.type)) lines.back() += "|" + std::string(effect.value);
    }
  }
  for (const auto& [key, queue] : with_events) {
    queue.events.read(0, [&](const Event& event) {
      lines.push_back("event " + key + " " + std::to_string(event.seq) + " " +
                      std::to_string(event.time_ms) + " " +
                      std::string(event_type_name(event.type)) + " " + std::string(event.id) + "|" +
                      std::string(event.fields));
      return true;
    });
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

TEST_CASE("increments of several threads are all there") {
  QuietServer server;
  CompleteEngine engine(server, 1);
  constexpr int kRounds = 3000;
  in_threads(engine, [](EngineSession& session, Execution&, int) {
    for (int i = 0; i < kRounds; ++i) session.run({"INCR", "counter"});
  });
  Execution execution(engine);
  EngineSession session(engine, execution);
  CHECK(number_of(session.run({"INCRBY", "counter", "0"})) == std::to_string(kThreads * kRounds));
}

TEST_CASE("MULTI moves units between shards without losing one, and batches may hold shards") {
  QuietServer server;
  MemoryJournal journal;
  CompleteEngine engine(server, 1);
  engine.attach_journal(&journal);
  in_threads(engine, [](EngineSession& session, Execution& execution, int number) {
    execution.set_hold_shards(true);
    std::mt19937_64 random(static_cast<uint64_t>(number));
    for (int i = 0; i < 1000; ++i) {
      const std::string from = "account" + std::to_string(random() % 8);
      const std::string to = "account" + std::to_string(random() % 8);
      for (const Words& words : {Words{"MULTI"}, Words{"DECR", from}, Words{"INCR", to},
                                 Words{"EXEC"}, Words{"GET", to}}) {
        const std::vector<Bytes> args(words.begin(), words.end());
        session.run_unfinished(args);
      }
      execution.finish();
    }
  });
  Execution execution(engine);
  EngineSession session(engine, execution);
  int64_t sum = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "account" + std::to_string(i);
    sum += std::stoll(number_of(session.run({"INCRBY", name, "0"})));
  }
  CHECK(sum == 0);
}

TEST_CASE("WATCH lets one of two read-and-write rounds win") {
  QuietServer server;
  CompleteEngine engine(server, 1);
  std::atomic<int> won{0};
  in_threads(engine, [&](EngineSession& session, Execution&, int) {
    for (int i = 0; i < 500; ++i) {
      session.run({"WATCH", "shared"});
      const std::string reply = session.run({"GET", "shared"});
      const size_t at = reply.find("\r\n");
      const int64_t value = reply[1] == '-' ? 0 : std::atoll(reply.c_str() + at + 2);
      const std::string next = std::to_string(value + 1);
      session.run({"MULTI"});
      session.run({"SET", "shared", next});
      if (session.run({"EXEC"})[1] != '-') won.fetch_add(1);
    }
  });
  Execution execution(engine);
  EngineSession session(engine, execution);
  CHECK(number_of(session.run({"INCRBY", "shared", "0"})) == std::to_string(won.load()));
}

TEST_CASE("every pushed item reaches one blocked or later pop, and none reaches two") {
  QuietServer server;
  CompleteEngine engine(server, 1);
  std::atomic<int> received{0};
  constexpr int kItems = 2000;
  in_threads(engine, [&](EngineSession& session, Execution&, int number) {
    const auto port = std::make_shared<CountingPort>();
    session.client.port = port;
    std::mt19937_64 random(static_cast<uint64_t>(number));
    for (int i = 0; i < kItems; ++i) {
      if (number % 2 == 0) {
        const std::string key = "list" + std::to_string(random() % 3);
        session.run({"RPUSH", key, "item"});
        continue;
      }
      const int before = port->replies.load();
      const std::string reply = session.run({"BLPOP", "list0", "list1", "list2", "0"});
      if (!reply.empty()) {
        received.fetch_add(1);
      } else if (random() % 2 == 0 && engine.cancel_waiter(session.client)) {
        // Timed out before it was served.
      } else {
        // All pushers may be done: then it will not be served any more.
        for (int spins = 0; port->replies.load() == before && spins < 2000; ++spins) {
          std::this_thread::yield();
        }
        if (session.client.waiter == nullptr) continue;
        if (port->replies.load() == before && engine.cancel_waiter(session.client)) continue;
        while (port->replies.load() == before) std::this_thread::yield();
        engine.end_waiter(session.client);
        received.fetch_add(1);
      }
    }
  });
  Execution execution(engine);
  EngineSession session(engine, execution);
  int64_t left = 0;
  for (const Bytes key : {"list0", "list1", "list2"}) {
    left += std::stoll(number_of(session.run({"LLEN", key})));
  }
  CHECK(received.load() + left == kThreads / 2 * kItems);
}

TEST_CASE(
    "a checkpoint walked under changes, and the journal since its beginning, give the state") {
  const LargeMoves large;
  constexpr std::chrono::microseconds kPause{20};
  const char* rounds_text = std::getenv("SLUICE_ROUNDS");
  const int rounds = rounds_text == nullptr ? 20 : std::atoi(rounds_text);
  int stale_walks = 0;
  for (const uint64_t seed : testing::seeds(static_cast<uint64_t>(rounds), 1)) {
    testing::use_seed(seed);
    QuietServer server;
    MemoryJournal journal;
    CompleteEngine engine(server, 7);
    engine.attach_journal(&journal);
    journal.take_moves(true);
    struct Piece {
      std::string records;
      uint64_t count;
    };
    std::vector<Piece> checkpoint;
    Lsn begin = 0;
    std::atomic<int> writers{kThreads - 1};
    in_threads(engine, [&](EngineSession& session, Execution&, int number) {
      if (number != 0) {
        std::mt19937_64 random(seed * 100 + static_cast<uint64_t>(number));
        for (int i = 0; i < 1500; ++i) run(session, random_change(random));
        --writers;
        return;
      }
      // Many commands hit a key of another type, so there may be fewer than 1000 units in all.
      while (journal.last_lsn() < 1000 && writers != 0) std::this_thread::yield();
      // Like the checkpointer and the journal.
      for (int stale = 0;; ++stale) {
        if (stale == 2) journal.take_moves(false);
        checkpoint.clear();
        begin = journal.last_lsn();
        const auto walk = engine.begin_walk();
        for (bool more = true; more && journal.last_move_lsn <= begin;) {
          ByteBuffer records;
          uint64_t count = 0;
          more = walk->step(records, count);
          checkpoint.push_back({std::string(records.view()), count});
          // The writers' moves often come before the walk.
          if (stale == 0 && checkpoint.size() == 1) move_a_key(session);
          // Leaves time for keys to move.
          if (checkpoint.size() % 4 == 0) std::this_thread::sleep_for(kPause);
        }
        if (journal.last_move_lsn <= begin) break;
        ++stale_walks;
      }
      journal.take_moves(true);
    });
    CompleteEngine recovered(server, 7);
    const auto replay = recovered.begin_replay();
    for (const Piece& piece : checkpoint) REQUIRE(replay->apply(piece.records, piece.count));
    for (Lsn lsn = begin + 1; lsn <= journal.last_lsn(); ++lsn) {
      const MemoryJournal::Unit unit = journal.unit(lsn);
      REQUIRE(replay->apply(unit.records, unit.count));
    }
    replay->finish();
    INFO("seed ", seed);
    // The test sets the times itself, so this clock has not run; the other engine takes them from
    // the journal.
    engine.queue_clock.outgrow(recovered.queue_clock.latest_ms());
    const std::vector<std::string> lines = contents(engine);
    CHECK(dump_difference(lines, contents(recovered)).substr(0, 2000) == "");
  }
  CHECK(stale_walks > 0);
}

}  // namespace sluice::test
