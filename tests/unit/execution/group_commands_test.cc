// What the nodes of a group answer to ROLE, HELLO, WAIT, WAITAOF, FAILOVER and REPLICAOF. The texts
// are those of redis-server 7.0.15 (of WAITAOF: 7.2) where it has such a case.
#include <memory>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/keyspace/waiter.h"
#include "engine/ports/persistence_port.h"
#include "tests/support/engine_session.h"
#include "tests/support/fake_group.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using sluice::test::EngineSession;
using sluice::test::FakeGroup;

// A journal that is durable as far as the test says.
class SlowJournal final : public Journal {
 public:
  Lsn append(Bytes, uint32_t, int64_t, bool, ByteBuffer*) override { return ++last_; }
  Lsn last_lsn() const override { return last_; }
  Lsn durable_lsn() const override { return durable; }
  Lsn durable = 0;

 private:
  Lsn last_ = 100;  // as FakeGroup's members
};

class Inbox final : public ClientPort {
 public:
  void deliver(ByteBuffer, Lsn) override {}
  void deliver_blocked_reply(ByteBuffer bytes, Lsn at) override {
    reply += bytes.view();
    gate = at;
  }
  std::string reply;
  Lsn gate = 0;
};

struct Node {
  FakeGroup group;
  test::QuietServer port;
  SlowJournal journal;
  CompleteEngine engine{port, 7};
  Execution execution{engine};
  EngineSession session{engine, execution};
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

  explicit Node(const std::string& name) : group(name) {
    port.in_group = &group;
    engine.attach_journal(&journal);
    session.client.port = inbox;
  }
  std::string run(std::initializer_list<Bytes> args) { return session.run(args); }
  // The time of the waiting command is over.
  std::string time_out() {
    const std::shared_ptr<Waiter> waiter = session.client.waiter;
    REQUIRE(waiter != nullptr);
    ByteBuffer bytes;
    RespReply reply(bytes, 2);
    REQUIRE(engine.cancel_waiter(session.client));
    waiter->reply_timeout(reply);
    session.client.waiter = nullptr;
    return std::string(bytes.view());
  }
};

const std::string kAlone = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";

TEST_CASE("ROLE and HELLO name the role, its primary and its standbys") {
  Node primary("n1");
  CHECK_EQ(primary.run({"ROLE"}),
           "*3\r\n$6\r\nmaster\r\n:100\r\n*2\r\n"
           "*3\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n$3\r\n100\r\n"
           "*3\r\n$8\r\n10.0.0.3\r\n$4\r\n6379\r\n$3\r\n100\r\n");
  CHECK(primary.run({"HELLO"}).find("role\r\n$6\r\nmaster\r\n") != std::string::npos);
  GroupView starting = *primary.group.view();
  starting.members[1].starting = true;
  primary.group.set(starting);
  CHECK_EQ(primary.run({"ROLE"}),
           "*3\r\n$6\r\nmaster\r\n:100\r\n*1\r\n"
           "*3\r\n$8\r\n10.0.0.3\r\n$4\r\n6379\r\n$3\r\n100\r\n");
  CHECK_EQ(primary.run({"WAIT", "0", "0"}), ":1\r\n");
  Node standby("n2");
  CHECK_EQ(standby.run({"ROLE"}),
           "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:100\r\n");
  CHECK(standby.run({"HELLO"}).find("role\r\n$7\r\nreplica\r\n") != std::string::npos);
  GroupView view = *standby.group.view();
  view.holder.clear();
  standby.group.set(view);
  CHECK_EQ(standby.run({"ROLE"}), "*5\r\n$5\r\nslave\r\n$0\r\n\r\n:0\r\n$7\r\nconnect\r\n:100\r\n");
  standby.port.in_group = nullptr;
  CHECK_EQ(standby.run({"ROLE"}), kAlone);
}

TEST_CASE("ROLE names the port with TLS of nodes that have no other") {
  for (const char* name : {"n1", "n2"}) {
    Node node(name);
    GroupView view = *node.group.view();
    for (GroupMember& member : view.members) {
      member.port = 0;
      member.tls_port = 6380;
    }
    node.group.set(view);
    const std::string role = node.run({"ROLE"});
    CHECK(role.find(view.leads() ? "$4\r\n6380\r\n" : ":6380\r\n") != std::string::npos);
  }
}

