// What a user may do, as plain values: which commands, keys and channels, and with which passwords
// he comes in. Rules are changed by ACL SETUSER's words, with Redis 7.0.15's meaning and texts.
//
// A value belongs to one thread while it is changed; a User publishes it as shared_ptr<const>, and
// then nobody changes it any more (engine/access/acl.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/table/command.h"

namespace sluice {

// The greater one says more, where several sets of rules refuse for different reasons.
enum class Denial : uint8_t { kNone, kCommand, kKey, kChannel };

// Why a command is refused, and the argument that this is about (kCommand: 0).
struct Verdict {
  Denial denial = Denial::kNone;
  size_t argument = 0;
};

// Of a reason that apply() gives: there is no command or category of this name.
bool is_unknown_name(Bytes reason);

// ACL SETUSER takes a selector in several words, "(~a" "+get)": joins them. False: `words` ends
// within the selector that is its last word now.
bool join_selectors(std::vector<std::string>& words);

// Whether user names, key patterns and channel patterns may not hold this text.
bool has_blank_or_nul(Bytes text);

// A set of commands by their dense ids; a container's row stands in it besides its subcommands, and
// left-out commands of Redis besides those that can be called.
class CommandSet {
 public:
  explicit CommandSet(bool all);

  bool has(const Command& command) const { return bits_[command.id]; }
  // Every command that can be called.
  bool has_all() const;
  // A container takes its subcommands along.
  void change(const Command& command, bool allow);
  void change_category(uint32_t category, bool allow);
  // How many of the category's commands are in the set, and how many are not.
  struct Count {
    size_t in = 0;
    size_t out = 0;
  };
  Count count_category(uint32_t category) const;

 private:
  std::vector<bool> bits_;  // By id of the command.
};

// What may be done with a key.
enum KeyRight : uint8_t { kMayRead = 1, kMayWrite = 2 };

// Commands, keys and channels.
class Permissions {
 public:
  // Nothing at all.
  Permissions() : commands_(false) {}

  // Applies one rule such as "+get", "~jobs:*" or "-@dangerous". Null: done; else Redis's reason
  // why not, and nothing has changed.
  const char* apply(Bytes rule);

  // REQUIRES: the arguments fit the command's arity.
  Verdict check(const Command& command, std::span<const Bytes> args) const;
  bool may_use_channel(Bytes channel, bool is_pattern) const;
  // All of these rights (KeyRight).
  bool may_use_key(Bytes key, uint8_t rights) const;
  // Whatever its name: for commands that find keys by what values say (SORT).
  bool may_read_every_key() const;
  // Read and write every key that begins with this, by a pattern for each right that is such a
  // beginning and '*'. Other patterns may match them all, too, but that cannot be told.
  bool may_use_prefix(Bytes prefix) const;
  // Every command, key and channel.
  bool is_everything() const { return all_keys_ && all_channels_ && commands_.has_all(); }

  // The shortest rules that lead here: "-@all +@string -set"; "~a %R~b"; "&news:*".
  std::string describe_commands() const;
  std::string describe_keys() const;
  std::string describe_channels() const;
  // All three as one text, as a user's line has them.
  std::string describe() const;
  bool all_channels() const { return all_channels_; }

 private:
  struct KeyPattern {
    std::string pattern;
    uint8_t rights;
  };

  const char* apply_key_rule(Bytes rule);
  const char* apply_channel_rule(Bytes rule);
  const char* allow_command(Bytes name);
  const char* apply_category(Bytes name, bool allow);
  void change_command(const Command& command, bool allow);
  void change_all_commands(bool allow);
  bool may_run(const Command& command, std::span<const Bytes> args) const;
  // The first argument that may not be used; 0: all may.
  size_t forbidden_key(const Command& command, std::span<const Bytes> args) const;
  bool has_prefix_pattern(Bytes prefix, KeyRight right) const;
  size_t forbidden_channel(const Command& command, std::span<const Bytes> args) const;
  void describe_command(const Command& command, CommandSet& told, std::string& text) const;

  CommandSet commands_;
  // It began with +@all: commands that are yet to come are allowed as well. Decides how the rules
  // are described.
  bool future_commands_ = false;
  // Of commands that are not allowed as a whole: "+select|0". By the command's id.
  std::map<uint16_t, std::vector<std::string>> first_arguments_;
  bool all_keys_ = false;
  bool all_channels_ = false;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

// All of a user but his name.
class AclRules {
 public:
  // As ACL SETUSER makes a new user: off, without passwords and rights.
  explicit AclRules(bool all_channels);

  // Applies one rule. Null: done; else Redis's reason why not, and nothing has changed.
  const char* apply(Bytes rule);

  // What `reset` gives from now on: acl-pubsub-default may have changed since.
  void set_all_channels_by_default(bool all_channels) { all_channels_by_default_ = all_channels; }

  bool enabled() const { return enabled_; }
  bool needs_no_password() const { return no_password_; }
  // "sanitize-payload", "skip-sanitize-payload", or empty where neither was said. It means nothing
  // here: what RESTORE is given is always examined.
  Bytes payload_word() const { return payload_word_; }
  // Hashes, in the order in which they were added.
  const std::vector<std::string>& passwords() const { return passwords_; }
  // Whether one of the passwords has this hash; every one is looked at.
  bool has_password(Bytes hash) const;
  const Permissions& permissions() const { return permissions_; }
  // Further sets of permissions: whatever one of them allows as a whole is allowed.
  const std::vector<Permissions>& selectors() const { return selectors_; }

  // Over the permissions and all selectors. REQUIRES: the arguments fit the command's arity.
  Verdict check(const Command& command, std::span<const Bytes> args) const;
  bool may_use_channel(Bytes channel, bool is_pattern) const;
  // A set of permissions that allows this command lets it, besides, use a key that it does not name
  // / read any key / use every key with this prefix.
  bool may_use_key(const Command& command, std::span<const Bytes> args, Bytes key,
                   KeyRight right) const;
  bool may_read_every_key(const Command& command, std::span<const Bytes> args) const;
  bool may_use_prefix(const Command& command, std::span<const Bytes> args, Bytes prefix) const;

  // All rules as ACL LIST shows them; applied to a new user they make the same one.
  std::string describe() const;

 private:
  const char* add_password(std::string hash);
  const char* remove_password(Bytes hash);
  // "(~a +get)".
  const char* add_selector(Bytes text);
  // A set of permissions allows this command, and `also(permissions)` holds.
  template <class Also>
  bool allows(const Command& command, std::span<const Bytes> args, Also also) const;

  bool all_channels_by_default_;
  bool enabled_ = false;
  bool no_password_ = false;
  Bytes payload_word_;
  std::vector<std::string> passwords_;
  Permissions permissions_;
  std::vector<Permissions> selectors_;
};

}  // namespace sluice
