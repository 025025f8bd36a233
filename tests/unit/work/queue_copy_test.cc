// COPY of a queue: configuration and live jobs, active ones as if they had never been popped; and
// queues in databases that are swapped.
#include <string>
#include <vector>

#include "engine/queue/queue.h"
#include "tests/support/queue_server.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using Words = std::vector<std::string>;

std::string show(QueueServer& server, const Words& words) {
  const auto reply = server.run(0, words);
  return reply.has_value() ? reply->show() : "waits";
}

std::string field(QueueServer& server, const std::string& queue, const std::string& id,
                  const std::string& name) {
  const RespValue job = *server.run(0, {"Q.GET", queue, id, "WITH", "payload"});
  const RespValue* value = job.find(name);
  return value == nullptr ? "none" : value->show();
}

// The ids that successive pops return.
Words pop_all(QueueServer& server, const std::string& queue) {
  Words ids;
  for (;;) {
    const RespValue jobs = *server.run(0, {"Q.POP", "1", queue});
    if (jobs.items.empty()) return ids;
    ids.push_back(jobs.items[0].find("id")->text);
  }
}

void check_kept(QueueServer& server, const Words& queues, const Words& ids) {
  for (const std::string& name : queues) {
    if (Queue* queue = server.find_queue(name)) queue->check();
  }
  CHECK(server.describe_replayed(server.units(), queues, ids) == server.describe(queues, ids));
}

}  // namespace

TEST_CASE("a copied queue has the live jobs of each state, each once") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.CONFIG", "q", "GROUP", "g", "SET", "order", "lifo"});
  for (const char* id : {"ended", "need1", "need2", "active"})
    show(server, {"Q.ADD", "q", id, "x"});
  show(server, {"Q.CANCEL", "q", "ended"});
  show(server, {"Q.POP", "1", "q", "ID", "active"});
  show(server, {"Q.ADD", "q", "both", "x", "NEED", "need2", "NEED", "need1", "AFTER", "active"});
  show(server, {"Q.ADD", "q", "after", "x", "AFTER", "need1", "AFTER", "active"});
  for (const char* id : {"old", "new"}) show(server, {"Q.ADD", "q", id, "x", "GROUP", "g"});
  show(server, {"Q.ADD", "q", "gated", "x", "GROUP", "g", "DELAY", "900"});
  show(server, {"Q.ADD", "q", "late", "x", "DELAY", "900"});
  show(server, {"Q.ADD", "q", "front", "x"});
  show(server, {"Q.MOVE", "q", "front", "FRONT"});
  show(server, {"COPY", "q", "copy"});
  const Words ids{"need1", "need2", "active", "both", "after",
                  "old",   "new",   "gated",  "late", "front"};
  for (const std::string& id : ids) {
    CAPTURE(id);
    const std::string state = id == "active" ? "pending" : field(server, "q", id, "state");
    CHECK(field(server, "copy", id, "state") == state);
  }
  CHECK(server.find_queue("copy")->jobs.size() == ids.size());
  check_kept(server, {"q", "copy"}, ids);
}

