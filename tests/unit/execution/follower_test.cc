// A standby: it has the state of the node that it follows after each unit, serves reads, refuses
// writes, and takes over. tests/model/queue_property_test.cc has more histories of queues.
#include <memory>
#include <string>
#include <vector>

#include "engine/queue/queue_records.h"
#include "tests/support/key_history.h"
#include "tests/support/large_moves.h"
#include "tests/support/queue_client.h"
#include "tests/support/seeds.h"
#include "tests/support/standby.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

// All that is due at this time, in as many slices as it takes.
void run_all_timers(Execution& execution, const Times& now) {
  execution.set_times(now);
  while (execution.run_timers(now)) {
  }
  execution.finish();
}

struct Primary {
  QuietServer server;
  MemoryJournal journal;
  CompleteEngine engine{server, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};
  Times now = Times::agreeing(kNowMs, 0);

  Primary() {
    engine.attach_journal(&journal);
    engine.options().debug_access = DebugAccess::kEverybody;
    execution.set_times(now);
  }
  std::string run(const Words& words) { return sluice::test::run(session, words); }
  void pass(int64_t ms) {
    now = Times::agreeing(now.wall_ms + ms, now.steady_ms + ms);
    run_all_timers(execution, now);
  }
};

// Without what is not in records: leases are renewed, and consumers seen, without one.
std::string as_recorded(std::string shown) {
  for (const Bytes name : {"seen-time\r\n:", "deadline\r\n:"}) {
    for (size_t at = 0; (at = shown.find(name, at)) != std::string::npos; ++at) {
      const size_t begin = at + name.size();
      shown.erase(begin, shown.find('\r', begin) - begin);
    }
  }
  return shown;
}

// Every reply about a key is the same.
void check_keys(Standby& standby, Engine& engine, const Words& names) {
  const auto keys = all_keys(engine, names);
  const auto followed = all_keys(standby.engine, names);
  for (const auto& [name, shown] : keys) {
    CAPTURE(name);
    REQUIRE(as_recorded(followed.at(name)) == as_recorded(shown));
  }
}

// Runs commands on `engine` (a primary), of which the standby must have the state all the time.
void run_followed(WholeHistory& history, Execution& execution, EngineSession& session, Times& now,
                  Standby& standby, int commands) {
  Engine& engine = execution.engine();
  for (int i = 0; i < commands; ++i) {
    now = Times::agreeing(now.wall_ms + i % 3, now.steady_ms + i % 3);
    execution.set_times(now);
    if (i % 4 == 0) {
      execution.run_timers(now);
      execution.finish();
    }
    for (const Words& words : history.next_commands()) run(session, words);
    standby.follow(now);
    if (i % 7 != 0) continue;
    CAPTURE(i);
    const auto queues = dump_queues(engine, now.queue_ms);
    const auto followed = dump_queues(standby.engine, now.queue_ms);
    if (queues != followed) FAIL(dump_difference(queues, followed));
    if (i % 70 == 0) check_keys(standby, engine, history.names);
    REQUIRE(state_digest(standby.session) == state_digest(session));
  }
}

void follow_history(uint64_t seed, bool takes_moves) {
  testing::use_seed(seed);
  INFO("seed ", seed);
  Primary primary;
  primary.journal.take_moves(takes_moves);
  WholeHistory history(seed);
  for (int i = 0; i < 100; ++i) {
    for (const Words& words : history.next_commands()) primary.run(words);
  }
  Standby standby(primary.server, primary.journal);
  run_followed(history, primary.execution, primary.session, primary.now, standby, 500);
  standby.promote(primary.journal, primary.now);
  Standby replayed(primary.server, primary.journal);
  CHECK(state_digest(standby.session) == state_digest(replayed.session));
  CHECK(dump_queues(standby.engine, primary.now.queue_ms) ==
        dump_queues(replayed.engine, primary.now.queue_ms));
  run_followed(history, standby.execution, standby.session, primary.now, replayed, 300);
}

}  // namespace

TEST_CASE("a standby has the same state after each unit, and so has the next one's") {
  for (const uint64_t seed : testing::seeds(5, 19)) follow_history(seed, false);
}

