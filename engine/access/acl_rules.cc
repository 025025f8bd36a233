#include "engine/access/acl_rules.h"

#include <algorithm>

#include "engine/access/passwords.h"
#include "engine/table/command_names.h"

namespace sluice {

namespace {

constexpr const char* kUnknownName = "Unknown command or category name in ACL";
constexpr const char* kSyntax = "Syntax error";
constexpr const char* kPatternAfterAllKeys =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
    "any effect. Try 'resetkeys' to start with an empty list of patterns";
constexpr const char* kPatternAfterAllChannels =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
    "have any effect. Try 'resetchannels' to start with an empty list of channels";
constexpr const char* kNoSuchPassword =
    "The password you are trying to remove from the user does not exist";
constexpr const char* kBadHash =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    "characters";
constexpr const char* kFirstArgumentOfSubcommand =
    "Allowing first-arg of a subcommand is not supported";

constexpr Bytes kSanitize = "sanitize-payload";
constexpr Bytes kSkipSanitize = "skip-sanitize-payload";

bool is(Bytes rule, Bytes word) { return equals_ignore_case(rule, word); }

// Whether a glob is a literal text followed by '*'. Sets `text` to the literal part.
bool literal_prefix(Bytes glob, std::string& text) {
  if (!glob.ends_with('*')) return false;
  glob.remove_suffix(1);
  for (size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '*' || glob[i] == '?' || glob[i] == '[') return false;
    // A backslash at the end escapes the '*' after it, which is then no wildcard.
    if (glob[i] == '\\' && ++i == glob.size()) return false;
    text += glob[i];
  }
  return true;
}

}  // namespace

bool has_blank_or_nul(Bytes text) {
  return text.find_first_of(Bytes(" \t\n\v\f\r\0", 7)) != Bytes::npos;
}

bool is_unknown_name(Bytes reason) { return reason == kUnknownName; }

bool join_selectors(std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool open = false;
  for (std::string& word : words) {
    const bool opens = word.starts_with('(') && !word.ends_with(')');
    if (open && opens) {
      joined.back() = std::move(word);  // as in Redis: the previous one is forgotten
    } else if (open) {
      joined.back() += ' ' + word;
      open = !word.ends_with(')');
    } else {
      joined.push_back(std::move(word));
      open = opens;
    }
  }
  words = std::move(joined);
  return !open;
}

// --- Sets of commands ---

CommandSet::CommandSet(bool all) : bits_(CommandTable::instance().id_limit(), all) {}

bool CommandSet::has_all() const {
  const auto end = bits_.begin() + static_cast<ptrdiff_t>(CommandTable::instance().id_limit());
  return std::find(bits_.begin(), end, false) == end;
}

void CommandSet::change(const Command& command, bool allow) {
  bits_[command.id] = allow;
  for (const Command& subcommand : command.subcommands) bits_[subcommand.id] = allow;
}

void CommandSet::change_category(uint32_t category, bool allow) {
  for (size_t id = 0; id < bits_.size(); ++id) {
    if ((CommandTable::instance().by_id(id).acl & category) != 0)
      change(CommandTable::instance().by_id(id), allow);
  }
}

CommandSet::Count CommandSet::count_category(uint32_t category) const {
  Count count;
  for (size_t id = 0; id < bits_.size(); ++id) {
    if ((CommandTable::instance().by_id(id).acl & category) != 0)
      ++(bits_[id] ? count.in : count.out);
  }
  return count;
}

// --- Rules of commands, keys and channels ---

