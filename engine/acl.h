// Users and what they may do.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

struct Client;
struct Command;

struct User {
  std::string name = "default";
  // May run every command on every key and channel: lets dispatch skip the check. Any thread.
  std::atomic<bool> unrestricted{true};
};

class Acl {
 public:
  Acl() : default_user_(std::make_shared<User>()) {}

  // Whom a new connection speaks for: the default user where it needs no password, else null. Any thread.
  std::shared_ptr<User> user_at_connect() const { return default_user_; }
  // Null if there is no such user, it is off, or the password is wrong. Takes the same time for each.
  std::shared_ptr<User> authenticate(Bytes name, Bytes password) const;
  bool exists(Bytes name) const;
  // For ACL LOG.
  void log_denied_login(const Client& client, Bytes name, int64_t now_ms);
  // Empty if `user` may run this; else the whole error message.
  std::string check(const User& user, const Command& command, std::span<const Bytes> args) const;

 private:
  std::shared_ptr<User> default_user_;
};

}  // namespace sluice
