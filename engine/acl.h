// Users and what they may do.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

struct Command;

struct User {
  std::string name = "default";
  // May run every command on every key and channel: lets dispatch skip the check. Any thread.
  std::atomic<bool> unrestricted{true};
};

class Acl {
 public:
  Acl() : default_user_(std::make_shared<User>()) {}

  std::shared_ptr<User> default_user() const { return default_user_; }
  // Empty if `user` may run this; else the whole error message.
  std::string check(const User& user, const Command& command, std::span<const Bytes> args) const;

 private:
  std::shared_ptr<User> default_user_;
};

}  // namespace sluice
