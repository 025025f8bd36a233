// Log-ins over HTTP: roles derived from rights, the end of sessions, their maximum number.
#include "net/http/login_sessions.h"

#include <thread>

#include "engine/access/passwords.h"
#include "engine/commands/families.h"
#include "tests/support/test.h"

using namespace sluice;

namespace {

constexpr std::chrono::hours kLong{1};

// Rules refer to commands.
[[maybe_unused]] const bool kHasCommands = (install_commands(), true);

std::shared_ptr<User> make_user(Acl& acl, Bytes name, std::initializer_list<const char*> rules) {
  std::vector<Bytes> words(rules.begin(), rules.end());
  REQUIRE(acl.set_user(name, words).ok());
  return acl.find(name);
}

std::string role_text(std::initializer_list<const char*> rules) {
  AclRules made(false);
  for (const char* rule : rules) REQUIRE(made.apply(rule) == nullptr);
  const std::optional<Role> role = role_of_rules(made);
  return role ? role_name(*role) : "none";
}

}  // namespace

TEST_CASE("the role follows from the commands that a user may run") {
  CHECK_EQ(role_text({"on"}), "none");
  CHECK_EQ(role_text({"+q.get", "+q.list", "+q.stats"}), "none");
  CHECK_EQ(role_text({"+q.get", "+q.list", "+q.stats", "+q.events", "+q.log"}), "read");
  CHECK_EQ(role_text({"+@read"}), "read");
  CHECK_EQ(role_text({"+@all", "-q.purge"}), "read");
  CHECK_EQ(role_text({"+@all", "-q.list"}), "none");
  CHECK_EQ(role_text({"+@read", "+@write"}), "operate");
  CHECK_EQ(role_text({"+@all", "-@admin"}), "operate");
  CHECK_EQ(role_text({"+@all", "-config|set"}), "operate");
  CHECK_EQ(role_text({"+@admin"}), "none");
  CHECK_EQ(role_text({"+@read", "+@write", "+@admin"}), "admin");
  CHECK_EQ(role_text({"+@all"}), "admin");
  // With rights on no key, and by a selector alone.
  CHECK_EQ(role_text({"~jobs:*", "+@all"}), "admin");
  CHECK_EQ(role_text({"(~a +@all -@admin)"}), "operate");
}

TEST_CASE("a session lasts while its user is as he was") {
  Acl acl;
  LoginSessions sessions(kLong);
  const auto begin = [&](const std::shared_ptr<User>& user) {
    return hash_password(sessions.begin(user, user->rules(), Role::kOperate));
  };
  std::shared_ptr<User> carol = make_user(acl, "carol", {"on", ">p", "~*", "+@all"});
  std::string hash = begin(carol);
  const auto known = sessions.find(hash, acl);
  REQUIRE(known.has_value());
  CHECK(known->role == Role::kOperate);
  CHECK(known->user == carol);
  CHECK_EQ(known->token, hash);
  CHECK(known->logged_in);
  CHECK_FALSE(sessions.find(hash_password("other"), acl).has_value());
  const Tokens tokens({}, &sessions);
  CHECK(tokens.still_grants(Access::kOperate, *known, acl));
  make_user(acl, "carol", {">another"});
  CHECK_FALSE(sessions.find(hash, acl).has_value());
  CHECK_FALSE(tokens.still_grants(Access::kOperate, *known, acl));
  hash = begin(carol);
  CHECK(acl.delete_user("carol"));
  CHECK_FALSE(sessions.find(hash, acl).has_value());
  carol = make_user(acl, "carol", {"on", ">p", "~*", "+@all"});
  CHECK_FALSE(sessions.find(hash, acl).has_value());
  hash = begin(carol);
  CHECK(sessions.end(hash));
  CHECK_FALSE(sessions.end(hash));
  CHECK_FALSE(sessions.find(hash, acl).has_value());
}

TEST_CASE("a session's secret stands where a token would") {
  Acl acl;
  LoginSessions sessions(kLong);
  const std::shared_ptr<User> carol = make_user(acl, "carol", {"on", ">p", "~*", "+@all"});
  const std::string header = "Bearer " + sessions.begin(carol, carol->rules(), Role::kOperate);
  const std::string other = "Bearer " + std::string(64, '0');
  const Tokens tokens({}, &sessions);
  CHECK(tokens.check(Access::kOperate, &header, acl).verdict == Tokens::Verdict::kGranted);
  CHECK(tokens.check(Access::kAdmin, &header, acl).verdict == Tokens::Verdict::kForbidden);
  CHECK(tokens.check(Access::kRead, &other, acl).verdict == Tokens::Verdict::kBadToken);
}

TEST_CASE("a session ends after its time") {
  Acl acl;
  LoginSessions sessions(std::chrono::milliseconds(20));
  const std::shared_ptr<User> carol = make_user(acl, "carol", {"on", ">p", "~*", "+@all"});
  const std::string hash = hash_password(sessions.begin(carol, carol->rules(), Role::kRead));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK_FALSE(sessions.find(hash, acl).has_value());
}

TEST_CASE("one session too many ends the oldest") {
  Acl acl;
  LoginSessions sessions(kLong);
  const std::shared_ptr<User> carol = make_user(acl, "carol", {"on", ">p", "~*", "+@all"});
  std::vector<std::string> hashes;
  for (size_t i = 0; i <= LoginSessions::kMostSessions; ++i) {
    hashes.push_back(hash_password(sessions.begin(carol, carol->rules(), Role::kRead)));
  }
  CHECK_FALSE(sessions.find(hashes.front(), acl).has_value());
  CHECK(sessions.find(hashes[1], acl).has_value());
  CHECK(sessions.find(hashes.back(), acl).has_value());
}

TEST_CASE("wrong passwords are forgotten after a while") {
  LoginSessions sessions(kLong, std::chrono::milliseconds(20));
  for (size_t i = 0; i < LoginSessions::kMostFailures; ++i) sessions.note_failure("10.0.0.1");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(sessions.may_try("10.0.0.1"));
}

TEST_CASE("addresses whose wrong passwords are forgotten leave room for others") {
  constexpr std::chrono::milliseconds kWindow{500};
  LoginSessions sessions(kLong, kWindow);
  for (size_t i = 0; i < LoginSessions::kMostAddresses; ++i) {
    sessions.note_failure("10.1.0." + std::to_string(i));
  }
  std::this_thread::sleep_for(kWindow);
  for (size_t i = 0; i < LoginSessions::kMostFailures; ++i) sessions.note_failure("10.2.0.1");
  CHECK(sessions.may_try("10.3.0.1"));
}

TEST_CASE("wrong passwords count by address, and beyond many addresses together") {
  LoginSessions sessions(kLong);
  for (size_t i = 0; i < LoginSessions::kMostFailures; ++i) {
    CHECK(sessions.may_try("10.0.0.1"));
    sessions.note_failure("10.0.0.1");
  }
  CHECK_FALSE(sessions.may_try("10.0.0.1"));
  CHECK(sessions.may_try("10.0.0.2"));
  for (size_t i = 0; i < LoginSessions::kMostAddresses; ++i) {
    sessions.note_failure("10.1.0." + std::to_string(i));
  }
  for (size_t i = 0; i < LoginSessions::kMostFailures; ++i) {
    sessions.note_failure("10.2.0." + std::to_string(i));
  }
  CHECK_FALSE(sessions.may_try("10.3.0.1"));
  CHECK(sessions.may_try("10.1.0.1"));
}