const char* Permissions::apply(Bytes rule) {
  if (is(rule, "allkeys") || rule == "~*") {
    all_keys_ = true;
    keys_.clear();
  } else if (is(rule, "resetkeys")) {
    all_keys_ = false;
    keys_.clear();
  } else if (is(rule, "allchannels") || rule == "&*") {
    all_channels_ = true;
    channels_.clear();
  } else if (is(rule, "resetchannels")) {
    all_channels_ = false;
    channels_.clear();
  } else if (is(rule, "allcommands") || is(rule, "+@all")) {
    change_all_commands(true);
  } else if (is(rule, "nocommands") || is(rule, "-@all")) {
    change_all_commands(false);
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return apply_key_rule(rule);
  } else if (rule.starts_with('&')) {
    return apply_channel_rule(rule);
  } else if (rule.starts_with("+@") || rule.starts_with("-@")) {
    return apply_category(rule.substr(2), rule[0] == '+');
  } else if (rule.starts_with('+')) {
    return allow_command(rule.substr(1));
  } else if (rule.starts_with('-')) {
    const Command* command = CommandTable::instance().find_by_full_name(rule.substr(1));
    if (command == nullptr) return kUnknownName;
    change_command(*command, false);
  } else {
    return kSyntax;
  }
  return nullptr;
}

const char* Permissions::apply_key_rule(Bytes rule) {
  if (all_keys_) return kPatternAfterAllKeys;
  uint8_t rights = 0;
  size_t begin = 1;
  if (rule[0] == '~') {
    rights = kMayRead | kMayWrite;
  } else {
    for (; begin < rule.size() && rule[begin] != '~'; ++begin) {
      const char letter = ascii_lower(rule[begin]);
      const uint8_t right = letter == 'r' ? kMayRead : letter == 'w' ? kMayWrite : 0;
      if (right == 0 || (rights & right) != 0) return kSyntax;
      rights |= right;
    }
    if (rights == 0) return kSyntax;
    ++begin;
  }
  // "%R" alone is "%R~": the empty pattern, for the empty key.
  const Bytes pattern = rule.substr(std::min(begin, rule.size()));
  if (has_blank_or_nul(pattern)) return kSyntax;
  const auto same = std::find_if(keys_.begin(), keys_.end(),
                                 [&](const KeyPattern& key) { return key.pattern == pattern; });
  if (same == keys_.end()) {
    keys_.push_back({std::string(pattern), rights});
  } else {
    same->rights |= rights;
  }
  return nullptr;
}

const char* Permissions::apply_channel_rule(Bytes rule) {
  if (all_channels_) return kPatternAfterAllChannels;
  const Bytes pattern = rule.substr(1);
  if (has_blank_or_nul(pattern)) return kSyntax;
  if (std::find(channels_.begin(), channels_.end(), pattern) == channels_.end()) {
    channels_.emplace_back(pattern);
  }
  return nullptr;
}

const char* Permissions::allow_command(Bytes name) {
  const size_t bar = name.rfind('|');
  const Command* command = CommandTable::instance().find_by_full_name(name.substr(0, bar));
  if (command == nullptr) return kUnknownName;
  if (bar == Bytes::npos) {
    change_command(*command, true);
    return nullptr;
  }
  if (command->container != nullptr) return kFirstArgumentOfSubcommand;
  const Bytes argument = name.substr(bar + 1);
  if (argument.empty()) return kSyntax;
  if (!command->subcommands.empty()) {
    const Command* subcommand = CommandTable::find_subcommand(*command, argument);
    if (subcommand == nullptr) return kUnknownName;
    change_command(*subcommand, true);
    return nullptr;
  }
  std::vector<std::string>& allowed = first_arguments_[command->id];
  const bool known = std::any_of(allowed.begin(), allowed.end(), [&](const std::string& other) {
    return equals_ignore_case(other, argument);
  });
  if (!known) allowed.emplace_back(argument);
  return nullptr;
}

const char* Permissions::apply_category(Bytes name, bool allow) {
  const FlagName* category = find_acl_category(name);
  if (category == nullptr) return kUnknownName;
  commands_.change_category(category->flag, allow);
  std::erase_if(first_arguments_, [&](const auto& entry) {
    return (CommandTable::instance().by_id(entry.first).acl & category->flag) != 0;
  });
  return nullptr;
}

void Permissions::change_command(const Command& command, bool allow) {
  commands_.change(command, allow);
  first_arguments_.erase(command.id);
}

