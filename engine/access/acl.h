// Users and their permissions.
//
// A User is shared by all of its connections, on all threads, and its rules may change while they
// run. So rules are immutable snapshots: a check takes the current one, and a change publishes
// another. The hot path reads a single atomic: an unrestricted user is not checked at all.
//
// Locks: Acl's mutex, then a user's. Both may be taken under shard locks. The user's is held only
// to copy a pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/access/acl_rules.h"
#include "engine/base/bytes.h"
#include "engine/base/mutex.h"
#include "engine/base/status.h"

namespace sluice {

struct Command;

// Thread-safe.
struct User {
  User(std::string user_name, AclRules rules);

  const std::string name;
  // May run every command on every key and channel, so dispatch skips the check.
  std::atomic<bool> unrestricted{false};
  // Deleted. Its remaining connections may do nothing and are being closed.
  std::atomic<bool> deleted{false};

  std::shared_ptr<const AclRules> rules() const;

 private:
  friend class Acl;
  void publish(AclRules rules);

  mutable Mutex mutex_;
  std::shared_ptr<const AclRules> rules_ GUARDED_BY(mutex_);
};

class Acl {
 public:
  // The words of one user: its name, then its rules.
  using UserLine = std::vector<std::string>;

  Acl();

  // --- Authentication ---
  // The user of a new connection: the default user if it needs no password, else null.
  std::shared_ptr<User> user_at_connect() const;
  bool default_user_needs_no_password() const;
  const std::shared_ptr<User>& default_user() const { return default_user_; }
  // Null if the user does not exist or is off, or if the password is wrong. Takes the same time in
  // each case.
  std::shared_ptr<User> authenticate(Bytes name, Bytes password) const;
  std::shared_ptr<User> find(Bytes name) const;
  bool exists(Bytes name) const { return find(name) != nullptr; }
  // In the order of their names.
  std::vector<std::shared_ptr<User>> users() const;
  // "user alice on ...", as in the configuration file and ACL LIST.
  static std::string line_of(const User& user);
  // Grows after each change of a user.
  uint64_t changes() const { return changes_.load(); }

  // The error that dispatch replies. REQUIRES: not Denial::kNone.
  static std::string refusal(Denial denial, const Command& command);

  // --- Changes ---
  // Makes or changes a user, with all rules or none. The error names the rule: "Error in ACL
  // SETUSER modifier 'x': Syntax error".
  Status set_user(Bytes name, std::span<const Bytes> rules);
  // Returns false if the user does not exist. REQUIRES: not the default user.
  bool delete_user(Bytes name);
  // The password of `requirepass`. If it is empty, the default user needs none.
  void set_default_password(Bytes password);
  // The channel permissions of new users: acl-pubsub-default.
  void set_all_channels_by_default(bool all_channels) { all_channels_by_default_ = all_channels; }

  // --- At the start ---
  // All users or none.
  Status load(std::span<const UserLine> lines);
  // At the start and for ACL LOAD: the users of an ACL file replace all users. If the file does not
  // name the default user, that is reset to its initial rules. `name` is the file's name in errors.
  // The message lists all errors of the file with their line numbers.
  Status load_text(Bytes text, const std::string& name);
  // For ACL SAVE: a text that load_text() can read.
  std::string text() const;
  static Status validate(const UserLine& line);

 private:
  static Status apply(const UserLine& line, AclRules& rules);
  // Reads one line of an ACL file into `users`. Returns its errors.
  std::string read_line(Bytes line, const std::string& place, int number,
                        std::map<std::string, AclRules, std::less<>>& users) const;
  AclRules new_rules() const { return AclRules(all_channels_by_default_.load()); }
  void put(const std::string& name, AclRules rules) REQUIRES(mutex_);

  std::atomic<bool> all_channels_by_default_{false};
  std::atomic<uint64_t> changes_{0};
  const std::shared_ptr<User> default_user_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<User>, std::less<>> users_ GUARDED_BY(mutex_);
};

}  // namespace sluice
