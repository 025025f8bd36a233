// What `sluice nodes` makes of INFO replication.
#include "tools/cli/group_view.h"

#include "net/admin/group_state.h"
#include "net/server/info_replication.h"
#include "tests/support/fake_group.h"
#include "tests/support/test.h"

namespace sluice::cli {
namespace {

using nlohmann::json;
using test::FakeGroup;

json shown(const FakeGroup& group) {
  ReplicationFacts facts{.run_id = std::string(40, 'a')};
  facts.view = group.view();
  facts.view_age_ms = group.view_age_ms();
  facts.lease_ms = group.lease_ms();
  InfoWriter out;
  write_replication(facts, out);
  return group_of_info(out.take());
}

TEST_CASE("the group of INFO is the group of HTTP") {
  for (const char* node : {"n1", "n2"}) {
    const FakeGroup group(node);
    CHECK_EQ(shown(group), group_json(&group));
  }
  CHECK(group_of_info("role:master\r\nconnected_slaves:0\r\n").is_null());
}

TEST_CASE("members are found by name") {
  const json group = shown(FakeGroup());
  REQUIRE(find_member(group, "n2") != nullptr);
  CHECK_EQ((*find_member(group, "n2"))["host"], "10.0.0.2");
  CHECK(find_member(group, "n9") == nullptr);
}

TEST_CASE("a primary whose server is away is not shown as leading") {
  FakeGroup group("n2");
  GroupView view = *group.view();
  view.members.erase(view.members.begin());
  group.set(view);
  CHECK_EQ(group_lines(shown(group))[0],
           "group main/1, epoch 7: nobody leads, and n1, which led, is away");
}

TEST_CASE("people read which nodes are starting, and that those cannot take over") {
  FakeGroup group;
  GroupView view = *group.view();
  view.members[1].starting = view.members[2].starting = true;
  group.set(view);
  CHECK_EQ(shown(group), group_json(&group));
  CHECK_EQ(group_lines(shown(group)), std::vector<std::string>{"group main/1, epoch 7: n1 leads",
                                                               "no other node can take over"});
  Screen terminal;
  terminal.terminal = true;
  CHECK(group_table(shown(group)).lines(terminal)[2].find("starting") != std::string::npos);
}

TEST_CASE("people read which nodes differ from the primary, and what to compare") {
  FakeGroup group("n2");
  GroupView view = *group.view();
  for (GroupMember& member : view.members) {
    member.version = "0.1.0";
    member.config_mark = member.users_mark = "1111";
  }
  group.set(view);
  CHECK_EQ(group_lines(shown(group)).size(), 2);
  view.members[1].version = "0.2.0";
  view.members[1].config_mark = "2222";
  view.members[2].users_mark = "2222";
  group.set(view);
  CHECK_EQ(shown(group), group_json(&group));
  const std::vector<std::string> lines = group_lines(shown(group));
  CHECK_EQ(std::vector<std::string>(lines.begin() + 2, lines.end()),
           std::vector<std::string>{
               "n2 runs version 0.2.0, the primary 0.1.0",
               "n2 has another configuration than the primary: compare CONFIG GET * of both",
               "n3 has other users than the primary: compare ACL LIST of both"});
  view.holder.clear();
  group.set(view);
  CHECK_EQ(group_lines(shown(group)).size(), 2);
}

TEST_CASE("people read who leads, how far the others are, and what is wrong") {
  FakeGroup group("n2");
  group.apply(2, 99);
  CHECK_EQ(group_lines(shown(group)), std::vector<std::string>{"group main/1, epoch 7: n1 leads",
                                                               "this is n2, standby, 0 ms behind"});
  Screen terminal;
  terminal.terminal = true;
  CHECK_EQ(
      group_table(shown(group)).lines(terminal),
      std::vector<std::string>{"NODE  ROLE     ADDRESS        HTTP  SENTINEL   BEHIND  PRIORITY",
                               "n1    primary  10.0.0.1:6379  8379     26379                100",
                               "n2    standby  10.0.0.2:6379  8379     26379  0 units       100",
                               "n3    standby  10.0.0.3:6379  8379     26379   1 unit       100"});
  GroupView view = *group.view();
  view.node = "n1";
  view.role = GroupRole::kPrimary;
  view.holder.clear();
  view.members.resize(1);
  view.last_takeover_ms = 900;
  view.paused_ms = 59 * 60'000;
  view.waits_for = "etcd";
  group.set(view);
  group.age_ms = 5000;
  CHECK_EQ(group_lines(shown(group)),
           std::vector<std::string>{"group main/1, epoch 7: nobody leads",
                                    "this is n1, primary, 0 ms behind", "n1 is waiting: etcd",
                                    "etcd was last heard of 5.0 s ago: the rest may be old",
                                    "paused for 59 m more: no other node takes over if the "
                                    "primary fails",
                                    "n1 took over in 900 ms the last time"});
  view = GroupView(*group.view());
  view.holder = "n1";
  view.waits_for.clear();
  view.paused_ms = 0;
  view.last_takeover_ms = 0;
  view.log_limit_bytes = 1000;
  view.log_bytes = 499;
  group.set(view);
  group.age_ms = 0;
  CHECK_EQ(group_lines(shown(group)), std::vector<std::string>{"group main/1, epoch 7: n1 leads",
                                                               "no other node can take over"});
  view.log_bytes = 760;
  group.set(view);
  CHECK_EQ(group_lines(shown(group))[1], "the journal in etcd has 76 % of journal-log-bytes");
  view.log_kept_by = "the server \"n2\" has no checkpoint yet";
  group.set(view);
  CHECK_EQ(
      group_lines(shown(group))[1],
      "the journal in etcd has 76 % of journal-log-bytes. What keeps it: the server \"n2\" has "
      "no checkpoint yet");
}

}  // namespace
}  // namespace sluice::cli
