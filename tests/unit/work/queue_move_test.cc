// RENAME and MOVE of a queue move everything, whether the journal holds the whole queue under its
// new name or a record that it was moved.
#include <string>
#include <vector>

#include "engine/queue/queue.h"
#include "tests/support/large_moves.h"
#include "tests/support/queue_server.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using Words = std::vector<std::string>;

class MovingServer : public QueueServer {
 public:
  explicit MovingServer(bool by_record) {
    set_clock(1'700'000'000'000, 1000);
    connect(3);
    take_moves(by_record);
  }

  std::string show(const Words& words) { return show_of(0, words); }
  std::string show_of(size_t connection, const Words& words) {
    const auto reply = run(connection, words);
    return reply.has_value() ? reply->show() : "waits";
  }
  // Returns the lease.
  std::string pop(const std::string& queue, size_t connection = 0, const Words& options = {}) {
    Words words{"Q.POP", "1", queue};
    words.insert(words.end(), options.begin(), options.end());
    const RespValue jobs = *run(connection, words);
    REQUIRE(jobs.items.size() == 1);
    return jobs.items[0].find("lease")->show();
  }
  uint64_t count(const std::string& queue, JobState state) {
    return find_queue(queue)->count(state);
  }
  // The journal and a checkpoint must restore these queues.
  void check_kept(const Words& queues) {
    const Words ids{"1", "2", "3", "late", "needs", "other"};
    for (const std::string& name : queues) {
      if (Queue* queue = find_queue(name)) queue->check();
    }
    CHECK(describe_replayed(units(), queues, ids) == describe(queues, ids));
    CHECK(describe_walked(queues, ids) == describe(queues, ids));
  }
};

