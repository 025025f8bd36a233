// What is refused while the replicated log is nearly full, and what still works.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_group.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::FakeGroup;
using sluice::test::ScriptServer;

struct Filling : ScriptServer {
  Filling() {
    GroupView view = *group.view();
    view.log_limit_bytes = 1000;
    group.set(std::move(view));
    port.in_group = &group;
    CHECK(run({"RPUSH", "list", "a", "b", "c"}) == ":3\r\n");
    CHECK(run({"SET", "k", "v"}) == "+OK\r\n");
  }
  void set_room(LogRoom room) {
    GroupView view = *group.view();
    view.log_room = room;
    view.log_kept_by = "the server \"n2\" has no checkpoint yet";
    group.set(std::move(view));
    engine.options().log_room.store(room);
  }
  std::string run(const std::vector<Bytes>& words) { return session.run(std::span(words)); }
  bool refuses(const std::vector<Bytes>& words, const std::string& percent = "75") {
    const std::string reply = run(words);
    return reply.find("MISCONF The journal in etcd holds more than " + percent +
                      " % of journal-log-bytes (1000): ") != std::string::npos &&
           reply.find("What keeps it: the server \"n2\" has no checkpoint yet. ") !=
               std::string::npos;
  }

  FakeGroup group;
};

const Bytes kPush = "return redis.call('RPUSH', KEYS[1], 'x')";
const Bytes kPop = "return redis.call('LPOP', KEYS[1])";
const Bytes kPushAnyway = "#!lua flags=allow-oom\nreturn redis.call('RPUSH', KEYS[1], 'x')";

TEST_CASE("three quarters full: what grows is refused, also in transactions and scripts") {
  Filling server;
  server.run({"MULTI"});
  server.run({"SET", "k", "w"});
  server.set_room(LogRoom::kNoGrowth);
  CHECK(server.refuses({"EXEC"}));
  CHECK(server.refuses({"SET", "k", "w"}));
  CHECK(server.refuses({"RENAME", "k", "l"}));
  CHECK(server.refuses({"Q.ADD", "q", "j", "payload"}));
  CHECK(server.refuses({"EVAL", kPush, "1", "list"}));
  CHECK(server.run({"GET", "k"}) == "$1\r\nv\r\n");
  CHECK(server.run({"LPOP", "list"}) == "$1\r\na\r\n");
  CHECK(server.run({"EVAL", kPop, "1", "list"}) == "$1\r\nb\r\n");
  CHECK(server.run({"EVAL", kPushAnyway, "1", "list"}) == ":2\r\n");
  CHECK(server.run({"DEL", "k"}) == ":1\r\n");
  server.set_room(LogRoom::kAll);
  CHECK(server.run({"SET", "k", "w"}) == "+OK\r\n");
}

TEST_CASE("nearly full: every change is refused, and nothing else") {
  Filling server;
  server.run({"MULTI"});
  server.run({"DEL", "k"});
  server.set_room(LogRoom::kNothing);
  CHECK(server.refuses({"EXEC"}, "95"));
  CHECK(server.refuses({"SET", "k", "w"}, "95"));
  CHECK(server.refuses({"DEL", "k"}, "95"));
  CHECK(server.refuses({"LPOP", "list"}, "95"));
  CHECK(server.refuses({"EVAL", kPop, "1", "list"}, "95"));
  CHECK(server.refuses({"EVAL", kPushAnyway, "1", "list"}, "95"));
  CHECK(server.run({"GET", "k"}) == "$1\r\nv\r\n");
  CHECK(server.run({"EVAL", "return redis.call('LLEN', KEYS[1])", "1", "list"}) == ":3\r\n");
  server.set_room(LogRoom::kAll);
  CHECK(server.run({"DEL", "k"}) == ":1\r\n");
}

}  // namespace