TEST_CASE("a copied queue has the configuration and the live jobs") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.CONFIG", "q", "SET", "max_active", "3", "rate", "100/1000", "fair", "on"});
  show(server, {"Q.CONFIG", "q", "GROUP", "g*", "SET", "max_active", "2", "order", "lifo"});
  show(server, {"Q.ADD", "q", "done", "0"});
  show(server, {"Q.POP", "1", "q", "WORKER", "w"});
  show(server, {"Q.ACK", "q", "done", "1"});
  show(server, {"Q.ADD", "q", "active", "payload", "PRI", "1", "TTL", "60000"});
  show(server, {"Q.POP", "1", "q", "WORKER", "w"});
  show(server, {"Q.ADD", "q", "next", "old"});
  show(server, {"Q.POP", "1", "q", "WORKER", "w"});
  show(server, {"Q.ADD", "q", "next", "new", "IFDUP", "UPDATE"});
  show(server, {"Q.ADD", "q", "stopped", "1"});
  show(server, {"Q.POP", "1", "q", "WORKER", "w"});
  show(server, {"Q.CANCEL", "q", "stopped", "REASON", "enough"});
  show(server, {"Q.ADD", "q", "needs", "1", "NEED", "active", "NEED", "done"});
  show(server, {"Q.ADD", "q", "needs-stopped", "1", "NEED", "stopped"});
  show(server, {"Q.ADD", "q", "late", "1", "DELAY", "5000"});
  for (const char* id : {"s1", "s2", "s3"}) {
    show(server, {"Q.ADD", "q", id, id, "GROUP", "g1", "PRI", "1", "KEY", "k", "TAG", "t", "v"});
  }
  server.pass(10);
  CHECK(show(server, {"COPY", "q", "q"}) == "-ERR source and destination objects are the same");
  show(server, {"SET", "copy", "a string"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "0");
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "1");
  const Words ids{"done", "active", "next", "stopped", "needs", "needs-stopped", "late", "s1"};
  check_kept(server, {"q", "copy"}, ids);

  CHECK(show(server, {"Q.CONFIG", "copy", "GET"}) == show(server, {"Q.CONFIG", "q", "GET"}));
  CHECK(show(server, {"Q.CONFIG", "copy", "GROUP", "g*", "GET"}) ==
        show(server, {"Q.CONFIG", "q", "GROUP", "g*", "GET"}));
  CHECK(show(server, {"Q.GET", "copy", "done"}) == "null");
  CHECK(field(server, "copy", "active", "state") == "pending");
  CHECK(field(server, "copy", "active", "attempts") == "0");
  CHECK(field(server, "copy", "next", "state") == "pending");
  CHECK(field(server, "copy", "next", "payload") == "new");
  CHECK(field(server, "copy", "stopped", "state") == "cancelled");
  CHECK(field(server, "copy", "needs", "state") == "blocked");
  CHECK(field(server, "copy", "needs-stopped", "state") == "cancelled");
  CHECK(field(server, "copy", "late", "state") == "delayed");
  // The source is unchanged.
  CHECK(field(server, "q", "active", "state") == "active");
  CHECK(field(server, "q", "needs-stopped", "state") == "blocked");
  // Caps apply, the group's stack is preserved, and a job that needs another waits for the copy of
  // it.
  show(server, {"Q.CONFIG", "copy", "SET", "max_active", "0"});
  CHECK(pop_all(server, "copy") == Words{"active", "s3", "s2", "next"});
  server.pass(6000);
  CHECK(pop_all(server, "copy") == Words{"late"});
  check_kept(server, {"q", "copy"}, ids);
}

TEST_CASE("a copied job has its cost, its delay and the time at which it was added") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.CONFIG", "q", "SET", "max_active", "3"});
  show(server, {"Q.ADD", "q", "big", "x", "COST", "3"});
  show(server, {"Q.ADD", "q", "late", "x", "DELAY", "5000"});
  server.pass(10);
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  CHECK(field(server, "copy", "big", "cost") == "3");
  for (const char* id : {"big", "late"}) {
    CHECK(field(server, "copy", id, "enqueued") == "1700000000000");
  }
  const Words again{"Q.ADD", "copy", "late", "y", "DELAY", "5000", "IFDUP", "UPDATE"};
  CHECK(server.run(0, again)->field("result") == "updated");
  check_kept(server, {"q", "copy"}, {"big", "late"});
  show(server, {"Q.ADD", "copy", "small", "x"});
  CHECK(pop_all(server, "copy") == Words{"big"});
}