// `over`: a queue exists under the new name.
void check_rename(bool by_record, bool over) {
  INFO("by record: ", by_record, " over another: ", over);
  MovingServer server(by_record);
  if (over) {
    server.show({"Q.ADD", "new", "other", "payload"});
    server.show({"Q.ADD", "new", "1", "payload"});
    server.pop("new");
  }
  server.show({"Q.CONFIG", "old", "SET", "lease_ms", "9000", "disconnect_grace_ms", "2000"});
  for (const char* id : {"1", "2", "3"}) server.show({"Q.ADD", "old", id, "payload"});
  server.show({"Q.ADD", "old", "late", "payload", "DELAY", "20000"});
  server.show({"Q.ADD", "old", "needs", "payload", "NEED", "1"});
  const std::string first = server.pop("old");
  server.pop("old", 1, {"TIED", "WORKER", "w"});
  server.show({"EXPIRE", "old", "1000"});
  server.pass(5000);
  CHECK(server.show({"RENAME", "old", "new"}) == "OK");
  CHECK((server.last_move() == server.units()) == by_record);
  CHECK(server.show({"EXISTS", "old"}) == "0");
  REQUIRE(server.find_queue("new") != nullptr);
  CHECK(server.show({"TTL", "new"}) == "995");
  server.check_kept({"old", "new"});
  CHECK(server.show({"Q.ACK", "new", "1", first}) == "OK");
  CHECK(server.count("new", JobState::kBlocked) == 0);
  CHECK(server.count("new", JobState::kDelayed) == 1);
  server.check_kept({"old", "new"});
  // The connection of the tied lease is closed: two seconds later the job waits again.
  server.disconnect(1);
  server.pass(1999);
  CHECK(server.count("new", JobState::kActive) == 1);
  server.pass(1);
  CHECK(server.count("new", JobState::kActive) == 0);
  CHECK(server.count("new", JobState::kPending) == 3);
  server.check_kept({"old", "new"});
  server.pass(13'000);
  CHECK(server.count("new", JobState::kDelayed) == 0);
  // And it ends although nobody accesses it.
  server.pass(980'000);
  CHECK(server.find_queue("new") == nullptr);
  server.check_kept({"old", "new"});
}

}  // namespace

TEST_CASE("RENAME takes the queue along: leases, ties, waiting jobs, configuration, expiry") {
  const LargeMoves large;
  for (const bool by_record : {false, true}) {
    for (const bool over : {false, true}) check_rename(by_record, over);
  }
}

TEST_CASE("events behind a RENAME in its unit, and those that retention has let go in it") {
  const LargeMoves large;
  for (const bool by_record : {false, true}) {
    INFO("by record: ", by_record);
    MovingServer server(by_record);
    server.show({"Q.CONFIG", "q", "SET", "events", "5"});
    for (const char* id : {"1", "2", "3"}) server.show({"Q.ADD", "q", id, "payload"});
    server.show({"MULTI"});
    for (int i = 0; i < 4; ++i) server.show({"Q.ADD", "q", "more" + std::to_string(i), "payload"});
    server.show({"RENAME", "q", "r"});
    server.show({"Q.ADD", "r", "late", "payload"});
    server.show({"EXEC"});
    CHECK((server.last_move() == server.units()) == by_record);
    CHECK(server.find_queue("r")->events.count() == 5);
    server.check_kept({"q", "r"});
    server.show({"Q.ADD", "r", "other", "payload"});
    server.check_kept({"q", "r"});
  }
}

TEST_CASE("events behind a SWAPDB in its unit") {
  MovingServer server(false);
  for (const char* id : {"1", "2", "3"}) server.show({"Q.ADD", "q", id, "payload"});
  server.show({"MULTI"});
  server.show({"SWAPDB", "0", "1"});
  server.show({"SELECT", "1"});
  server.show({"Q.ADD", "q", "late", "payload"});
  server.show({"SWAPDB", "0", "1"});
  server.show({"SELECT", "0"});
  server.show({"EXEC"});
  CHECK(server.find_queue("q")->events.count() == 4);
  server.check_kept({"q"});
}

TEST_CASE("who waits at the old name goes on waiting, who waits at the new one is served") {
  const LargeMoves large;
  for (const bool by_record : {false, true}) {
    INFO("by record: ", by_record);
    MovingServer server(by_record);
    server.show({"Q.CONFIG", "q", "SET", "max_active", "1"});
    server.show({"Q.ADD", "q", "1", "payload"});
    server.pop("q");
    CHECK(server.show_of(1, {"Q.POP", "1", "q", "BLOCK", "0"}) == "waits");
    CHECK(server.show_of(2, {"Q.POP", "1", "r", "BLOCK", "0"}) == "waits");
    server.show({"RENAME", "q", "r"});
    CHECK(server.take_deliveries().empty());
    server.show({"Q.ADD", "r", "2", "payload"});
    CHECK(server.take_deliveries().empty());
    server.show({"Q.CONFIG", "r", "SET", "max_active", "2"});
    CHECK(server.take_deliveries().at(2).items.at(0).find("id")->text == "2");
    server.show({"Q.ADD", "q", "3", "payload"});
    CHECK(server.take_deliveries().at(1).items.at(0).find("id")->text == "3");
    server.check_kept({"q", "r"});
  }
}

TEST_CASE("a queue that shows keys moves, and so do the keys") {
  const LargeMoves large;
  for (const bool by_record : {false, true}) {
    INFO("by record: ", by_record);
    MovingServer server(by_record);
    server.show({"ZADD", "pending", "1", "1", "2", "2"});
    server.show({"Q.ADOPT", "q", "PENDING", "pending", "ACTIVE", "active", "PAYLOAD", "payload:"});
    server.show({"RENAME", "pending", "elsewhere"});
    CHECK(server.show({"Q.GET", "q", "1"}) == "null");
    server.show({"ZADD", "elsewhere", "3", "3"});
    server.show({"RENAME", "elsewhere", "pending"});
    CHECK(server.show({"Q.GET", "q", "3"}).find("pending") != std::string::npos);
    server.show({"RENAME", "q", "r"});
    server.show({"ZADD", "pending", "4", "late"});
    CHECK(server.show({"Q.GET", "r", "late"}).find("pending") != std::string::npos);
    CHECK((server.last_move() != 0) == by_record);
    server.check_kept({"q", "r"});
  }
}

TEST_CASE("MOVE takes the queue along, also where it is journaled by its name alone") {
  const LargeMoves large;
  for (const bool by_record : {false, true}) {
    INFO("by record: ", by_record);
    MovingServer server(by_record);
    server.show({"Q.ADD", "q", "1", "payload", "LEASE", "1000"});
    server.pop("q");
    CHECK(server.show({"MOVE", "q", "1"}) == "1");
    CHECK(server.show({"EXISTS", "q"}) == "0");
    server.show_of(1, {"SELECT", "1"});
    server.pass(1001);
    CHECK(server.show_of(1, {"Q.GET", "q", "1"}).find("pending") != std::string::npos);
    server.restart(1);
    server.show({"SELECT", "1"});
    server.pop("q");
  }
}

}  // namespace sluice::test
