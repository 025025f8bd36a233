// A command that changes data is refused before it runs if its arguments are larger than the
// journal takes.
#include <string>

#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::ScriptServer;

constexpr uint64_t kLimit = 1000;
// "SET", "k" and so many bytes are exactly the limit.
constexpr size_t kFits = kLimit - 4;

struct Limited : ScriptServer {
  Limited() { engine.options().max_request_bytes.store(kLimit); }
  bool refuses(const std::string& reply) {
    const bool refused = reply.starts_with("-ERR the arguments have ");
    if (refused) CHECK(reply.find("at most 1000, a quarter of journal-log-bytes") != reply.npos);
    return refused;
  }
};

TEST_CASE(
    "arguments up to the limit are taken, one byte more is refused, and nothing has changed") {
  Limited server;
  CHECK(server.session.run({"SET", "k", std::string(kFits, 'x')}) == "+OK\r\n");
  const std::string reply = server.session.run({"SET", "k", std::string(kFits + 1, 'y')});
  CHECK(server.refuses(reply));
  CHECK(reply.find("have 1001 bytes") != reply.npos);
  CHECK(server.session.run({"GETRANGE", "k", "0", "0"}) == "$1\r\nx\r\n");
  // The arguments count together, also of what makes the data smaller.
  CHECK(server.refuses(server.session.run({"DEL", std::string(500, 'a'), std::string(500, 'b')})));
  server.engine.options().max_request_bytes.store(0);
  CHECK(server.session.run({"SET", "k", std::string(kFits + 1, 'y')}) == "+OK\r\n");
}

TEST_CASE("reads may be as large as they like") {
  Limited server;
  CHECK(server.session.run({"GET", std::string(5000, 'k')}) == "$-1\r\n");
  CHECK(server.session.run({"ECHO", std::string(5000, 'k')}).size() > 5000);
}

TEST_CASE("a transaction with such a command is discarded") {
  Limited server;
  server.session.run({"MULTI"});
  server.session.run({"SET", "a", "1"});
  CHECK(server.refuses(server.session.run({"SET", "k", std::string(kFits + 1, 'y')})));
  CHECK(server.session.run({"EXEC"}).starts_with("-EXECABORT"));
  CHECK(server.session.run({"EXISTS", "a"}) == ":0\r\n");
}

TEST_CASE("a script is refused for its arguments, and for those of its first write") {
  Limited server;
  const std::string write = "return redis.call('SET', KEYS[1], ARGV[1])";
  CHECK(server.refuses(server.session.eval(write, {"k"}, {std::string(kLimit, 'x')})));
  const std::string reply =
      server.session.eval("return redis.call('SET', KEYS[1], string.rep('x', 2000))", {"k"});
  CHECK(reply.find("a quarter of journal-log-bytes") != reply.npos);
  CHECK(server.session.run({"EXISTS", "k"}) == ":0\r\n");
  CHECK(server.session.eval(write, {"k"}, {"x"}) == "+OK\r\n");
}

}  // namespace
