// Authorization over HTTP: roles, and the tokens that grant them.
//
// A token is stored as the SHA-256 of its text. It acts as a user of the RESP side, whose rules
// also apply: the user named by the token, or one with exactly the rules of its role. Without any
// token only the local machine is served, and may read (see Access).
//
// Tokens may change at run time (`http-token`): a new object of this class replaces the old one,
// and existing grants are checked again (still_grants).
//
// Threads: constant after construction; any thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "net/config/token_setting.h"

namespace sluice {

class LoginSessions;

// Hexadecimal digits of a secret: of a new token, and of a session.
inline constexpr size_t kSecretDigits = 64;

// What a route requires.
enum class Access : uint8_t {
  kOpen,     // nothing: /healthz
  kReady,    // a token if there are any: /readyz, /metrics
  kRead,     // at least this role; open to the local machine if there are no tokens
  kOperate,  // at least this role
  kAdmin,
  kReplicate,  // kAdmin, or the token of `replication-token-file`
};

// The authenticated requester.
struct Principal {
  Role role = Role::kRead;
  std::shared_ptr<User> user;
  std::string token;       // its hash; empty if none was given
  bool logged_in = false;  // by name and password: the token belongs to a session
  std::chrono::steady_clock::time_point session_ends = {};
};

// A user that may run what the role allows, with all keys.
std::shared_ptr<User> user_of_role(Role role);

class Tokens {
 public:
  // `sessions` must outlive this; a session's secret counts as a token. Null: no sessions.
  // `replication`: the SHA-256 of the token that is good for Access::kReplicate alone, as 64
  // hexadecimal digits; empty: no such token.
  explicit Tokens(std::vector<TokenSetting> settings, const LoginSessions* sessions = nullptr,
                  std::string replication = {});

  bool empty() const { return settings_.empty(); }
  // Whether anybody on another machine can be granted something.
  bool serves_others() const { return !empty() || !replication_.empty(); }
  // The same for a route of this access.
  bool serves_others(Access access) const {
    return access == Access::kReplicate ? serves_others() : !empty();
  }
  const std::vector<TokenSetting>& settings() const { return settings_; }

  enum class Verdict : uint8_t { kGranted, kNeedsToken, kBadToken, kForbidden };
  struct Answer {
    Verdict verdict = Verdict::kNeedsToken;
    Principal principal;
  };
  // `authorization` is the header's value, or null. The time taken does not depend on which token
  // matches.
  Answer check(Access access, const std::string* authorization, const Acl& acl) const;
  // Whether a principal accepted by other tokens would be accepted by these as the same one.
  bool still_grants(Access access, const Principal& principal, const Acl& acl) const;

 private:
  std::optional<Principal> find(Access access, Bytes hash, const Acl& acl) const;
  bool is_replication(Access access, Bytes hash) const;

  std::vector<TokenSetting> settings_;
  const LoginSessions* sessions_;
  const std::string replication_;
  // For tokens that name no user.
  std::array<std::shared_ptr<User>, kRoles> role_users_;
};

}  // namespace sluice