TEST_CASE("what is added to a copy comes after what was copied") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  for (const char* id : {"a", "b", "c"}) show(server, {"Q.ADD", "q", id, "1"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  show(server, {"Q.ADD", "copy", "new", "1"});
  check_kept(server, {"q", "copy"}, {"a", "b", "c", "new"});
  CHECK(pop_all(server, "copy") == Words{"a", "b", "c", "new"});
}

TEST_CASE("in a LIFO group the copy of an active job has the place of one that returns") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.CONFIG", "q", "SET", "order", "lifo"});
  for (const char* id : {"s1", "s2", "s3"}) show(server, {"Q.ADD", "q", id, "1", "GROUP", "g"});
  CHECK(server.run(0, {"Q.POP", "1", "q"})->items.at(0).field("id") == "s3");
  show(server, {"Q.ADD", "q", "s4", "1", "GROUP", "g"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  show(server, {"Q.NACK", "q", "s3", "1", "SILENT"});
  const Words order = pop_all(server, "q");
  CHECK(order == Words{"s3", "s4", "s2", "s1"});
  CHECK(pop_all(server, "copy") == order);
}

TEST_CASE("a lease of the source acknowledges nothing in the copy") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.ADD", "q", "a", "1"});
  show(server, {"Q.POP", "1", "q"});
  show(server, {"Q.ADD", "q", "a", "2", "IFDUP", "UPDATE"});
  CHECK(show(server, {"Q.ACK", "q", "a", "1"}) == "OK");
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  CHECK(show(server, {"Q.ACK", "q", "a", "1"}) == "OK");
  CHECK(show(server, {"Q.ACK", "copy", "a", "1"}) == "-STALELEASE id=a state=pending");
}

TEST_CASE("a run that was replaced is not copied, its successor is") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  show(server, {"Q.ADD", "q", "a", "old"});
  show(server, {"Q.POP", "1", "q"});
  CHECK(server.run(0, {"Q.ADD", "q", "a", "new", "IFDUP", "REPLACE"})->field("result") == "queued");
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  CHECK(field(server, "copy", "a", "state") == "pending");
  CHECK(field(server, "copy", "a", "payload") == "new");
}

TEST_CASE("a queue of more than 4,000 live jobs is not copied") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  for (int i = 0; i < 4001; ++i) show(server, {"Q.ADD", "q", std::to_string(i), "payload"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "-TOOBIG limit=4000");
  CHECK(show(server, {"EXISTS", "copy"}) == "0");
  show(server, {"Q.POP", "1", "q"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "-TOOBIG limit=4000");
  show(server, {"SET", "copy", "a string"});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "-TOOBIG limit=4000");
  CHECK(show(server, {"GET", "copy"}) == "a string");
  // If nothing would be copied, nothing is too big.
  CHECK(show(server, {"COPY", "q", "copy"}) == "0");
  // Ended jobs do not count.
  show(server, {"Q.ACK", "q", "0", "1"});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "1");
}

TEST_CASE("a queue with more than 4 MiB in its live jobs is not copied") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  const std::string payload(1 << 20, 'x');
  for (const char* id : {"a", "b", "c", "d"}) show(server, {"Q.ADD", "q", id, payload});
  CHECK(show(server, {"COPY", "q", "copy"}) == "-TOOBIG limit=4194304");
  CHECK(show(server, {"EXISTS", "copy"}) == "0");
  show(server, {"SET", "copy", "a string"});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "-TOOBIG limit=4194304");
  CHECK(show(server, {"GET", "copy"}) == "a string");
  // Payloads of ended jobs do not count, logs of others do.
  show(server, {"Q.CANCEL", "q", "a"});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "1");
  show(server, {"Q.CONFIG", "q", "SET", "log_bytes", "1048576"});
  show(server, {"Q.POP", "1", "q"});
  show(server, {"Q.TOUCH", "q", "b", "1", "LOG", payload});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "-TOOBIG limit=4194304");
}

