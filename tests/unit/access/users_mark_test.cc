// By what mark the nodes of a group find out whether their users differ.
#include "engine/access/users_mark.h"

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/access/passwords.h"
#include "engine/commands/families.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

void set_user(Acl& acl, const std::string& name, std::initializer_list<std::string> rules) {
  const std::vector<Bytes> words(rules.begin(), rules.end());
  REQUIRE(acl.set_user(name, words).ok());
}

// The users do not change meanwhile.
std::string mark_of(const Acl& acl) {
  UsersMark mark(acl);
  for (size_t turn = 0; mark.step().empty(); ++turn) REQUIRE(turn < 1000);
  return mark.step();
}

TEST_CASE("a mark has four hexadecimal digits, and shows whether texts differ") {
  CHECK_EQ(difference_mark(""), "e3b0");  // of SHA-256
  CHECK_EQ(difference_mark("abc"), "ba78");
}

TEST_CASE("equal users have equal marks, whatever was before") {
  install_commands();
  Acl a;
  Acl b;
  CHECK_EQ(mark_of(a), mark_of(b));
  set_user(a, "alice", {"on", ">secret", "~jobs:*", "+@all"});
  CHECK(mark_of(a) != mark_of(b));
  set_user(b, "alice", {"on", "nopass"});
  set_user(b, "bob", {"on"});
  REQUIRE(b.delete_user("bob"));
  set_user(b, "alice", {"resetpass", "+@all", "~jobs:*", ">secret"});
  CHECK_EQ(mark_of(a), mark_of(b));
  a.set_default_password("x");
  CHECK(mark_of(a) != mark_of(b));
  set_user(b, "default", {"resetpass", ">x"});
  CHECK_EQ(mark_of(a), mark_of(b));
}

TEST_CASE("no more than the mark of a password is told, whatever else changes") {
  install_commands();
  std::map<std::string, std::string> by_mark;  // a password of each mark
  std::string one;
  std::string other;
  for (int i = 0; other.empty(); ++i) {
    const std::string password = "p" + std::to_string(i);
    const auto [at, is_new] = by_mark.emplace(difference_mark(password), password);
    if (is_new) continue;
    one = at->second;
    other = password;
  }
  Acl a;
  Acl b;
  set_user(a, "alice", {"on", ">" + one, ">both", "~jobs:*"});
  set_user(b, "alice", {"on", ">" + other, ">both", "~jobs:*"});
  CHECK_EQ(mark_of(a), mark_of(b));
  set_user(a, "bob", {"on"});
  set_user(b, "bob", {"on"});
  CHECK_EQ(mark_of(a), mark_of(b));
  set_user(b, "alice", {">more"});
  CHECK(mark_of(a) != mark_of(b));
}

TEST_CASE("each change of users is counted, and nothing else") {
  install_commands();
  Acl acl;
  uint64_t seen = acl.changes();
  const auto has_changed = [&] { return std::exchange(seen, acl.changes()) != acl.changes(); };
  set_user(acl, "alice", {"on"});
  CHECK(has_changed());
  set_user(acl, "alice", {"+get"});
  CHECK(has_changed());
  const std::vector<Bytes> bad = {"+nothing"};
  CHECK(!acl.set_user("alice", bad).ok());
  static_cast<void>(acl.authenticate("alice", "x"));
  CHECK(!has_changed());
  CHECK(acl.delete_user("alice"));
  CHECK(has_changed());
  CHECK(!acl.delete_user("alice"));
  CHECK(!has_changed());
  acl.set_default_password("x");
  CHECK(has_changed());
  REQUIRE(acl.load_text("user bob on\n", "users.acl").ok());
  CHECK(has_changed());
  REQUIRE(acl.load_text("", "users.acl").ok());
  CHECK(has_changed());
}

TEST_CASE("many users are described a few at a time, and again if they change meanwhile") {
  install_commands();
  Acl acl;
  // With the default user these are two turns and one user.
  for (size_t i = 0; i < 2 * UsersMark::kDescribedAtOnce; ++i) {
    set_user(acl, "u" + std::to_string(i), {"on", "~k"});
  }
  UsersMark mark(acl);
  CHECK_EQ(mark.step(), "");
  CHECK_EQ(mark.step(), "");
  const std::string first = mark.step();
  CHECK_EQ(first, mark_of(acl));
  CHECK_EQ(mark.step(), first);
  set_user(acl, "u0", {"off"});
  CHECK_EQ(mark.step(), first);
  set_user(acl, "default", {"off"});  // one that it has described already, or will
  for (int i = 0; i < 5; ++i) mark.step();
  CHECK(mark.step() != first);
  CHECK_EQ(mark.step(), mark_of(acl));
}

TEST_CASE("users with many selectors are described one at a time") {
  install_commands();
  Acl acl;
  for (const char* name : {"a", "b", "c"}) {
    for (size_t i = 0; i < UsersMark::kDescribedAtOnce; ++i) {
      set_user(acl, name, {"(~" + std::to_string(i) + " +get)"});
    }
  }
  UsersMark mark(acl);
  CHECK_EQ(mark.step(), "");  // the default user, and one of these
  CHECK_EQ(mark.step(), "");
  CHECK_EQ(mark.step(), mark_of(acl));
}

}  // namespace
}  // namespace sluice
