// Log-ins over HTTP: which users have authenticated by name and password, and for how long.
//
// A session's secret is used like a token (Authorization: Bearer). Its SHA-256 is kept in memory
// only. A session ends when its time is over, when it is ended explicitly, with the process, and
// with any change of its user's rules (password, rights, on and off, ACL LOAD), because its role
// was derived from them. The user's own rules also apply to every command, as with a token that
// names the user.
//
// Any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/access/acl.h"
#include "engine/base/mutex.h"
#include "net/http/tokens.h"

namespace sluice {

// The role of a user, by the commands that the user may run, with any keys: read requires all Q.*
// commands that only read, operate all Q.* commands, admin also all of @admin. Nothing if not even
// read.
std::optional<Role> role_of_rules(const AclRules& rules);

class LoginSessions {
 public:
  using Clock = std::chrono::steady_clock;
  // Another session ends the oldest one.
  static constexpr size_t kMostSessions = 1000;
  // Maximum number of wrong passwords from one address within kTriesWindow.
  static constexpr size_t kMostFailures = 10;
  static constexpr std::chrono::seconds kTriesWindow{60};
  // Further addresses are counted together.
  static constexpr size_t kMostAddresses = 1000;

  explicit LoginSessions(std::chrono::milliseconds lifetime,
                         std::chrono::milliseconds tries_window = kTriesWindow)
      : lifetime_(lifetime), tries_window_(tries_window) {}

  // Whether the address may try a password now.
  bool may_try(Bytes address);
  void note_failure(Bytes address);

  // Starts a session for a user whose password was right under `rules`. Returns its secret.
  std::string begin(std::shared_ptr<User> user, std::shared_ptr<const AclRules> rules, Role role);
  // Returns false if there is no session with this hash.
  bool end(Bytes hash);
  // The user and role of the session; nothing if it does not exist or has ended.
  std::optional<Principal> find(Bytes hash, const Acl& acl) const;
  std::chrono::milliseconds lifetime() const { return lifetime_; }

 private:
  struct Session {
    std::shared_ptr<User> user;
    // The rules at the log-in. The session ends when the user has different ones.
    std::shared_ptr<const AclRules> rules;
    Role role = Role::kRead;
    Clock::time_point ends;
  };
  struct Failures {
    Clock::time_point began;
    size_t count = 0;
  };

  static bool lasts(const Session& session);
  Failures& failures_of(Bytes address) REQUIRES(mutex_);

  const std::chrono::milliseconds lifetime_;
  const std::chrono::milliseconds tries_window_;
  mutable Mutex mutex_;
  std::map<std::string, Session, std::less<>> sessions_ GUARDED_BY(mutex_);  // by hash
  std::map<std::string, Failures, std::less<>> failures_ GUARDED_BY(mutex_);
};

}  // namespace sluice