TEST_CASE("a queue with more than 4,000 rules is not copied") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  for (int i = 0; i < 4000; ++i) {
    show(server, {"Q.CONFIG", "q", "KEY", std::to_string(i), "SET", "max_active", "1"});
  }
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  show(server, {"Q.CONFIG", "q", "GROUP", "g", "SET", "max_active", "1"});
  CHECK(show(server, {"COPY", "q", "copy", "REPLACE"}) == "-TOOBIG limit=4000");
}

TEST_CASE("a copy wakes who waits at its name") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(2);
  show(server, {"Q.ADD", "q", "a", "1"});
  CHECK_FALSE(server.run(1, {"Q.POP", "1", "copy", "BLOCK", "0"}).has_value());
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  CHECK(server.take_deliveries().at(1).items.at(0).find("id")->text == "a");
  CHECK(field(server, "copy", "a", "state") == "active");
  CHECK(field(server, "q", "a", "state") == "pending");
}

TEST_CASE("timers, leases and who waits go on when databases change places") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(3);
  show(server, {"Q.ADD", "q", "late", "1", "DELAY", "500"});
  show(server, {"Q.ADD", "q", "held", "1", "LEASE", "1000"});
  show(server, {"Q.POP", "1", "q"});
  server.run(1, {"SELECT", "1"});
  CHECK_FALSE(server.run(1, {"Q.POP", "1", "q", "BLOCK", "0"}).has_value());
  CHECK(show(server, {"SWAPDB", "0", "1"}) == "OK");
  CHECK(show(server, {"Q.GET", "q", "late"}) == "null");
  CHECK(server.take_deliveries().empty());
  server.pass(600);
  CHECK(server.take_deliveries().at(1).items.at(0).find("id")->text == "late");
  server.pass(1000);
  server.run(2, {"SELECT", "1"});
  CHECK(server.run(2, {"Q.GET", "q", "held"})->find("state")->text == "pending");
  server.restart(1);
  CHECK(show(server, {"Q.GET", "q", "late"}) == "null");
  server.run(0, {"SELECT", "1"});
  CHECK(field(server, "q", "late", "state") == "active");
  CHECK(field(server, "q", "held", "state") == "pending");
}

TEST_CASE("leases of a queue run out under its new name, though nothing else touches it") {
  for (const bool moved : {false, true}) {
    INFO("MOVE: ", moved);
    QueueServer server;
    server.set_clock(1'700'000'000'000, 1000);
    server.connect(2);
    server.run(1, {"SELECT", moved ? "1" : "0"});
    show(server, {"Q.ADD", "q", "held", "1", "LEASE", "1000"});
    show(server, {"Q.POP", "1", "q"});
    if (moved) {
      CHECK(show(server, {"MOVE", "q", "1"}) == "1");
    } else {
      CHECK(show(server, {"RENAME", "q", "new"}) == "OK");
    }
    server.pass(1001);
    const RespValue jobs = *server.run(1, {"Q.POP", "1", moved ? "q" : "new"});
    REQUIRE(jobs.items.size() == 1);
    CHECK(jobs.items[0].find("attempt")->text == "2");
  }
}

TEST_CASE("a copied job has the rest of its time to live, and its log over a restart") {
  QueueServer server;
  server.set_clock(1'700'000'000'000, 1000);
  server.connect(1);
  for (const char* id : {"a", "b"}) show(server, {"Q.ADD", "q", id, "1", "TTL", "1000"});
  server.pass(400);
  show(server, {"Q.POP", "1", "q"});
  show(server, {"Q.TOUCH", "q", "a", "1", "LOG", "lines"});
  CHECK(show(server, {"COPY", "q", "copy"}) == "1");
  CHECK(field(server, "copy", "a", "ttl_left_ms") == "600");
  CHECK(field(server, "copy", "b", "ttl_left_ms") == "600");
  server.restart(1);
  CHECK(show(server, {"Q.LOG", "copy", "a"}).find("lines") != std::string::npos);
}

}  // namespace sluice::test
