// The section `replication` of INFO, in the fields and the order of redis-server 7.0.15.
#include "net/server/info_replication.h"

#include <string>

#include "tests/support/fake_group.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

std::string written(const test::FakeGroup* group, int64_t age_ms = 0) {
  ReplicationFacts facts{.run_id = std::string(40, 'a')};
  if (group != nullptr) facts.view = group->view();
  facts.view_age_ms = age_ms;
  facts.lease_ms = group == nullptr ? 0 : group->lease_ms();
  InfoWriter out;
  write_replication(facts, out);
  return out.take();
}

const std::string kBacklog =
    "second_repl_offset:-1\r\nrepl_backlog_active:0\r\nrepl_backlog_size:1048576\r\n"
    "repl_backlog_first_byte_offset:0\r\nrepl_backlog_histlen:0\r\n";
const std::string kNoFailover = "master_failover_state:no-failover\r\n";

std::string replid(char digit) {
  return "master_replid:" + std::string(40, digit) + "\r\nmaster_replid2:" + std::string(40, '0') +
         "\r\n";
}

std::string member_line(char digit, int primary, int lsn, int checkpoint = 0) {
  const std::string number = std::to_string(digit - '1');
  return "sluice_group_member" + number + ":name=n" + digit + ",run_id=" + std::string(40, digit) +
         ",host=10.0.0." + digit + ",primary=" + std::to_string(primary) +
         ",starting=0,port=6379,tls_port=0,http_port=8379,sentinel_port=26379,priority=100,lsn=" +
         std::to_string(lsn) + ",checkpoint_lsn=" + std::to_string(checkpoint) +
         ",checkpoint_bytes=0,version=,config_differs=0,users_differ=0\r\n";
}

TEST_CASE("a server without a group is a master without slaves") {
  CHECK_EQ(written(nullptr), "role:master\r\nconnected_slaves:0\r\n" + kNoFailover + replid('a') +
                                 "master_repl_offset:0\r\n" + kBacklog);
}

TEST_CASE("a primary lists its standbys, and says how the journal is") {
  test::FakeGroup group;
  group.apply(2, 90);
  GroupView view = *group.view();
  view.log_bytes = 5;
  view.log_limit_bytes = 1000;
  view.etcd_bytes = 12;
  view.etcd_quota_bytes = 2000;
  view.trim_lsn = 1;
  view.members[0].checkpoint_lsn = 1;
  group.set(view);
  CHECK_EQ(written(&group),
           "role:master\r\nconnected_slaves:2\r\n"
           "slave0:ip=10.0.0.2,port=6379,state=online,offset=100,lag=0\r\n"
           "slave1:ip=10.0.0.3,port=6379,state=online,offset=90,lag=0\r\n" +
               kNoFailover + replid('1') + "master_repl_offset:100\r\n" + kBacklog +
               "sluice_journal_kind:etcd\r\nsluice_group_cluster:main\r\nsluice_group_group:1\r\n"
               "sluice_group_node:n1\r\nsluice_group_role:primary\r\nsluice_group_epoch:7\r\n"
               "sluice_group_primary:n1\r\nsluice_group_seq:0\r\nsluice_group_lsn:100\r\n"
               "sluice_group_lag_ms:0\r\nsluice_group_age_ms:0\r\nsluice_group_lease_ms:900\r\n"
               "sluice_group_log_frames:0\r\nsluice_group_log_bytes:5\r\n"
               "sluice_group_log_limit_bytes:1000\r\nsluice_group_log_kept_by:\r\n"
               "sluice_group_etcd_bytes:12\r\nsluice_group_etcd_quota_bytes:2000\r\n"
               "sluice_group_copies:1\r\n"
               "sluice_group_paused_ms:0\r\nsluice_group_takeovers:0\r\nsluice_group_last_takeover_"
               "ms:0\r\nsluice_group_waits_"
               "for:\r\n" +
               member_line('1', 1, 100, 1) + member_line('2', 0, 100) + member_line('3', 0, 90));
}

TEST_CASE("a standby that is starting is none that a primary can hand over to") {
  test::FakeGroup group;
  GroupView view = *group.view();
  view.members[2].starting = true;
  view.awaits_standby = true;
  group.set(view);
  const std::string text = written(&group);
  CHECK(text.find("connected_slaves:2\r\n"
                  "slave0:ip=10.0.0.2,port=6379,state=online,offset=100,lag=0\r\n"
                  "slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=100,lag=0\r\n"
                  "master_failover_state:waiting-for-sync\r\n") != std::string::npos);
  CHECK(text.find(",primary=0,starting=1,port=") != std::string::npos);
}

TEST_CASE("a standby names its primary, and whether it hears of it") {
  test::FakeGroup group("n2");
  const std::string up = written(&group);
  CHECK_EQ(up.find("role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n"
                   "master_link_status:up\r\nmaster_last_io_seconds_ago:0\r\n"
                   "master_sync_in_progress:0\r\nslave_read_repl_offset:100\r\n"
                   "slave_repl_offset:100\r\nslave_priority:100\r\nslave_read_only:1\r\n"
                   "replica_announced:1\r\nconnected_slaves:0\r\n" +
                   kNoFailover + replid('1')),
           0);
  CHECK(up.find("link_down") == std::string::npos);
  GroupView view = *group.view();
  view.unlinked_ms = 100;
  group.set(view);
  const std::string down = written(&group, kTrustedViewMs + 1);
  CHECK(down.find("master_link_status:down\r\nmaster_last_io_seconds_ago:-1\r\n") !=
        std::string::npos);
  CHECK(down.find("slave_repl_offset:100\r\nmaster_link_down_since_seconds:2\r\n") !=
        std::string::npos);
}

TEST_CASE("how long a standby has not heard of a primary, while it hears of etcd") {
  for (const bool holds : {true, false}) {
    test::FakeGroup group("n2");
    GroupView view = *group.view();
    // Its record has gone, or it has given its group away.
    holds ? static_cast<void>(view.members.erase(view.members.begin())) : view.holder.clear();
    view.unlinked_ms = 7500;
    group.set(view);
    const std::string text = written(&group);
    CHECK(text.find("master_link_status:down\r\n") != std::string::npos);
    CHECK(text.find("master_link_down_since_seconds:7\r\n") != std::string::npos);
  }
}

TEST_CASE("nodes that are served by TLS only are named with that port") {
  for (const char* node : {"n1", "n2"}) {
    test::FakeGroup group(node);
    GroupView view = *group.view();
    for (GroupMember& member : view.members) {
      member.port = 0;
      member.tls_port = 6380;
    }
    group.set(view);
    const std::string text = written(&group);
    const char* const wanted =
        view.leads() ? "slave1:ip=10.0.0.3,port=6380,state=online" : "master_port:6380\r\n";
    CHECK(text.find(wanted) != std::string::npos);
  }
}

TEST_CASE("a node that loads is a slave that synchronizes") {
  test::FakeGroup group("n2");
  GroupView view = *group.view();
  view.role = GroupRole::kStarting;
  group.set(view);
  const std::string text = written(&group);
  CHECK(text.find("master_link_status:down\r\n") != std::string::npos);
  CHECK(text.find("master_sync_in_progress:1\r\n") != std::string::npos);
  // As of redis-server: it has never heard of its primary.
  CHECK(text.find("master_link_down_since_seconds:-1\r\n") != std::string::npos);
}

}  // namespace
}  // namespace sluice
