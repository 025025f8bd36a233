// What HTTP says of a group: to load balancers, and as JSON.
#include "net/admin/group_state.h"

#include "net/http/problem.h"
#include "tests/support/fake_group.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

using nlohmann::json;
using test::FakeGroup;

void set_role(FakeGroup& group, GroupRole role) {
  GroupView view = *group.view();
  view.role = role;
  group.set(view);
}

TEST_CASE("a load balancer sends writers to the primary, while it may answer") {
  FakeGroup group;
  CHECK_EQ(why_no_primary(nullptr), "");
  CHECK_EQ(why_no_primary(&group), "");
  group.lease = 0;
  CHECK(why_no_primary(&group).find("has not reached etcd") != std::string::npos);
  group.lease = 900;
  for (const GroupRole role :
       {GroupRole::kStarting, GroupRole::kStandby, GroupRole::kTaking, GroupRole::kResigning}) {
    set_role(group, role);
    CHECK_EQ(why_no_primary(&group),
             std::string("The role of this node is ") + name_of(role) + ".");
  }
}

TEST_CASE("a load balancer sends readers to standbys that are not far behind") {
  FakeGroup group("n2");
  CHECK_EQ(why_no_standby(&group, true, {}), "");
  CHECK_EQ(why_no_standby(nullptr, true, {}), "The server has no group: it is a primary.");
  GroupView view = *group.view();
  view.lag_ms = 300;
  group.set(view);
  CHECK_EQ(why_no_standby(&group, true, 300), "");
  // What it has not heard of may be as old as its silence.
  group.age_ms = 1;
  CHECK_EQ(why_no_standby(&group, true, 300),
           "This node is 301 ms behind, more than max_lag_ms allows.");
  CHECK_EQ(why_no_standby(&group, true, {}), "");
  group.age_ms = 2500;
  CHECK_EQ(why_no_standby(&group, false, {}),
           "This node has not heard of etcd for 2500 ms, and replica-serve-stale-data is no: it "
           "refuses reads.");
  set_role(group, GroupRole::kTaking);
  CHECK_EQ(why_no_standby(&group, true, {}), "The role of this node is taking.");
}

TEST_CASE("a change at a standby is told where the primary is") {
  FakeGroup group("n2");
  CHECK_EQ(primary_url(&group), "http://10.0.0.1:8379");
  CHECK_EQ(json::parse(not_primary(primary_url(&group)).body),
           json({{"type", "urn:sluice:problem:notprimary"},
                 {"title", "Service Unavailable"},
                 {"status", 503},
                 {"code", "NOTPRIMARY"},
                 {"detail", "This node is a standby: it changes nothing."},
                 {"primary", "http://10.0.0.1:8379"}}));
  GroupView view = *group.view();
  view.members[0].host = "::1";
  group.set(view);
  CHECK_EQ(primary_url(&group), "http://[::1]:8379");
  view.members[0].http_port = 0;
  group.set(view);
  CHECK(primary_url(&group).is_null());
  view.holder.clear();
  group.set(view);
  CHECK(primary_url(&group).is_null());
  CHECK(primary_url(nullptr).is_null());
}

TEST_CASE("the group as JSON") {
  FakeGroup group("n2");
  const json shown = group_json(&group);
  CHECK_EQ(shown["node"], "n2");
  CHECK_EQ(shown["role"], "standby");
  CHECK_EQ(shown["primary"], "n1");
  CHECK_EQ(shown["epoch"], 7);
  CHECK(shown["waits_for"].is_null());
  CHECK_EQ(shown["copies"], 3);  // the log has everything
  REQUIRE_EQ(shown["members"].size(), 3);
  CHECK_EQ(shown["members"][0]["primary"], true);
  CHECK_EQ(shown["members"][2]["starting"], false);
  CHECK_EQ(shown["members"][2]["host"], "10.0.0.3");
  CHECK(group_json(nullptr).is_null());
}

TEST_CASE("a member shows whether it differs from the primary, and not by what marks") {
  FakeGroup group("n2");
  GroupView view = *group.view();
  for (GroupMember& member : view.members) member.config_mark = member.users_mark = "1111";
  view.members[0].version = "0.1.0";
  view.members[1].config_mark = "2a2a";
  view.members[2].users_mark = "3b3b";
  group.set(view);
  const json members = group_json(&group)["members"];
  CHECK_EQ(members[0]["version"], "0.1.0");
  CHECK(members[1]["version"].is_null());
  const auto differs = [&](size_t member) {
    return std::pair(members[member]["config_differs"] == true,
                     members[member]["users_differ"] == true);
  };
  CHECK(differs(0) == std::pair(false, false));
  CHECK(differs(1) == std::pair(true, false));
  CHECK(differs(2) == std::pair(false, true));
  const std::string text = members.dump();
  for (const char* mark : {"2a2a", "3b3b"}) CHECK(text.find(mark) == std::string::npos);
}

}  // namespace
}  // namespace sluice
