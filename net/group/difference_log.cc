#include "net/group/difference_log.h"

#include <string>

namespace sluice {

void DifferenceLog::note(const GroupView& view) {
  const GroupMember* const self = view.self();
  const GroupMember* const primary = view.primary();
  // Nothing is known while nobody leads, or until both have told; the users are told last.
  if (self == nullptr || primary == nullptr) return;
  if (self->users_mark.empty() || primary->users_mark.empty()) return;
  const GroupDifference now = view.difference(*self);
  const GroupDifference before = std::exchange(said_, now);
  if (self == primary || now == before) return;
  const std::string of_primary = "the primary \"" + primary->name + "\"";
  if (!now.any()) return log_(LogLevel::kInfo, "This node agrees with " + of_primary + " again");
  std::string what;
  const auto add = [&](bool differs, const std::string& text) {
    if (differs) what += (what.empty() ? "" : ", ") + text;
  };
  add(now.version, "version " + self->version + " instead of " + primary->version);
  add(now.config, "another configuration (compare CONFIG GET * of both)");
  add(now.users, "other users (compare ACL LIST of both)");
  log_(LogLevel::kWarning, "Unlike " + of_primary + " this node has " + what +
                               ": clients would meet that after a takeover");
}

}  // namespace sluice
