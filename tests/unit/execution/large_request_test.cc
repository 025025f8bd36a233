// A command that changes data is refused before it runs if its arguments are larger than the
// journal takes, or what it would change.
#include <span>
#include <string>
#include <vector>

#include "tests/support/large_moves.h"
#include "tests/support/memory_journal.h"
#include "tests/support/script_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::LargeMoves;
using sluice::test::MemoryJournal;
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

TEST_CASE("the arguments of a transaction count together, also if each command is small") {
  Limited server;
  const std::string part(kLimit / 3, 'x');
  server.session.run({"MULTI"});
  CHECK(server.session.run({"SET", "a", part}) == "+QUEUED\r\n");
  CHECK(server.session.run({"SET", "b", part}) == "+QUEUED\r\n");
  const std::string reply = server.session.run({"SET", "c", part});
  CHECK(server.refuses(reply));
  CHECK(reply.find("with those before in the transaction") != reply.npos);
  CHECK(server.session.run({"EXEC"}).starts_with("-EXECABORT"));
  CHECK(server.session.run({"EXISTS", "a", "b", "c"}) == ":0\r\n");
  // The next transaction does not count these.
  server.session.run({"MULTI"});
  CHECK(server.session.run({"SET", "a", part}) == "+QUEUED\r\n");
  CHECK(server.session.run({"EXEC"}) == "*1\r\n+OK\r\n");
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

// The journal takes so many bytes at once. What "large" holds is more, what "fits" holds is less.
constexpr uint64_t kMost = 4000;

struct Changing : ScriptServer {
  Changing() {
    engine.attach_journal(&journal);
    for (int i = 0; i < 50; ++i) {
      const std::string element = std::to_string(100 + i) + std::string(97, 'x');
      const std::string score = std::to_string(i);
      run({"RPUSH", "list:large", element});
      run({"SADD", "set:large", element});
      run({"ZADD", "zset:large", score, element});
      run({"HSET", "hash:large", element, "v"});
      run({"XADD", "stream:large", "*", "f", element});
    }
    run({"SET", "string:large", std::string(5000, 'x')});
    run({"SET", "string:fits", std::string(3000, 'x')});
    run({"SADD", "set:fits", "100" + std::string(97, 'x')});
    engine.options().max_change_bytes.store(kMost);
  }
  ~Changing() { engine.attach_journal(nullptr); }
  std::string run(std::vector<std::string> words) {
    const std::vector<Bytes> args(words.begin(), words.end());
    return session.run(std::span(args));
  }
  // What DUMP replies.
  std::string dump(const std::string& key) {
    const std::string reply = run({"DUMP", key});
    const size_t begin = reply.find("\r\n") + 2;
    return reply.substr(begin, reply.size() - begin - 2);
  }
  bool refuses(std::vector<std::string> words) {
    const Lsn before = journal.last_lsn();
    const std::string reply = run(std::move(words));
    CHECK(journal.last_lsn() == before);
    return reply == kRefusal;
  }

  static constexpr Bytes kTypes[] = {"string", "list", "set", "zset", "hash", "stream"};
  const std::string kRefusal =
      "-ERR the change would have more than 4000 bytes in the journal, which takes no more at once "
      "(journal-log-bytes)\r\n";
  MemoryJournal journal;
};

TEST_CASE("a value that is larger than the journal takes is not copied, and replaces nothing") {
  Changing server;
  for (const Bytes type : Changing::kTypes) {
    INFO(type);
    const std::string large = std::string(type) + ":large";
    CHECK(server.refuses({"COPY", large, "new"}));
    CHECK(server.refuses({"COPY", large, "string:fits", "REPLACE"}));
  }
  CHECK(server.run({"EXISTS", "new"}) == ":0\r\n");
  CHECK(server.run({"STRLEN", "string:fits"}) == ":3000\r\n");
  CHECK(server.run({"COPY", "string:fits", "new"}) == ":1\r\n");
  server.engine.options().max_change_bytes.store(0);
  CHECK(server.run({"COPY", "hash:large", "new", "REPLACE"}) == ":1\r\n");
}

TEST_CASE("a result that is larger than the journal takes is not stored; a small one is") {
  Changing server;
  CHECK(server.refuses({"SUNIONSTORE", "string:fits", "set:large", "set:fits"}));
  CHECK(server.refuses({"ZUNIONSTORE", "string:fits", "1", "zset:large"}));
  CHECK(server.refuses({"ZRANGESTORE", "string:fits", "zset:large", "0", "-1"}));
  CHECK(server.refuses({"SORT", "set:large", "ALPHA", "STORE", "string:fits"}));
  CHECK(server.refuses({"BITOP", "NOT", "string:fits", "string:large"}));
  CHECK(server.run({"STRLEN", "string:fits"}) == ":3000\r\n");
  CHECK(server.run({"SINTERSTORE", "new", "set:large", "set:fits"}) == ":1\r\n");
  CHECK(server.run({"ZINTERSTORE", "new", "2", "zset:large", "set:fits"}) == ":1\r\n");
  CHECK(server.run({"ZRANGESTORE", "new", "zset:large", "0", "4"}) == ":5\r\n");
  CHECK(server.run({"SORT", "set:large", "ALPHA", "LIMIT", "0", "5", "STORE", "new"}) == ":5\r\n");
}

TEST_CASE("a value is renamed by its name alone, or refused where the journal needs the whole") {
  Changing server;
  const LargeMoves large;
  for (const Bytes type : Changing::kTypes) {
    INFO(type);
    const std::string from = std::string(type) + ":large";
    server.journal.take_moves(false);
    CHECK(server.refuses({"RENAME", from, "new"}));
    CHECK(server.refuses({"MOVE", from, "1"}));
    server.journal.take_moves(true);
    CHECK(server.run({"RENAME", from, "new"}) == "+OK\r\n");
  }
}

TEST_CASE("what is removed, restored or moved within a list at a word is limited, too") {
  Changing server;
  CHECK(server.refuses({"ZREMRANGEBYRANK", "zset:large", "0", "45"}));
  CHECK(server.refuses({"SPOP", "set:large", "45"}));
  CHECK(server.refuses({"LREM", "list:large", "1", "100" + std::string(97, 'x')}));
  CHECK(server.refuses({"LINSERT", "list:large", "AFTER", "100" + std::string(97, 'x'), "v"}));
  for (const char* command : {"ZPOPMIN", "ZPOPMAX"}) {
    CHECK(server.refuses({command, "zset:large", "45"}));
  }
  CHECK(server.refuses({"ZMPOP", "1", "zset:large", "MAX", "COUNT", "45"}));
  CHECK(server.refuses({"BZMPOP", "0", "1", "zset:large", "MIN", "COUNT", "45"}));
  CHECK(server.run({"ZPOPMAX", "zset:large", "1"}).starts_with("*2\r\n"));
  CHECK(server.run({"ZMPOP", "1", "zset:large", "MIN", "COUNT", "9"}).starts_with("*2\r\n"));
  CHECK(server.run({"ZREMRANGEBYRANK", "zset:large", "0", "9"}) == ":10\r\n");
  CHECK(server.run({"SPOP", "set:large", "10"}).starts_with("*10\r\n"));
  // What a payload holds counts, as it may be compressed.
  server.engine.options().max_change_bytes.store(0);
  const std::string payload = server.dump("string:large");
  server.engine.options().max_change_bytes.store(kMost);
  CHECK(server.refuses({"RESTORE", "restored", "0", payload}));
  CHECK(server.run({"EXISTS", "restored"}) == ":0\r\n");
}

TEST_CASE("a command of a script counts with what the script has changed before") {
  Changing server;
  const std::string script =
      "redis.call('SET', KEYS[1], '1') return redis.call('SET', KEYS[1], string.rep('x', 5000))";
  CHECK(server.session.eval(script, {"k"}).find("would have more than 4000") != std::string::npos);
  CHECK(server.run({"GET", "k"}) == "$1\r\n1\r\n");
}

TEST_CASE(
    "what a transaction has changed counts for its next command, others of the batch do not") {
  Changing server;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"MULTI"},
                                             {"COPY", "string:fits", "a"},
                                             {"COPY", "string:fits", "b"},
                                             {"APPEND", "a", "y"},
                                             {"EXEC"}}) {
    const std::string reply = server.run(words);
    if (words[0] != "EXEC") continue;
    CHECK(reply == "*3\r\n:1\r\n" + server.kRefusal + ":3001\r\n");
  }
  CHECK(server.run({"EXISTS", "b"}) == ":0\r\n");
  // In one lock hold, and one unit.
  const std::vector<Bytes> copy = {"COPY", "string:fits", "c"};
  const std::vector<Bytes> next = {"COPY", "string:fits", "d"};
  server.execution.set_hold_shards(true);
  const Lsn before = server.journal.last_lsn();
  CHECK(server.session.run_unfinished(copy) == ":1\r\n");
  CHECK(server.session.run_unfinished(next) == ":1\r\n");
  server.execution.finish();
  CHECK(server.journal.last_lsn() == before + 1);
}

TEST_CASE("a script that changes more than the journal takes is stopped by an error") {
  Changing server;
  const std::string fill =
      "for i = 1, 100 do redis.call('SET', KEYS[1] .. i, string.rep('x', 500)) end";
  const std::string reply = server.session.eval(fill, {"k"});
  CHECK(reply.find("would have more than 4000 bytes in the journal") != reply.npos);
  CHECK(server.run({"EXISTS", "k7", "k9"}) == ":1\r\n");
  // The unit has what it did until then, and the next one is as free.
  CHECK(server.journal.unit(server.journal.last_lsn()).records.size() < kMost + 1000);
  CHECK(server.session.eval("return redis.call('SET', KEYS[1], 'v')", {"k"}) == "+OK\r\n");
}

}  // namespace