TEST_CASE("a standby is connected as long as it hears of etcd, and of a primary by it") {
  Node node("n2");
  node.group.age_ms = kTrustedViewMs;
  CHECK(node.run({"ROLE"}).find("$9\r\nconnected\r\n") != std::string::npos);
  node.group.age_ms = kTrustedViewMs + 1;
  CHECK(node.run({"ROLE"}).find("$7\r\nconnect\r\n") != std::string::npos);
}

TEST_CASE("WAIT ends when enough standbys have applied what was written before it") {
  Node node("n1");
  CHECK_EQ(node.run({"WAIT", "2", "0"}), ":2\r\n");
  node.run({"SET", "a", "1"});  // lsn 101
  CHECK_EQ(node.run({"WAIT", "0", "0"}), ":0\r\n");
  CHECK_EQ(node.run({"WAIT", "1", "5000"}), "");
  node.group.apply(1, 100);
  CHECK_EQ(node.inbox->reply, "");
  CHECK_EQ(node.group.followers(), 1);
  node.group.apply(2, 101);
  CHECK_EQ(node.inbox->reply, ":1\r\n");
  CHECK_EQ(node.group.followers(), 0);
  node.session.client.waiter = nullptr;
  // After the time it tells how many there are, and follows no longer.
  CHECK_EQ(node.run({"WAIT", "2", "10"}), "");
  CHECK_EQ(node.time_out(), ":1\r\n");
  node.group.apply(1, 101);
  CHECK_EQ(node.group.followers(), 0);
  CHECK_EQ(node.inbox->reply, ":1\r\n");
  node.run({"MULTI"});
  node.run({"WAIT", "9", "0"});
  CHECK_EQ(node.run({"EXEC"}), "*1\r\n:2\r\n");
}

TEST_CASE("WAIT and WAITAOF wait for what their own batch has written") {
  Node node("n1");
  const std::vector<Bytes> set{"SET", "a", "1"};
  node.session.run_unfinished(set);  // lsn 101
  CHECK_EQ(node.run({"WAIT", "1", "0"}), "");
  node.group.apply(1, 101);
  CHECK_EQ(node.inbox->reply, ":1\r\n");
  node.session.client.waiter = nullptr;
  node.inbox->reply.clear();
  node.session.run_unfinished(set);  // lsn 102
  CHECK_EQ(node.run({"WAITAOF", "1", "0", "0"}), "");
  CHECK_EQ(node.inbox->gate, 102);
}

// A disk that has nothing of the journal, and notes how much it is asked to keep.
class SlowDisk final : public PersistencePort {
 public:
  explicit SlowDisk(const Journal& journal) : journal_(journal) {}
  Start start_checkpoint(Kind, bool) override { return Start::kNowhere; }
  bool when_kept(std::function<void(const Status&)>) override { return false; }
  bool is_journaling() const override { return true; }
  bool is_synced() const override { return false; }
  void when_synced(std::function<void(bool)>) override { asked = journal_.last_lsn(); }
  Lsn asked = 0;

 private:
  const Journal& journal_;
};

TEST_CASE("without a group WAITAOF has the disk keep what its own batch has written") {
  Node node("n1");
  SlowDisk disk(node.journal);
  node.port.in_group = nullptr;
  node.port.on_disk = &disk;
  const std::vector<Bytes> set{"SET", "a", "1"};
  node.session.run_unfinished(set);
  CHECK_EQ(node.run({"WAITAOF", "1", "0", "0"}), "");
  CHECK_EQ(disk.asked, 101);
  CHECK_EQ(node.time_out(), "*2\r\n:0\r\n:0\r\n");
}

TEST_CASE("WAITAOF waits for the replicated log, and for standbys") {
  Node node("n1");
  node.run({"SET", "a", "1"});
  // The reply leaves with the log.
  CHECK_EQ(node.run({"WAITAOF", "1", "0", "0"}), "");
  CHECK_EQ(node.inbox->reply, "*2\r\n:1\r\n:0\r\n");
  CHECK_EQ(node.inbox->gate, 101);
  node.session.client.waiter = nullptr;
  CHECK_EQ(node.run({"WAITAOF", "1", "1", "10"}), "");
  CHECK_EQ(node.time_out(), "*2\r\n:0\r\n:0\r\n");
  node.journal.durable = 101;
  node.group.apply(1, 101);
  CHECK_EQ(node.run({"WAITAOF", "1", "1", "0"}), "*2\r\n:1\r\n:1\r\n");
}

