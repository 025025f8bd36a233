// Log-ins over HTTP: who has shown the name and the password of an ACL user, and for how long.
//
// A session's secret stands where a token would (Authorization: Bearer). It is kept as its SHA-256
// and in memory only: a session ends after its time, when it is ended, with the process, and with
// any change of its user's rules (password, rights, on and off, ACL LOAD), as does the role that
// followed from them. Beside that the user's own rules hold for every command, as for a token that
// names him.
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

// What a user may do here, by the commands that he may run, whatever their keys: read with all
// Q.* that only read, operate with all Q.*, admin with all of @admin besides. Nothing: not even
// read.
std::optional<Role> role_of_rules(const AclRules& rules);

class LoginSessions {
 public:
  using Clock = std::chrono::steady_clock;
  // One more ends the oldest.
  static constexpr size_t kMostSessions = 1000;
  // So many passwords may be wrong from one address in the time of kTriesWindow.
  static constexpr size_t kMostFailures = 10;
  static constexpr std::chrono::seconds kTriesWindow{60};
  // Beyond so many addresses the others count as one.
  static constexpr size_t kMostAddresses = 1000;

  explicit LoginSessions(std::chrono::milliseconds lifetime) : lifetime_(lifetime) {}

  // Whether the address may try a password now.
  bool may_try(Bytes address);
  void note_failure(Bytes address);

  // Begins one for a user whose password was right under `rules`. Returns its secret.
  std::string begin(std::shared_ptr<User> user, std::shared_ptr<const AclRules> rules, Role role);
  // False: there is none of this hash.
  bool end(Bytes hash);
  // For whom the session speaks; nothing: there is none, or it has ended.
  std::optional<Principal> find(Bytes hash, const Acl& acl) const;
  std::chrono::milliseconds lifetime() const { return lifetime_; }

 private:
  struct Session {
    std::shared_ptr<User> user;
    // Those at the log-in: it lasts while the user has this very snapshot.
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
  mutable Mutex mutex_;
  std::map<std::string, Session, std::less<>> sessions_ GUARDED_BY(mutex_);  // by hash
  std::map<std::string, Failures, std::less<>> failures_ GUARDED_BY(mutex_);
};

}  // namespace sluice
