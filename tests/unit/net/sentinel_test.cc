// What clients of Redis Sentinel get, in the shapes of `redis-server --sentinel` 7.0.15.
#include <string>
#include <utility>
#include <vector>

#include "engine/access/acl.h"
#include "engine/access/acl_log.h"
#include "engine/commands/complete_engine.h"
#include "net/sentinel/sentinel_commands.h"
#include "tests/support/fake_group.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

struct Node {
  test::FakeGroup group;
  test::QuietServer port;
  CompleteEngine engine{port, 7};
  SentinelCommands commands{engine, group, {}};
  Client client;

  explicit Node(const std::string& name = "n1") : group(name) {
    client.user = engine.acl().user_at_connect();
  }

  std::string run(std::vector<Bytes> args) {
    ByteBuffer out;
    RespReply reply(out, client.protocol);
    commands.run(client, args, reply);
    return std::string(out.view());
  }
  void lead(const std::string& holder) {
    GroupView view = *group.view();
    view.holder = holder;
    group.set(view);
  }
};

// The bulks of a reply, without their lengths.
std::vector<std::string> words_of(const std::string& reply) {
  std::vector<std::string> words;
  for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
    const size_t line = reply.find("\r\n", at);
    const size_t size = std::stoul(reply.substr(at + 1, line - at - 1));
    words.push_back(reply.substr(line + 2, size));
    at = line + 2 + size;
  }
  return words;
}

std::string field(const std::string& reply, const std::string& name) {
  const std::vector<std::string> words = words_of(reply);
  for (size_t at = 0; at + 1 < words.size(); at += 2) {
    if (words[at] == name) return words[at + 1];
  }
  return "(none)";
}

TEST_CASE("the address of the primary, by the group's name") {
  Node node("n2");
  const std::string null = "*-1\r\n";
  CHECK_EQ(node.run({"SENTINEL", "get-master-addr-by-name", "mymaster"}),
           "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n");
  CHECK_EQ(node.run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "other"}), null);
  node.lead("");
  CHECK_EQ(node.run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}), null);
  node.lead("n3");
  CHECK_EQ(words_of(node.run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}))[0], "10.0.0.3");
  node.group.age_ms = kTrustedViewMs + 1;
  CHECK_EQ(node.run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}), null);
}

TEST_CASE("a group that is served by TLS only is named with that port") {
  Node node("n2");
  GroupView view = *node.group.view();
  view.members[0].port = 0;
  view.members[0].tls_port = 6380;
  node.group.set(view);
  CHECK_EQ(words_of(node.run({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}))[1], "6380");
}

TEST_CASE("MASTERS and MASTER have the fields that clients read, and say when nobody is known") {
  Node node;
  const std::string masters = node.run({"SENTINEL", "MASTERS"});
  CHECK_EQ(masters.substr(0, 4), "*1\r\n");
  const std::vector<std::string> names{"name",
                                       "ip",
                                       "port",
                                       "runid",
                                       "flags",
                                       "link-pending-commands",
                                       "link-refcount",
                                       "last-ping-sent",
                                       "last-ok-ping-reply",
                                       "last-ping-reply",
                                       "down-after-milliseconds",
                                       "info-refresh",
                                       "role-reported",
                                       "role-reported-time",
                                       "config-epoch",
                                       "num-slaves",
                                       "num-other-sentinels",
                                       "quorum",
                                       "failover-timeout",
                                       "parallel-syncs"};
  const std::vector<std::string> words = words_of(masters);
  REQUIRE_EQ(words.size(), 2 * names.size());
  for (size_t i = 0; i < names.size(); ++i) CHECK_EQ(words[2 * i], names[i]);
  CHECK_EQ(node.run({"SENTINEL", "MASTER", "mymaster"}), masters.substr(4));
  CHECK_EQ(field(masters, "flags"), "master");
  CHECK_EQ(field(masters, "ip"), "10.0.0.1");
  CHECK_EQ(field(masters, "num-slaves"), "2");
  CHECK_EQ(field(masters, "num-other-sentinels"), "2");
  node.group.age_ms = kTrustedViewMs + 1;
  CHECK_EQ(field(node.run({"SENTINEL", "MASTERS"}), "flags"), "s_down,o_down,master");
  node.group.age_ms = 0;
  node.lead("");
  CHECK_EQ(field(node.run({"SENTINEL", "MASTERS"}), "flags"), "s_down,o_down,master");
  CHECK_EQ(node.run({"SENTINEL", "MASTER", "x"}), "-ERR No such master with that name\r\n");
}