TEST_CASE("a standby refuses to wait for replicas, in Redis's words") {
  Node node("n2");
  CHECK_EQ(node.run({"WAIT", "x", "y"}),
           "-ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 "
           "if a replica is configured to be writable (which is not the default) writes to "
           "replicas are just local and are not propagated.\r\n");
  CHECK_EQ(node.run({"WAITAOF", "0", "0", "0"}),
           "-ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
           "replicas are just local and are not propagated.\r\n");
}

TEST_CASE("FAILOVER hands over, to a standby if one is named") {
  Node node("n1");
  CHECK_EQ(node.run({"FAILOVER"}), "+OK\r\n");
  CHECK_EQ(node.group.handed_over, " 0");
  CHECK_EQ(node.run({"FAILOVER", "TO", "10.0.0.3", "6379", "FORCE", "TIMEOUT", "500"}), "+OK\r\n");
  CHECK_EQ(node.group.handed_over, "n3 500");
  node.group.hand_over_status = invalid("no other node lives");
  CHECK_EQ(node.run({"FAILOVER"}), "-ERR no other node lives\r\n");
  node.group.abort_status = {};
  CHECK_EQ(node.run({"FAILOVER", "ABORT"}), "+OK\r\n");
}

TEST_CASE("FAILOVER answers when a standby that is far behind has come near, or is refused") {
  for (const bool comes : {true, false}) {
    Node node("n1");
    node.group.hand_over_status = {StatusCode::kStale, "n3 lacks 5 units"};
    CHECK_EQ(node.run({"FAILOVER", "TO", "10.0.0.3", "6379", "TIMEOUT", "500"}), "");
    CHECK_EQ(node.group.waited_for, "n3 500");
    CHECK_EQ(node.inbox->reply, "");
    node.group.when_near(comes ? Status() : invalid("n3 lacks 4 units"));
    CHECK_EQ(node.inbox->reply, comes ? "+OK\r\n" : "-ERR n3 lacks 4 units\r\n");
    node.session.client.waiter = nullptr;
  }
  Node node("n1");
  node.group.hand_over_status = {StatusCode::kStale, "n3 lacks 5 units"};
  CHECK_EQ(node.run({"FAILOVER"}), "");
  // CLIENT UNBLOCK, or the client has gone.
  CHECK_EQ(node.time_out(), "-ERR the hand-over waits still: FAILOVER ABORT ends it\r\n");
  node.group.when_near({});
  CHECK_EQ(node.inbox->reply, "");
  node.group.wait_status = invalid("FAILOVER already in progress.");
  CHECK_EQ(node.run({"FAILOVER"}), "");
  CHECK_EQ(node.inbox->reply, "-ERR FAILOVER already in progress.\r\n");
  node.session.client.waiter = nullptr;
  // A transaction waits for nothing.
  node.group.waited_for.clear();
  node.run({"MULTI"});
  node.run({"FAILOVER"});
  CHECK_EQ(node.run({"EXEC"}), "*1\r\n-ERR n3 lacks 5 units\r\n");
  CHECK_EQ(node.group.waited_for, "");
}

TEST_CASE("FAILOVER gives the group away with what its own batch has written") {
  Node node("n1");
  Lsn written = 0;
  node.group.at_hand_over = [&] { written = node.journal.last_lsn(); };
  const std::vector<Bytes> set{"SET", "a", "1"};
  node.session.run_unfinished(set);
  CHECK_EQ(node.run({"FAILOVER"}), "+OK\r\n");
  CHECK_EQ(written, 101);
}

