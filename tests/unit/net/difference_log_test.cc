// What the log of a node says of its difference from the primary.
#include "net/group/difference_log.h"

#include <string>
#include <vector>

#include "tests/support/fake_group.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

struct LogRun {
  explicit LogRun(const char* node) : view(*test::FakeGroup(node).view()) {
    for (GroupMember& member : view.members) {
      member.version = "0.1.0";
      member.config_mark = "1111";
      member.users_mark = "2222";
    }
  }
  // What it says of the view.
  std::vector<std::string> note() {
    said.clear();
    log.note(view);
    return said;
  }

  GroupView view;
  std::vector<std::string> said;
  DifferenceLog log{[this](LogLevel level, Bytes text) {
    said.push_back((level == LogLevel::kWarning ? "warning: " : "") + std::string(text));
  }};
};

using Said = std::vector<std::string>;

TEST_CASE("a node says once that it begins to differ from the primary, and that it agrees again") {
  LogRun run("n2");
  CHECK_EQ(run.note(), Said{});
  run.view.members[1].users_mark = "3333";
  CHECK_EQ(run.note(), Said{"warning: Unlike the primary \"n1\" this node has other users (compare "
                            "ACL LIST of both): clients would meet that after a takeover"});
  CHECK_EQ(run.note(), Said{});
  run.view.members[1].version = "0.2.0";
  run.view.members[0].config_mark = "4444";
  CHECK_EQ(run.note(),
           Said{"warning: Unlike the primary \"n1\" this node has version 0.2.0 instead of 0.1.0, "
                "another configuration (compare CONFIG GET * of both), other users (compare ACL "
                "LIST of both): clients would meet that after a takeover"});
  run.view.members[1] = run.view.members[0];
  run.view.members[1].name = "n2";
  CHECK_EQ(run.note(), Said{"This node agrees with the primary \"n1\" again"});
  CHECK_EQ(run.note(), Said{});
}

TEST_CASE("what is not told does not differ, nor does anything while nobody leads") {
  LogRun run("n2");
  run.view.members[1] = test::FakeGroup::member(2);
  CHECK_EQ(run.note(), Said{});
  run.view.members[1].users_mark = "3333";
  CHECK_EQ(run.note().size(), 1);
  const GroupMember primary = std::exchange(run.view.members[0], test::FakeGroup::member(1));
  CHECK(!run.view.difference(run.view.members[1]).any());
  CHECK_EQ(run.note(), Said{});
  run.view.members[0] = primary;
  CHECK_EQ(run.note(), Said{});
  run.view.holder.clear();
  CHECK(!run.view.difference(run.view.members[1]).any());
  CHECK_EQ(run.note(), Said{});
  run.view.holder = "n1";
  CHECK_EQ(run.note(), Said{});
  // It takes over: nobody is left to agree with.
  run.view.holder = "n2";
  CHECK_EQ(run.note(), Said{});
  CHECK(run.view.difference(run.view.members[0]).users);
}

TEST_CASE("the primary says nothing of the others") {
  LogRun run("n1");
  run.view.members[1].users_mark = "3333";
  CHECK_EQ(run.note(), Said{});
}

}  // namespace
}  // namespace sluice
