// Who may do what over HTTP: roles, and the tokens that give them.
//
// A token is kept as the SHA-256 of its text. It speaks for a user of the RESP side, whose rules
// hold as well: the one that it names, or one of its role that has no other rules than the role.
// Without any token only this machine is served, and may read (Access says what).
//
// Tokens change at run time (`http-token`): then there is another object of this class, and whoever
// was let in by the one before is looked at again (still_grants).
//
// Threads: constant after it is made; any thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "net/config/token_setting.h"

namespace sluice {

class LoginSessions;

// What a route asks for.
enum class Access : uint8_t {
  kOpen,     // nothing, ever: /healthz
  kReady,    // a token where there are any: /readyz, /metrics
  kRead,     // at least this role, but open for this machine where there is no token
  kOperate,  // at least this role
  kAdmin,
};

// Who asks, once his token has been looked at.
struct Principal {
  Role role = Role::kRead;
  std::shared_ptr<User> user;
  std::string token;       // its hash; empty: none was given
  bool logged_in = false;  // by name and password: the token is a session's
};

// A user that may run what the role may, with all keys.
std::shared_ptr<User> user_of_role(Role role);

class Tokens {
 public:
  // `sessions` outlive it; what they say counts like a token. Null: there are none.
  explicit Tokens(std::vector<TokenSetting> settings, const LoginSessions* sessions = nullptr);

  bool empty() const { return settings_.empty(); }
  const std::vector<TokenSetting>& settings() const { return settings_; }

  enum class Verdict : uint8_t { kGranted, kNeedsToken, kBadToken, kForbidden };
  struct Answer {
    Verdict verdict = Verdict::kNeedsToken;
    Principal principal;
  };
  // `authorization`: the header's value, or null. Takes the same time whichever token is right.
  Answer check(Access access, const std::string* authorization, const Acl& acl) const;
  // Whether one that other tokens let in would be let in by these as well, and as the same one.
  bool still_grants(Access access, const Principal& principal, const Acl& acl) const;

 private:
  std::optional<Principal> find(Bytes hash, const Acl& acl) const;

  std::vector<TokenSetting> settings_;
  const LoginSessions* sessions_;
  // Of tokens that name no user.
  std::array<std::shared_ptr<User>, kRoles> role_users_;
};

}  // namespace sluice
