// Users, and what they may do.
//
// A User is shared by every connection that speaks for him, on all threads; his rules may change
// while they run. So rules are immutable snapshots: whoever checks takes the present one, and a
// change publishes another. The hot path reads one atomic only: a user who may do everything is
// not checked at all.
//
// Locks: Acl's mutex, then a user's; both may be taken under shard locks and the user's is held for
// the copy of a pointer.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/access/acl_rules.h"
#include "engine/base/bytes.h"
#include "engine/base/mutex.h"

namespace sluice {

struct Command;

// Any thread.
struct User {
  User(std::string user_name, AclRules rules);

  const std::string name;
  // May run every command on every key and channel: lets dispatch skip the check.
  std::atomic<bool> unrestricted{false};
  // Deleted: connections that still speak for him may do nothing, and are being closed.
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
  // The words of one user: his name, then his rules.
  using UserLine = std::vector<std::string>;

  Acl();

  // --- Who speaks ---
  // For whom a new connection speaks: the default user where he needs no password, else null.
  std::shared_ptr<User> user_at_connect() const;
  bool default_user_needs_no_password() const;
  const std::shared_ptr<User>& default_user() const { return default_user_; }
  // Null if there is no such user, he is off, or the password is wrong. Takes the same time for
  // each.
  std::shared_ptr<User> authenticate(Bytes name, Bytes password) const;
  std::shared_ptr<User> find(Bytes name) const;
  bool exists(Bytes name) const { return find(name) != nullptr; }
  // By name.
  std::vector<std::shared_ptr<User>> users() const;
  // "user alice on ...", as the configuration file and ACL LIST have it.
  static std::string line_of(const User& user);

  // The error that dispatch replies. REQUIRES: it is a denial.
  static std::string refusal(Denial denial, const Command& command);

  // --- Changes ---
  // Makes or changes a user, by all rules or none. Empty: done; else the reason, which names the
  // rule: "Error in ACL SETUSER modifier 'x': Syntax error".
  std::string set_user(Bytes name, std::span<const Bytes> rules);
  // False: there is none. REQUIRES: not the default user.
  bool delete_user(Bytes name);
  // The password of `requirepass`; empty: the default user needs none.
  void set_default_password(Bytes password);
  // What new users get: acl-pubsub-default.
  void set_all_channels_by_default(bool all_channels) { all_channels_by_default_ = all_channels; }

  // --- At the start --- empty: done; else the reason, and nothing has changed.
  std::string load(std::span<const UserLine> lines);
  // At the start and for ACL LOAD: the users of an ACL file take the place of all that are there;
  // the default user is as at the first start where the file does not name him. `name` is what
  // errors call the file: empty, or all that is wrong with it, with the numbers of lines.
  std::string load_text(Bytes text, const std::string& name);
  // For ACL SAVE: what load_text() reads back.
  std::string text() const;
  // Why this is no good line of a user. Empty: it is good.
  static std::string validate(const UserLine& line);

 private:
  static std::string apply(const UserLine& line, AclRules& rules);
  // One line of an ACL file into `users`. Empty, or what is wrong with it.
  std::string read_line(Bytes line, const std::string& place, int number,
                        std::map<std::string, AclRules, std::less<>>& users) const;
  AclRules new_rules() const { return AclRules(all_channels_by_default_.load()); }
  void put(const std::string& name, AclRules rules) REQUIRES(mutex_);

  std::atomic<bool> all_channels_by_default_{false};
  const std::shared_ptr<User> default_user_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<User>, std::less<>> users_ GUARDED_BY(mutex_);
};

}  // namespace sluice