TEST_CASE("FAILOVER PAUSE and RESUME work at every node of a group") {
  for (const char* name : {"n1", "n2"}) {
    Node node(name);
    CHECK_EQ(node.run({"FAILOVER", "PAUSE", "86400000"}), "+OK\r\n");
    CHECK_EQ(node.group.paused_for_ms, 86'400'000);
    CHECK_EQ(node.run({"FAILOVER", "resume"}), "+OK\r\n");
    CHECK_EQ(node.group.paused_for_ms, 0);
  }
  Node node("n1");
  for (const char* wrong : {"0", "86400001"}) {
    CHECK_EQ(node.run({"FAILOVER", "PAUSE", wrong}),
             "-ERR FAILOVER PAUSE takes 1 to 86400000 milliseconds\r\n");
  }
  CHECK_EQ(node.run({"FAILOVER", "PAUSE"}), "-ERR syntax error\r\n");
  CHECK_EQ(node.run({"FAILOVER", "RESUME", "1"}), "-ERR syntax error\r\n");
  CHECK_EQ(node.group.paused_for_ms, -1);
  node.port.in_group = nullptr;
  CHECK_EQ(node.run({"FAILOVER", "PAUSE", "1"}), "-ERR this server has no group\r\n");
}

TEST_CASE("FAILOVER refuses as Redis does") {
  const std::string not_one = "-ERR FAILOVER target HOST and PORT is not a replica.\r\n";
  const std::string standby = "-ERR FAILOVER is not valid when server is a replica.\r\n";
  const std::string none = "-ERR No failover in progress.\r\n";
  const std::string number = "-ERR value is not an integer or out of range\r\n";
  const std::string syntax = "-ERR syntax error\r\n";
  // The command, and the replies of a primary and of a standby.
  const std::vector<std::tuple<std::vector<Bytes>, std::string, std::string>> cases = {
      {{"TO", "10.0.0.3", "1"}, not_one, standby},
      {{"TO", "10.0.0.1", "6379"}, not_one, standby},
      {{"ABORT"}, none, none},
      {{"TIMEOUT", "0"},
       "-ERR FAILOVER timeout must be greater than 0\r\n",
       "-ERR FAILOVER timeout must be greater than 0\r\n"},
      {{"TIMEOUT", "x"}, number, number},
      {{"TO", "10.0.0.3", "x"}, number, number},
      {{"FORCE"},
       "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.\r\n",
       standby},
      {{"x"}, syntax, syntax},
      {{"ABORT", "TIMEOUT", "1"}, syntax, syntax},
      {{"TO", "10.0.0.3"}, syntax, syntax},
  };
  Node primary("n1");
  Node replica("n2");
  for (const auto& [words, from_primary, from_standby] : cases) {
    std::vector<Bytes> args{"FAILOVER"};
    args.insert(args.end(), words.begin(), words.end());
    CHECK_EQ(primary.session.run(args), from_primary);
    CHECK_EQ(replica.session.run(args), from_standby);
  }
  CHECK_EQ(primary.group.handed_over, "");
  GroupView view = *primary.group.view();
  view.role = GroupRole::kResigning;
  primary.group.set(view);
  CHECK_EQ(primary.run({"FAILOVER"}), "-ERR FAILOVER already in progress.\r\n");
  view.role = GroupRole::kPrimary;
  view.members.resize(1);
  primary.group.set(view);
  CHECK_EQ(primary.run({"FAILOVER"}), "-ERR FAILOVER requires connected replicas.\r\n");
  primary.port.in_group = nullptr;
  CHECK_EQ(primary.run({"FAILOVER"}), "-ERR FAILOVER requires connected replicas.\r\n");
  CHECK_EQ(primary.run({"FAILOVER", "ABORT"}), none);
}

TEST_CASE("a node follows the journal and no host") {
  Node node("n1");
  const std::string refusal =
      "-ERR the journal in etcd decides which node of the group is the primary. Use FAILOVER at "
      "the primary\r\n";
  CHECK_EQ(node.run({"REPLICAOF", "NO", "ONE"}), "+OK\r\n");
  CHECK_EQ(node.run({"REPLICAOF", "10.0.0.9", "6379"}), refusal);
  CHECK_EQ(node.run({"REPLICAOF", "10.0.0.9", "x"}), "-ERR Invalid master port\r\n");
  Node standby("n2");
  CHECK_EQ(standby.run({"REPLICAOF", "NO", "ONE"}), refusal);
  node.engine.options().debug_access = DebugAccess::kEverybody;
  CHECK_EQ(node.run({"DEBUG", "RELOAD"}),
           "-ERR DEBUG RELOAD and LOADAOF are refused in a group: restart the node instead\r\n");
  node.port.in_group = nullptr;
  CHECK_EQ(node.run({"REPLICAOF", "10.0.0.9", "6379"}),
           "-ERR this server cannot be a replica of another one\r\n");
}

}  // namespace
