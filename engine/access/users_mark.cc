#include "engine/access/users_mark.h"

#include <algorithm>

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
  for (size_t left = kDescribedAtOnce; left != 0 && !users_.empty(); users_.pop_back()) {
    const User& user = *users_.back();
    left -= std::min(left, 1 + user.rules()->selectors().size());
    std::string line = Acl::line_of(user);
    put_marks_for_hashes(line);
    digest_ = hash_password(digest_ + line);
  }
  if (users_.empty()) mark_ = difference_mark(digest_);
  return mark_;
}

}  // namespace sluice
