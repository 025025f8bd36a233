// UsersMark: the difference_mark() of all users (access/passwords.h), as ACL LIST describes them,
// but with the marks of their passwords.
//
// They are described a few at a time: 10,000 users take as long as a second, one with 20 selectors
// some milliseconds.
//
// Used by one thread; users may change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/access/acl.h"

namespace sluice {

class UsersMark {
 public:
  // Users and their selectors.
  static constexpr size_t kDescribedAtOnce = 16;

  explicit UsersMark(const Acl& acl) : acl_(acl) {}

  // Describes some more users, if they have changed. Returns the mark of the last ones that it has
  // all described; empty: none yet.
  const std::string& step();

 private:
  const Acl& acl_;
  uint64_t seen_ = UINT64_MAX;                // the changes before those that it describes
  std::vector<std::shared_ptr<User>> users_;  // that are still to be described
  std::string digest_;                        // of those that were
  std::string mark_;
};

}  // namespace sluice