void Permissions::change_all_commands(bool allow) {
  commands_ = CommandSet(allow);
  future_commands_ = allow;
  first_arguments_.clear();
}

// --- The check ---

Verdict Permissions::check(const Command& command, std::span<const Bytes> args) const {
  if (!may_run(command, args)) return {Denial::kCommand, 0};
  const size_t key = forbidden_key(command, args);
  if (key != 0) return {Denial::kKey, key};
  const size_t channel = forbidden_channel(command, args);
  if (channel != 0) return {Denial::kChannel, channel};
  return {};
}

bool Permissions::may_run(const Command& command, std::span<const Bytes> args) const {
  // A user without any permission may still authenticate as another one.
  if (commands_.has(command) || (command.flags & kNoAuth) != 0) return true;
  if (args.size() < 2) return false;
  const auto found = first_arguments_.find(command.id);
  if (found == first_arguments_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const std::string& allowed) {
    return equals_ignore_case(allowed, args[1]);
  });
}

size_t Permissions::forbidden_key(const Command& command, std::span<const Bytes> args) const {
  if (all_keys_ || command.keys[0].begin == KeySpec::Begin::kNone) return 0;
  // One for each thread, so that a check mostly allocates nothing.
  thread_local std::vector<KeyPosition> positions;
  // If the arguments do not fit, the handler refuses them before it touches any key.
  if (!find_keys_with_flags(command, args, positions)) return 0;
  for (const KeyPosition& position : positions) {
    uint8_t rights = 0;
    if ((position.flags & kKeyAccess) != 0) rights |= kMayRead;
    if ((position.flags & (kKeyInsert | kKeyDelete | kKeyUpdate)) != 0) rights |= kMayWrite;
    if (!may_use_key(args[position.index], rights)) return position.index;
  }
  return 0;
}

bool Permissions::may_use_key(Bytes key, uint8_t rights) const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& allowed) {
           return (allowed.rights & rights) == rights && glob_match(allowed.pattern, key);
         });
}

bool Permissions::may_read_every_key() const {
  return all_keys_ || std::any_of(keys_.begin(), keys_.end(), [](const KeyPattern& allowed) {
           return (allowed.rights & kMayRead) != 0 && allowed.pattern == "*";
         });
}

bool Permissions::has_prefix_pattern(Bytes prefix, KeyRight right) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& allowed) {
    std::string literal;
    return (allowed.rights & right) != 0 && literal_prefix(allowed.pattern, literal) &&
           prefix.starts_with(literal);
  });
}

bool Permissions::may_use_prefix(Bytes prefix) const {
  return all_keys_ ||
         (has_prefix_pattern(prefix, kMayRead) && has_prefix_pattern(prefix, kMayWrite));
}

size_t Permissions::forbidden_channel(const Command& command, std::span<const Bytes> args) const {
  if (all_channels_ || command.channels == Channels::kNone) return 0;
  const size_t count = command.channels == Channels::kFirstArgument ? 1 : args.size() - 1;
  const bool are_patterns = command.channels == Channels::kPatterns;
  for (size_t i = 1; i <= count; ++i) {
    if (!may_use_channel(args[i], are_patterns)) return i;
  }
  return 0;
}

bool Permissions::may_use_channel(Bytes channel, bool is_pattern) const {
  if (all_channels_) return true;
  // A pattern must equal one of the user's own: it is not possible to tell whether another one
  // matches a subset of them.
  return std::any_of(channels_.begin(), channels_.end(), [&](const std::string& allowed) {
    return is_pattern ? allowed == channel : glob_match(allowed, channel);
  });
}

// --- Users ---

AclRules::AclRules(bool all_channels) : all_channels_by_default_(all_channels) {
  if (all_channels) permissions_.apply("allchannels");
}

