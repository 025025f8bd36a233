#include "engine/access/users_mark.h"

#include "engine/access/passwords.h"

namespace sluice {

// What changes while users are described is described by the next turn.
const std::string& UsersMark::step() {
  if (users_.empty()) {
    const uint64_t changes = acl_.changes();
    if (changes == seen_) return mark_;
    seen_ = changes;
    users_ = acl_.users();
    digest_.clear();
  }
  for (size_t left = kUsersAtOnce; left != 0 && !users_.empty(); --left) {
    digest_ = hash_password(digest_ + Acl::line_of(*users_.back()));
    users_.pop_back();
  }
  if (users_.empty()) mark_ = difference_mark(digest_);
  return mark_;
}

}  // namespace sluice