TEST_CASE("a standby follows keys that move by name alone") {
  const LargeMoves large;
  for (const uint64_t seed : testing::seeds(5, 23)) follow_history(seed, true);
}

namespace {

// A standby with connections that wait.
struct Readers {
  Primary primary;
  std::unique_ptr<Standby> standby;
  std::vector<std::shared_ptr<CollectingPort>> ports;
  std::vector<std::unique_ptr<EngineSession>> sessions;

  void begin() { standby = std::make_unique<Standby>(primary.server, primary.journal); }
  // Returns the number of the connection.
  size_t wait(const Words& words) {
    ports.push_back(std::make_shared<CollectingPort>());
    sessions.push_back(std::make_unique<EngineSession>(standby->engine, standby->execution));
    sessions.back()->client.port = ports.back();
    sessions.back()->client.protocol = 3;
    standby->execution.set_times(primary.now);
    run(*sessions.back(), words);
    REQUIRE(sessions.back()->client.waiter != nullptr);
    return ports.size() - 1;
  }
  // What a waiting connection has heard.
  std::string told(size_t connection) {
    standby->follow(primary.now);
    const std::optional<std::string> reply = ports[connection]->blocked_reply;
    if (reply.has_value()) standby->engine.end_waiter(sessions[connection]->client);
    return reply.has_value() ? resp_value(*reply).show() : "";
  }
  ~Readers() {
    for (const auto& session : sessions) {
      if (session->client.waiter != nullptr) standby->engine.cancel_waiter(session->client);
    }
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("commands that wait to read are served by the records") {
  Readers readers;
  Primary& primary = readers.primary;
  primary.run({"Q.CONFIG", "q", "SET", "retain_completed", "0"});
  primary.run({"Q.ADD", "q", "one", "p"});
  primary.run({"XADD", "s", "1-1", "f", "v"});
  readers.begin();
  const size_t stream = readers.wait({"XREAD", "BLOCK", "0", "STREAMS", "s", "$"});
  const size_t events = readers.wait({"Q.EVENTS", "q", "$", "BLOCK", "0"});
  const size_t ends = readers.wait({"Q.EVENTS", "q", "$", "TYPE", "completed", "BLOCK", "0"});
  const size_t end = readers.wait({"Q.GET", "q", "one", "WAIT", "0"});
  const size_t log = readers.wait({"Q.LOG", "q", "one", "BLOCK", "0"});
  CHECK(readers.told(stream).empty());
  primary.run({"XADD", "s", "1-2", "f", "w"});
  CHECK(has(readers.told(stream), "1-2"));
  CHECK(readers.told(events).empty());
  primary.run({"Q.POP", "1", "q"});
  CHECK(has(readers.told(events), "started"));
  CHECK(readers.told(log).empty());
  primary.run({"Q.TOUCH", "q", "one", "1", "LOG", "a line"});
  CHECK(has(readers.told(log), "a line"));
  CHECK(readers.told(ends).empty());
  CHECK(readers.told(end).empty());
  // The job is forgotten at once, and yet its end is told.
  primary.run({"Q.ACK", "q", "one", "1", "RESULT", "good"});
  CHECK(has(readers.told(ends), "completed"));
  CHECK(has(readers.told(end), "completed"));
  CHECK(run(readers.standby->session, {"Q.GET", "q", "one"}) == "$-1\r\n");
}

TEST_CASE("who waits for a job that is replaced is told by the records that it was cancelled") {
  Readers readers;
  readers.primary.run({"Q.ADD", "q", "one", "old"});
  readers.begin();
  const size_t end = readers.wait({"Q.GET", "q", "one", "WAIT", "0"});
  readers.primary.run({"Q.ADD", "q", "one", "new", "IFDUP", "REPLACE"});
  const std::string told = readers.told(end);
  for (const char* field : {"state=cancelled", "error=replaced"}) CHECK(has(told, field));
  CHECK(state_digest(readers.standby->session) == state_digest(readers.primary.session));
}

TEST_CASE("who waits for the end of an adopted member is served by the records") {
  Readers readers;
  Primary& primary = readers.primary;
  primary.run({"Q.ADOPT", "q", "PENDING", "work", "ACTIVE", "busy"});
  primary.run({"SADD", "busy", "one", "other"});
  readers.begin();
  const size_t end = readers.wait({"Q.GET", "q", "one", "WAIT", "0"});
  primary.run({"SREM", "busy", "other"});
  CHECK(readers.told(end).empty());
  primary.run({"SREM", "busy", "one"});
  CHECK_FALSE(readers.told(end).empty());
}

TEST_CASE("events that are not kept, and a queue that goes, are told") {
  Readers readers;
  Primary& primary = readers.primary;
  primary.run({"Q.CONFIG", "q", "SET", "events", "0"});
  readers.begin();
  const size_t events = readers.wait({"Q.EVENTS", "q", "$", "BLOCK", "0"});
  CHECK(readers.told(events).empty());
  primary.run({"Q.ADD", "q", "one", "p"});
  CHECK(has(readers.told(events), "TRIMMED"));
  const size_t end = readers.wait({"Q.GET", "q", "one", "WAIT", "0"});
  primary.run({"DEL", "q"});
  CHECK_FALSE(readers.told(end).empty());
}

TEST_CASE("what a unit shows waits for its lsn") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  primary.run({"SET", "a", "1"});
  primary.run({"SET", "b", "1"});
  standby.follow(primary.now);
  const std::vector<Bytes> args{"GET", "a"};
  standby.session.run_unfinished(args);
  CHECK(standby.execution.finish() == 1);
  const std::vector<Bytes> other{"MGET", "a", "b"};
  standby.session.run_unfinished(other);
  CHECK(standby.execution.finish() == 2);
}

namespace {

constexpr Bytes kRefused = "-READONLY You can't write against a read only replica.\r\n";

}  // namespace

// The replies of redis-server 7.0.15 as a replica.
TEST_CASE("commands that write are refused") {
  Primary primary;
  primary.run({"SET", "a", "1"});
  primary.run({"PFADD", "hll", "1", "2", "3"});
  primary.run({"FUNCTION", "LOAD",
               "#!lua name=l\nredis.register_function('f', function(k) return "
               "redis.call('SET', k[1], 'x') end)\nredis.register_function{function_name='g', "
               "callback=function(k) return redis.call('GET', k[1]) end, flags={'no-writes'}}"});
  Standby standby(primary.server, primary.journal);
  const auto reply = [&](const Words& words) { return run(standby.session, words); };
  const std::string before = state_digest(standby.session);
  for (const Words& words :
       std::vector<Words>{{"SET", "a", "2"},
                          {"BLPOP", "l", "1"},
                          {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"},
                          {"FLUSHALL"},
                          {"FUNCTION", "FLUSH"},
                          {"SWAPDB", "0", "1"},
                          {"SORT", "l", "STORE", "x"},
                          {"GETEX", "a"},
                          {"EXPIRE", "a", "10"},
                          {"Q.ADD", "q", "*", "p"},
                          {"Q.POP", "1", "q", "BLOCK", "0"},
                          {"Q.CONFIG", "q", "SET", "paused", "all"},
                          {"DEBUG", "POPULATE", "10"},
                          {"DEBUG", "RELOAD"},
                          {"FCALL", "f", "1", "a"},
                          {"FCALL_RO", "f", "1", "a"},
                          {"EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "a"}}) {
    CAPTURE(words[0]);
    CHECK(reply(words) == kRefused);
  }
  CHECK(reply({"SET"}) == "-ERR wrong number of arguments for 'set' command\r\n");
  CHECK(reply({"GET", "a"}) == "$1\r\n1\r\n");
  CHECK(reply({"PUBLISH", "c", "m"}) == ":0\r\n");
  CHECK(reply({"FCALL", "g", "1", "a"}) == "$1\r\n1\r\n");
  CHECK(reply({"PFCOUNT", "hll"}) == ":3\r\n");
  CHECK(reply({"EVAL", "return redis.call('PFCOUNT', 'hll')", "0"}) == ":3\r\n");
  CHECK(reply({"EVAL", "return redis.pcall('SET', KEYS[1], 'x')", "1", "a"}) == kRefused);
  CHECK(reply({"EVAL", "return redis.call('SET',KEYS[1],'x')", "1", "a"}) ==
        "-READONLY You can't write against a read only replica. script: "
        "1f8f4cfba6f3375f8c4ec02b9de4361a5dea5c64, on @user_script:1.\r\n");
  CHECK(has(reply({"EVAL_RO", "return redis.call('SET', KEYS[1], 'x')", "1", "a"}),
            "-ERR Write commands are not allowed from read-only scripts."));
  CHECK(state_digest(standby.session) == before);
}

TEST_CASE("a standby with less memory than the primary answers all reads") {
  Primary primary;
  primary.run({"SET", "a", "1"});
  Standby standby(primary.server, primary.journal);
  standby.engine.options().max_memory_bytes = 1;
  primary.server.used_bytes = 2;
  CHECK(run(standby.session, {"MULTI"}) == "+OK\r\n");
  CHECK(run(standby.session, {"GET", "a"}) == "+QUEUED\r\n");
  CHECK(run(standby.session, {"EXEC"}) == "*1\r\n$1\r\n1\r\n");
  standby.promote(primary.journal, primary.now);
  CHECK(has(run(standby.session, {"SET", "a", "2"}), "-OOM "));
}

TEST_CASE("the configuration of a queue is read on a standby, and not changed") {
  Primary primary;
  primary.run({"Q.CONFIG", "q", "SET", "max_active", "7"});
  primary.run({"Q.CONFIG", "q", "GROUP", "get", "SET", "max_active", "2"});
  Standby standby(primary.server, primary.journal);
  standby.follow(primary.now);
  const auto reply = [&](const Words& words) { return run(standby.session, words); };
  CHECK(reply({"Q.CONFIG", "q", "GET", "max_active"}) == "*2\r\n$10\r\nmax_active\r\n$1\r\n7\r\n");
  CHECK(reply({"Q.CONFIG", "q", "group", "get", "get"}) ==
        "*2\r\n$10\r\nmax_active\r\n$1\r\n2\r\n");
  CHECK(has(reply({"Q.CONFIG", "q", "RULES"}), "group"));
  CHECK(has(reply({"EVAL_RO", "return redis.call('Q.CONFIG', KEYS[1], 'GET')", "1", "q"}),
            "max_active"));
  for (const Words& words : std::vector<Words>{{"Q.CONFIG", "q", "SET", "max_active", "1"},
                                               {"Q.CONFIG", "q", "GROUP", "get", "RESET"},
                                               {"Q.CONFIG", "q", "GROUP", "GET"},
                                               {"Q.CONFIG", "q", "TRY", "max_active", "1"}}) {
    CAPTURE(words[2]);
    CHECK(reply(words) == kRefused);
  }
}

TEST_CASE("a transaction with a write is refused on a standby") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  const auto reply = [&](const Words& words) { return run(standby.session, words); };
  reply({"MULTI"});
  CHECK(reply({"GET", "a"}) == "+QUEUED\r\n");
  CHECK(reply({"SET", "a", "3"}) == kRefused);
  CHECK(reply({"EXEC"}) == "-EXECABORT Transaction discarded because of previous errors.\r\n");
  reply({"MULTI"});
  reply({"EVAL", "return redis.pcall('SET', KEYS[1], 'x')", "1", "a"});
  CHECK(reply({"EXEC"}) == "*1\r\n" + std::string(kRefused));
}

TEST_CASE("nothing happens by itself until the takeover") {
  Primary primary;
  primary.run({"SET", "a", "1", "PX", "100"});
  primary.run({"Q.CONFIG", "q", "SET", "lease_ms", "1000"});
  primary.run({"Q.ADD", "q", "delayed", "p", "DELAY", "50"});
  primary.run({"Q.ADD", "q", "leased", "p"});
  primary.run({"Q.POP", "1", "q"});
  Standby standby(primary.server, primary.journal);
  standby.follow(primary.now);
  const Times later = Times::agreeing(kNowMs + 100'000, 100'000);
  standby.execution.set_times(later);
  CHECK(standby.engine.next_due().nothing());
  CHECK_FALSE(standby.execution.run_timers(later));
  standby.execution.finish();
  CHECK(run(standby.session, {"GET", "a"}) == "$-1\r\n");
  CHECK(run(standby.session, {"DBSIZE"}) == ":2\r\n");
  CHECK(has(run(standby.session, {"Q.GET", "q", "delayed"}), "delayed"));
  CHECK(state_digest(standby.session) == state_digest(primary.session));

  standby.promote(primary.journal, later);
  CHECK_FALSE(standby.engine.next_due().nothing());
  CHECK(standby.engine.next_due().wait_ms(later) == 0);
  run_all_timers(standby.execution, later);
  CHECK(run(standby.session, {"DBSIZE"}) == ":1\r\n");
  CHECK(has(run(standby.session, {"Q.GET", "q", "delayed"}), "pending"));
  // The lease has its whole term from now on.
  CHECK(standby.engine.next_due().steady_ms == 101'000);
  for (const int64_t passed_ms : {999, 1000}) {
    const Times then = Times::agreeing(later.wall_ms + passed_ms, later.steady_ms + passed_ms);
    run_all_timers(standby.execution, then);
    const std::string job = run(standby.session, {"Q.GET", "q", "leased"});
    CHECK(has(job, passed_ms < 1000 ? "active" : "pending"));
  }
}

TEST_CASE("what a standby has followed is due after the takeover") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  primary.run({"Q.CONFIG", "q", "SET", "lease_ms", "1000"});
  primary.run({"Q.ADD", "q", "leased", "p"});
  primary.run({"Q.POP", "1", "q"});
  primary.run({"Q.ADD", "q", "delayed", "p", "DELAY", "50"});
  primary.run({"SET", "a", "1", "PX", "100"});
  standby.follow(primary.now);
  standby.promote(primary.journal, primary.now);
  const Times later = Times::agreeing(kNowMs + 2000, 2000);
  run_all_timers(standby.execution, later);
  CHECK(has(run(standby.session, {"Q.GET", "q", "delayed"}), "pending"));
  CHECK(has(run(standby.session, {"Q.GET", "q", "leased"}), "pending"));
  CHECK(run(standby.session, {"DBSIZE"}) == ":1\r\n");
}

TEST_CASE("leases do not run while nothing can be acknowledged") {
  Primary primary;
  primary.run({"Q.CONFIG", "q", "SET", "lease_ms", "1000"});
  primary.run({"Q.ADD", "q", "leased", "p"});
  primary.run({"Q.POP", "1", "q"});
  const int64_t began_ms = primary.now.steady_ms;
  const auto state_at = [&](int64_t ms) {
    primary.pass(began_ms + ms - primary.now.steady_ms);
    return has(run(primary.session, {"Q.GET", "q", "leased"}), "active") ? "active" : "pending";
  };
  Engine& engine = primary.execution.engine();
  engine.stop_lease_clock(began_ms + 900);
  engine.stop_lease_clock(began_ms + 2000);
  CHECK(engine.next_due().steady_ms == kNeverMs);
  CHECK(state_at(5000) == "active");
  CHECK(engine.resume_lease_clock(began_ms + 5000));
  CHECK_FALSE(engine.resume_lease_clock(began_ms + 9000));
  CHECK(engine.next_due().steady_ms == began_ms + 5100);
  CHECK(state_at(5099) == "active");
  CHECK(state_at(5100) == "pending");
}

TEST_CASE("a change of rates that had not reached all groups goes on after the takeover") {
  constexpr int kGroups = 5000;
  Primary primary;
  primary.run({"Q.CONFIG", "q", "GROUP", "*", "SET", "rate", "1/3600000"});
  for (int i = 0; i < 2 * kGroups; ++i) {
    const std::string number = std::to_string(i);
    primary.run({"Q.ADD", "q", number, "p", "GROUP", "g" + std::to_string(i % kGroups)});
  }
  for (int i = 0; i < kGroups; i += 100) primary.run({"Q.POP", "1", "q", "COUNT", "100"});
  CHECK(primary.run({"Q.POP", "1", "q"}) == "*-1\r\n");
  primary.run({"Q.CONFIG", "q", "GROUP", "*", "SET", "rate", "1000/1000"});
  Standby standby(primary.server, primary.journal);
  standby.promote(primary.journal, primary.now);
  for (int i = 1; i <= 20; ++i) {
    run_all_timers(standby.execution, Times::agreeing(kNowMs + 1000 * i, 1000 * i));
  }
  for (int i = 0; i < kGroups; i += 100) {
    CHECK(run(standby.session, {"Q.POP", "1", "q", "COUNT", "100"}) != "*-1\r\n");
  }
}

TEST_CASE("an adopted queue follows its keys after the takeover") {
  Primary primary;
  primary.run({"ZADD", "work", "1", "a", "2", "b"});
  primary.run({"Q.ADOPT", "q", "PENDING", "work", "ACTIVE", "busy", "LEASE", "1000"});
  Standby standby(primary.server, primary.journal);
  standby.promote(primary.journal, primary.now);
  for (const Words& words : {Words{"ZPOPMIN", "work"}, Words{"SADD", "busy", "a"}}) {
    run(standby.session, words);
  }
  CHECK(run(standby.session, {"SMEMBERS", "busy"}) == "*1\r\n$1\r\na\r\n");
  // The lease of the member expires.
  const Times later = Times::agreeing(kNowMs + 1000, 1000);
  run_all_timers(standby.execution, later);
  CHECK(run(standby.session, {"SCARD", "busy"}) == ":0\r\n");
  CHECK(run(standby.session, {"ZCARD", "work"}) == ":2\r\n");
}

TEST_CASE("numbers and queue time continue after the takeover") {
  Primary primary;
  primary.run({"Q.ADD", "q", "a", "p"});
  primary.run({"Q.POP", "1", "q", "WORKER", "w", "REQID", "r", "LEASE", "90000000"});
  primary.run({"Q.ADD", "gone", "a", "p"});
  primary.run({"Q.POP", "1", "gone"});
  primary.run({"DEL", "gone"});
  Standby standby(primary.server, primary.journal);
  // A clock that is an hour behind.
  const Times behind = Times::agreeing(kNowMs - 3'600'000, 5000);
  standby.engine.queue_clock.start({behind.wall_ms * 1000, 5'000'000, 5'000'000});
  CHECK(standby.engine.queue_clock.now_ms(5'000'000) > kNowMs);
  primary.pass(3'600'000);
  primary.run({"Q.ADD", "q", "b", "p"});
  standby.follow(Times::agreeing(kNowMs, 6000));
  CHECK(standby.engine.queue_clock.now_ms(6'000'000) > primary.now.queue_ms);
  Times now = primary.now;
  standby.promote(primary.journal, now);
  const auto lease = [&](const Words& words) {
    return resp_value(run(standby.session, words)).items.at(0).field("lease");
  };
  // The reply of this pop was lost.
  CHECK(lease({"Q.POP", "1", "q", "WORKER", "w", "REQID", "r"}) == "1");
  CHECK(lease({"Q.POP", "1", "q", "WORKER", "w"}) == "2");
  run(standby.session, {"Q.ADD", "gone", "a", "p"});
  CHECK(lease({"Q.POP", "1", "gone"}) == std::to_string(primary.engine.token_floor.load()));
}

namespace {

class Invalidations final : public ClientPort {
 public:
  void deliver(ByteBuffer, Lsn) override {}
  void deliver_blocked_reply(ByteBuffer, Lsn) override {}
  void deliver_invalidation(ByteBuffer payload, bool, Lsn) override {
    told.emplace_back(payload.view());
  }
  std::vector<std::string> told;
};

}  // namespace

TEST_CASE("copies that clients keep, and WATCH, follow the records") {
  Primary primary;
  primary.run({"SET", "a", "1"});
  primary.run({"HSET", "h", "f", "v"});
  Standby standby(primary.server, primary.journal);
  standby.follow(primary.now);
  auto port = std::make_shared<Invalidations>();
  EngineSession reader(standby.engine, standby.execution);
  reader.client.port = port;
  reader.client.protocol = 3;
  run(reader, {"CLIENT", "TRACKING", "ON"});
  run(reader, {"GET", "a"});
  run(reader, {"HGETALL", "h"});
  EngineSession watcher(standby.engine, standby.execution);
  run(watcher, {"WATCH", "a"});
  primary.run({"HSET", "h", "f", "w"});
  standby.follow(primary.now);
  REQUIRE(port->told.size() == 1);
  CHECK(has(port->told[0], "h"));
  primary.run({"DEL", "a"});
  standby.follow(primary.now);
  REQUIRE(port->told.size() == 2);
  run(watcher, {"MULTI"});
  run(watcher, {"GET", "a"});
  CHECK(run(watcher, {"EXEC"}) == "*-1\r\n");
  run(reader, {"GET", "a"});
  primary.run({"FLUSHALL"});
  standby.follow(primary.now);
  CHECK(port->told.size() == 3);
}

TEST_CASE("runs and waits are counted from the records") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  for (int i = 0; i < 40; ++i) {
    primary.run({"Q.ADD", "q", "j" + std::to_string(i), "p", "PRI", "1", "TAG", "t", "x"});
  }
  for (int i = 0; i < 30; ++i) {
    primary.run({"Q.POP", "1", "q"});
    primary.pass(50 + 10 * (i % 3));
    const std::string id = "j" + std::to_string(i);
    const std::string lease = std::to_string(i + 1);
    primary.run(i % 10 == 9 ? Words{"Q.NACK", "q", id, lease, "SILENT", "DELAY", "100000"}
                            : Words{"Q.ACK", "q", id, lease});
  }
  standby.promote(primary.journal, primary.now);
  for (const Words& words : std::vector<Words>{{"Q.STATS", "q"},
                                               {"Q.STATS", "q", "BY", "PRI"},
                                               {"Q.STATS", "q", "BY", "TAG", "t"},
                                               {"Q.GET", "q", "j35", "WITH", "eta"}}) {
    CAPTURE(words.back());
    RespValue live = resp_value(primary.run(words));
    CHECK(resp_value(run(standby.session, words)).show() == live.show());
  }
}

TEST_CASE("after a takeover an adaptive cap changes when it would have on the primary") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  primary.run({"Q.CONFIG", "q", "SET", "max_active", "1", "adaptive", "1:9:100:1000:1"});
  const auto work = [](EngineSession& session, int number) {
    const std::string id = "j" + std::to_string(number);
    run(session, {"Q.ADD", "q", id, "p"});
    run(session, {"Q.POP", "1", "q"});
    CHECK(run(session, {"Q.ACK", "q", id, std::to_string(number)}) == "+OK\r\n");
  };
  for (int i = 1; i <= 110; ++i) work(primary.session, i);  // after 100 the cap is 2
  standby.promote(primary.journal, primary.now);
  work(standby.session, 111);
  for (const char* id : {"a", "b", "c", "d"}) run(standby.session, {"Q.ADD", "q", id, "p"});
  CHECK(run(standby.session, {"Q.POP", "1", "q", "COUNT", "4"}).starts_with("*2\r\n"));
}

TEST_CASE("the share of a group without jobs counts in its unit only") {
  Primary primary;
  primary.run({"Q.CONFIG", "q", "SET", "fair", "on"});
  Standby standby(primary.server, primary.journal);
  ByteBuffer share;
  encode_share(ConfigLevel::kGroup, 5000, 0, share);
  ByteBuffer record;
  EffectEncoder(record).queue_record(EffectType::kQueueShare, 0, "q", "g", share.view());
  REQUIRE(standby.follower->apply(2, record.view(), 1, primary.now).ok());
  primary.run({"Q.ADD", "q", "a", "p", "GROUP", "g", "DELAY", "1000"});
  standby.follow(primary.now);
  CHECK(dump_queues(standby.engine, primary.now.queue_ms) ==
        dump_queues(primary.engine, primary.now.queue_ms));
}

TEST_CASE("a unit that cannot be decoded is refused") {
  Primary primary;
  Standby standby(primary.server, primary.journal);
  CHECK_FALSE(standby.follower->apply(1, "nonsense", 1, primary.now).ok());
  primary.run({"SET", "a", "1"});
  const MemoryJournal::Unit unit = primary.journal.unit(1);
  CHECK_FALSE(standby.follower->apply(1, unit.records, unit.count + 1, primary.now).ok());
  CHECK(run(standby.session, {"DBSIZE"}) == ":0\r\n");
  CHECK(standby.follower->apply(1, unit.records, unit.count, primary.now).ok());
}

}  // namespace sluice::test
