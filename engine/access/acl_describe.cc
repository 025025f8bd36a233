// A user's rules as text, in as few words as possible. Like Redis 7.0, this does not record the
// words that led to the permissions; it derives words from the permissions each time.
#include "engine/access/acl_rules.h"
#include "engine/table/command_names.h"

namespace sluice {

namespace {

// The category that explains most of the commands in `left` (or most of those not in it, if the
// description begins with everything) with the fewest exceptions. Null if every category has at
// least as many exceptions as commands.
const FlagName* best_category(const CommandSet& left, bool additive, uint32_t told) {
  const FlagName* best = nullptr;
  size_t fewest_exceptions = 0;
  size_t most_explained = 0;
  for (const FlagName& category : kAclCategoryNames) {
    if ((told & category.flag) != 0) continue;
    const CommandSet::Count count = left.count_category(category.flag);
    const size_t explained = additive ? count.in : count.out;
    const size_t exceptions = additive ? count.out : count.in;
    if (explained <= exceptions) continue;
    if (best != nullptr && exceptions > fewest_exceptions) continue;
    if (best != nullptr && exceptions == fewest_exceptions && explained <= most_explained) continue;
    best = &category;
    fewest_exceptions = exceptions;
    most_explained = explained;
  }
  return best;
}

void add_word(std::string& text, const std::string& word) {
  if (!text.empty()) text += ' ';
  text += word;
}

}  // namespace

std::string Permissions::describe_commands() const {
  const bool additive = !future_commands_;
  std::string text = additive ? "-@all" : "+@all";
  CommandSet told(!additive);
  CommandSet left = commands_;
  uint32_t told_categories = 0;
  while (const FlagName* category = best_category(left, additive, told_categories)) {
    told.change_category(category->flag, additive);
    // What this category explains must not count for another one.
    left.change_category(category->flag, !additive);
    told_categories |= category->flag;
    add_word(text, (additive ? "+@" : "-@") + std::string(category->name));
  }
  const auto callable = CommandTable::instance().all();
  for (const Command* command : callable) describe_command(*command, told, text);
  return text;
}

void Permissions::describe_command(const Command& command, CommandSet& told,
                                   std::string& text) const {
  const bool allowed = commands_.has(command);
  const std::string name = CommandTable::full_name(command);
  if (told.has(command) != allowed) {
    add_word(text, (allowed ? "+" : "-") + name);
    told.change(command, allowed);
  }
  for (const Command& subcommand : command.subcommands) describe_command(subcommand, told, text);
  const auto found = first_arguments_.find(command.id);
  if (allowed || found == first_arguments_.end()) return;
  for (const std::string& argument : found->second) {
    add_word(text, "+" + name + "|" + argument);
  }
}

std::string Permissions::describe_keys() const {
  if (all_keys_) return "~*";
  std::string text;
  for (const KeyPattern& key : keys_) {
    const char* prefix = key.rights == kMayRead ? "%R~" : key.rights == kMayWrite ? "%W~" : "~";
    add_word(text, prefix + key.pattern);
  }
  return text;
}

std::string Permissions::describe_channels() const {
  if (all_channels_) return "&*";
  std::string text;
  for (const std::string& channel : channels_) add_word(text, "&" + channel);
  return text;
}

std::string Permissions::describe() const {
  std::string text = describe_keys();
  if (!all_channels_) add_word(text, "resetchannels");
  const std::string channels = describe_channels();
  if (!channels.empty()) add_word(text, channels);
  add_word(text, describe_commands());
  return text;
}

std::string AclRules::describe() const {
  std::string text = enabled_ ? "on" : "off";
  if (no_password_) text += " nopass";
  if (!payload_word_.empty()) text += " " + std::string(payload_word_);
  for (const std::string& password : passwords_) text += " #" + password;
  text += " " + permissions_.describe();
  for (const Permissions& selector : selectors_) text += " (" + selector.describe() + ")";
  return text;
}

}  // namespace sluice