const char* AclRules::apply(Bytes rule) {
  if (rule.empty()) return nullptr;
  if (is(rule, "on")) {
    enabled_ = true;
  } else if (is(rule, "off")) {
    enabled_ = false;
  } else if (is(rule, "nopass")) {
    no_password_ = true;
    passwords_.clear();
  } else if (is(rule, "resetpass")) {
    no_password_ = false;
    passwords_.clear();
  } else if (is(rule, kSanitize)) {
    payload_word_ = kSanitize;
  } else if (is(rule, kSkipSanitize)) {
    payload_word_ = kSkipSanitize;
  } else if (is(rule, "reset")) {
    *this = AclRules(all_channels_by_default_);
    payload_word_ = kSanitize;  // shown from now on, as in Redis
  } else if (is(rule, "clearselectors")) {
    selectors_.clear();
  } else if (rule[0] == '>') {
    return add_password(hash_password(rule.substr(1)));
  } else if (rule[0] == '<') {
    return remove_password(hash_password(rule.substr(1)));
  } else if (rule[0] == '#' || rule[0] == '!') {
    if (!is_password_hash(rule.substr(1))) return kBadHash;
    return rule[0] == '#' ? add_password(std::string(rule.substr(1)))
                          : remove_password(rule.substr(1));
  } else if (rule[0] == '(' && rule.back() == ')') {
    return add_selector(rule);
  } else {
    return permissions_.apply(rule);
  }
  return nullptr;
}

const char* AclRules::add_selector(Bytes text) {
  Permissions selector;
  if (all_channels_by_default_) selector.apply("allchannels");
  Bytes rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const size_t blank = rest.find(' ');
    const Bytes rule = rest.substr(0, blank);
    rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
    if (rule.empty()) continue;
    if (const char* reason = selector.apply(rule)) return reason;
  }
  selectors_.push_back(std::move(selector));
  return nullptr;
}

Verdict AclRules::check(const Command& command, std::span<const Bytes> args) const {
  Verdict best = permissions_.check(command, args);
  for (const Permissions& selector : selectors_) {
    if (best.denial == Denial::kNone) return best;
    const Verdict verdict = selector.check(command, args);
    // If several sets of rules refuse, the refusal that was detected last in the order of the
    // checks is the most specific.
    if (verdict.denial == Denial::kNone || verdict.denial > best.denial ||
        (verdict.denial == best.denial && verdict.argument > best.argument)) {
      best = verdict;
    }
  }
  return best;
}

bool AclRules::may_use_channel(Bytes channel, bool is_pattern) const {
  return permissions_.may_use_channel(channel, is_pattern) ||
         std::any_of(selectors_.begin(), selectors_.end(), [&](const Permissions& selector) {
           return selector.may_use_channel(channel, is_pattern);
         });
}

template <class Also>
bool AclRules::allows(const Command& command, std::span<const Bytes> args, Also also) const {
  const auto allowed_by = [&](const Permissions& permissions) {
    return also(permissions) && permissions.check(command, args).denial == Denial::kNone;
  };
  return allowed_by(permissions_) || std::any_of(selectors_.begin(), selectors_.end(), allowed_by);
}

bool AclRules::may_use_key(const Command& command, std::span<const Bytes> args, Bytes key,
                           KeyRight right) const {
  return allows(command, args, [&](const Permissions& permissions) {
    return permissions.may_use_key(key, right);
  });
}

bool AclRules::may_read_every_key(const Command& command, std::span<const Bytes> args) const {
  return allows(command, args,
                [](const Permissions& permissions) { return permissions.may_read_every_key(); });
}

bool AclRules::may_use_prefix(const Command& command, std::span<const Bytes> args,
                              Bytes prefix) const {
  return allows(command, args,
                [&](const Permissions& permissions) { return permissions.may_use_prefix(prefix); });
}

const char* AclRules::add_password(std::string hash) {
  if (!has_password(hash)) passwords_.push_back(std::move(hash));
  no_password_ = false;
  return nullptr;
}

const char* AclRules::remove_password(Bytes hash) {
  return std::erase(passwords_, hash) == 0 ? kNoSuchPassword : nullptr;
}

bool AclRules::has_password(Bytes hash) const {
  bool found = false;
  for (const std::string& password : passwords_) found |= same_hash(password, hash);
  return found;
}

}  // namespace sluice