TEST_CASE("replicas and sentinels are the other nodes") {
  Node node;
  for (const Bytes word : {"REPLICAS", "slaves"}) {
    const std::string replicas = node.run({"SENTINEL", word, "mymaster"});
    CHECK_EQ(replicas.substr(0, 4), "*2\r\n");
    CHECK_EQ(field(replicas, "name"), "10.0.0.2:6379");
    CHECK_EQ(field(replicas, "flags"), "slave");
    CHECK_EQ(field(replicas, "slave-repl-offset"), "100");
    CHECK_EQ(field(replicas, "master-host"), "10.0.0.1");
  }
  node.commands.note(*node.group.view(), 0);
  const std::string sentinels = node.run({"SENTINEL", "SENTINELS", "mymaster"});
  CHECK_EQ(sentinels.substr(0, 4), "*2\r\n");
  CHECK_EQ(field(sentinels, "ip"), "10.0.0.2");
  CHECK_EQ(field(sentinels, "port"), "26379");
  CHECK_EQ(field(sentinels, "name"), std::string(40, '2'));
  CHECK_EQ(words_of(node.run({"SENTINEL", "MYID"}))[0], std::string(40, '1'));
  node.client.protocol = 3;
  CHECK_EQ(node.run({"SENTINEL", "REPLICAS", "mymaster"}).substr(0, 8), "*2\r\n%21\r");
}

TEST_CASE("a replica that is starting is shown as down, so that nobody reads there") {
  Node node;
  GroupView view = *node.group.view();
  view.members[1].starting = true;
  node.group.set(view);
  const std::string replicas = node.run({"SENTINEL", "REPLICAS", "mymaster"});
  CHECK_EQ(replicas.substr(0, 4), "*2\r\n");
  CHECK_EQ(field(replicas, "name"), "10.0.0.2:6379");
  CHECK_EQ(field(replicas, "flags"), "s_down,slave");
  CHECK_EQ(field(replicas, "master-link-status"), "err");
  const std::string other = replicas.substr(replicas.find("10.0.0.3:6379") - 16);
  CHECK_EQ(field(other, "flags"), "slave");
  CHECK_EQ(field(other, "master-link-status"), "ok");
}

TEST_CASE("SENTINELS names a node that has gone for a minute, and then no more") {
  Node node;
  GroupView view = *node.group.view();
  const auto named_at = [&](int64_t now_ms) {
    node.commands.note(view, now_ms);
    const std::string reply = node.run({"SENTINEL", "SENTINELS", "mymaster"});
    return field(reply, "ip") + ' ' + reply.substr(0, 2);
  };
  CHECK_EQ(named_at(1000), "10.0.0.2 *2");
  std::erase_if(view.members, [](const GroupMember& member) { return member.name == "n2"; });
  CHECK_EQ(named_at(61'000), "10.0.0.2 *2");
  CHECK_EQ(named_at(61'001), "10.0.0.3 *1");
  view.members.back().sentinel_port = 0;
  CHECK_EQ(named_at(61'002), "(none) *0");
}

TEST_CASE("the health of the view") {
  Node node;
  CHECK_EQ(node.run({"SENTINEL", "CKQUORUM", "mymaster"}),
           "+OK 3 usable Sentinels. Quorum and failover authorization can be reached\r\n");
  const std::vector<Bytes> down{"SENTINEL", "IS-MASTER-DOWN-BY-ADDR", "10.0.0.1", "6379", "0", "*"};
  CHECK_EQ(node.run(down), "*3\r\n:0\r\n$1\r\n*\r\n:0\r\n");
  CHECK(node.run({"INFO"}).find("\r\nmaster0:name=mymaster,status=ok,address=10.0.0.1:6379,"
                                "slaves=2,sentinels=3\r\n") != std::string::npos);
  node.group.age_ms = 2500;
  CHECK_EQ(node.run({"SENTINEL", "CKQUORUM", "mymaster"}),
           "-NOQUORUM etcd has not been heard of for 2500 ms\r\n");
  CHECK_EQ(node.run(down), "*3\r\n:1\r\n$1\r\n*\r\n:0\r\n");
  CHECK(node.run({"INFO"}).find("status=odown") != std::string::npos);
}

TEST_CASE("FAILOVER is for the primary, and for users who may") {
  Node node;
  CHECK_EQ(node.run({"SENTINEL", "FAILOVER", "mymaster"}), "+OK\r\n");
  CHECK_EQ(node.group.handed_over, " 10000");
  node.group.hand_over_status = invalid("the node \"n2\" is starting");
  CHECK_EQ(node.run({"SENTINEL", "FAILOVER", "mymaster"}),
           "-NOGOODSLAVE the node \"n2\" is starting\r\n");
  node.client.user = nullptr;
  CHECK_EQ(node.run({"SENTINEL", "FAILOVER", "mymaster"}), "-NOAUTH Authentication required.\r\n");
  const std::vector<Bytes> rules{"on", ">secret", "+@read"};
  REQUIRE(node.engine.acl().set_user("reader", rules).ok());
  CHECK_EQ(node.run({"AUTH", "reader", "x"}),
           "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  REQUIRE_EQ(node.engine.acl_log().newest(2).size(), 1);
  CHECK_EQ(node.engine.acl_log().newest(1)[0].username, "reader");
  CHECK_EQ(node.run({"AUTH", "reader", "secret"}), "+OK\r\n");
  CHECK_EQ(node.run({"SENTINEL", "FAILOVER", "mymaster"}).substr(0, 7), "-NOPERM");
  Node standby("n2");
  CHECK_EQ(standby.run({"SENTINEL", "FAILOVER", "mymaster"}),
           "-ERR only the primary hands over: ask its Sentinel, 10.0.0.1:26379\r\n");
}

TEST_CASE("connections: names, protocol, tables, unknown words") {
  Node node;
  CHECK_EQ(node.run({"PING"}), "+PONG\r\n");
  CHECK_EQ(node.run({"CLIENT", "SETNAME", "me"}), "+OK\r\n");
  for (const char* name : {"a b", "a\nb"}) {
    CHECK_EQ(node.run({"CLIENT", "SETNAME", name}).substr(0, 17), "-ERR Client names");
    CHECK_EQ(node.run({"HELLO", "2", "SETNAME", name}).substr(0, 17), "-ERR Client names");
  }
  CHECK_EQ(node.run({"CLIENT", "GETNAME"}), "$2\r\nme\r\n");
  CHECK_EQ(node.run({"CLIENT", "SETINFO", "LIB-NAME", "x"}), "+OK\r\n");
  CHECK_EQ(node.run({"COMMAND"}), "*0\r\n");
  CHECK_EQ(node.run({"ROLE"}), "*2\r\n$8\r\nsentinel\r\n*1\r\n$8\r\nmymaster\r\n");
  CHECK_EQ(node.run({"HELLO", "3"}).substr(0, 4), "%6\r\n");
  CHECK_EQ(node.client.protocol, 3);
  CHECK_EQ(node.run({"HELLO", "4"}), "-NOPROTO unsupported protocol version\r\n");
  CHECK_EQ(node.run({"GET", "a"}).substr(0, 26), "-ERR unknown command 'GET'");
  CHECK_EQ(node.run({"SENTINEL", "x"}).substr(0, 27), "-ERR unknown subcommand 'x'");
  CHECK_EQ(node.run({"SENTINEL", "MASTER"}),
           "-ERR wrong number of arguments for 'sentinel|master' command\r\n");
  CHECK_EQ(node.run({"QUIT"}), "+OK\r\n");
  CHECK(node.client.close_after_reply);
}

TEST_CASE("subscribers get the switch of the primary, by name and by pattern") {
  Node node;
  CHECK_EQ(node.run({"SUBSCRIBE", "+switch-master", "+sdown"}),
           "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
           "*3\r\n$9\r\nsubscribe\r\n$6\r\n+sdown\r\n:2\r\n");
  node.run({"PSUBSCRIBE", "*"});
  CHECK_EQ(node.run({"PING"}), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  CHECK_EQ(node.run({"SENTINEL", "MASTERS"}).substr(0, 30), "-ERR Can't execute 'sentinel':");
  CHECK_EQ(node.run({"HELLO", "3"}).substr(0, 27), "-ERR Can't execute 'hello':");
  ByteBuffer out;
  RespReply reply(out, 2);
  SentinelCommands::publish(node.client, "+switch-master", "text", reply);
  CHECK_EQ(out.view(),
           "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$4\r\ntext\r\n"
           "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$14\r\n+switch-master\r\n$4\r\ntext\r\n");
  CHECK_EQ(node.run({"PUNSUBSCRIBE"}), "*3\r\n$12\r\npunsubscribe\r\n$1\r\n*\r\n:2\r\n");
  CHECK_EQ(node.run({"PUNSUBSCRIBE"}), "*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:2\r\n");
  node.run({"UNSUBSCRIBE", "+sdown"});
  CHECK_EQ(node.client.subscriptions(), 1);
}

TEST_CASE("a connection has a hundred subscriptions at most") {
  Node node;
  for (int i = 0; i < 50; ++i) {
    node.run({"SUBSCRIBE", std::to_string(i)});
    node.run({"PSUBSCRIBE", std::to_string(i)});
  }
  CHECK_EQ(node.client.subscriptions(), 100);
  CHECK(!node.client.close_after_reply);
  CHECK_EQ(node.run({"SUBSCRIBE", "x"}).substr(0, 16), "-ERR at most 100");
  CHECK_EQ(node.client.subscriptions(), 100);
  CHECK(node.client.close_after_reply);
}

TEST_CASE("a switch is told once, when the new primary's address is known") {
  SentinelWatch watch("mymaster");
  Node node;
  CHECK_EQ(watch.note(*node.group.view()), "");
  CHECK_EQ(watch.note(*node.group.view()), "");
  node.lead("");
  CHECK_EQ(watch.note(*node.group.view()), "");
  node.lead("n9");  // its record has not come
  CHECK_EQ(watch.note(*node.group.view()), "");
  node.lead("n2");
  CHECK_EQ(watch.note(*node.group.view()), "mymaster 10.0.0.1 6379 10.0.0.2 6379");
  CHECK_EQ(watch.note(*node.group.view()), "");
}

}  // namespace
}  // namespace sluice
