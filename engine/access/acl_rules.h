// The permissions of a user as plain values: allowed commands, keys and channels, and passwords.
// Rules are changed by ACL SETUSER's words, with the meaning and the texts of Redis 7.0.15.
//
// A value belongs to one thread while it is changed. A User publishes it as shared_ptr<const>; from
// then on it is immutable (engine/access/acl.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/table/command.h"

namespace sluice {

// If several sets of rules refuse for different reasons, the greater one is the more specific.
enum class Denial : uint8_t { kNone, kCommand, kKey, kChannel };

// Why a command is refused, and the index of the argument that causes it (kCommand: 0).
struct Verdict {
  Denial denial = Denial::kNone;
  size_t argument = 0;
};

// Whether this result of apply() means an unknown command or category.
bool is_unknown_name(Bytes reason);

// ACL SETUSER takes a selector in several words, "(~a" "+get)". Joins them. Returns false if
// `words` ends inside a selector, which is then its last word.
bool join_selectors(std::vector<std::string>& words);

// Whether the text holds a blank or NUL, which names of users and patterns must not.
bool has_blank_or_nul(Bytes text);

// A set of commands by their dense ids. A container has a bit of its own besides those of its
// subcommands, and so have Redis commands that are left out here.
class CommandSet {
 public:
  explicit CommandSet(bool all);

  bool has(const Command& command) const { return bits_[command.id]; }
  // Whether it has every command that can be called.
  bool has_all() const;
  // A change of a container applies to its subcommands as well.
  void change(const Command& command, bool allow);
  void change_category(uint32_t category, bool allow);
  // How many commands of the category are in the set, and how many are not.
  struct Count {
    size_t in = 0;
    size_t out = 0;
  };
  Count count_category(uint32_t category) const;

 private:
  std::vector<bool> bits_;  // by id of the command
};

// Operations on a key.
enum KeyRight : uint8_t { kMayRead = 1, kMayWrite = 2 };

// Commands, keys and channels.
class Permissions {
 public:
  // Allows nothing.
  Permissions() : commands_(false) {}

  // Applies one rule such as "+get", "~jobs:*" or "-@dangerous". Returns null, or Redis's error;
  // then nothing has changed.
  const char* apply(Bytes rule);

  // REQUIRES: the arguments fit the command's arity.
  Verdict check(const Command& command, std::span<const Bytes> args) const;
  bool may_use_channel(Bytes channel, bool is_pattern) const;
  // Whether all of these rights (KeyRight) are granted.
  bool may_use_key(Bytes key, uint8_t rights) const;
  // Whether every key may be read: for commands that derive key names from values (SORT).
  bool may_read_every_key() const;
  // Whether all keys with this prefix may be read and written. True only if each right has a
  // pattern of the form prefix and '*'. Other patterns may match all of them, too, but that cannot
  // be decided.
  bool may_use_prefix(Bytes prefix) const;
  // Whether every command, key and channel is allowed.
  bool is_everything() const { return all_keys_ && all_channels_ && commands_.has_all(); }

  // The shortest rules with this result: "-@all +@string -set"; "~a %R~b"; "&news:*".
  std::string describe_commands() const;
  std::string describe_keys() const;
  std::string describe_channels() const;
  // All three as one text, as in a user's line.
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
  // The first argument that may not be used, or 0.
  size_t forbidden_key(const Command& command, std::span<const Bytes> args) const;
  bool has_prefix_pattern(Bytes prefix, KeyRight right) const;
  size_t forbidden_channel(const Command& command, std::span<const Bytes> args) const;
  void describe_command(const Command& command, CommandSet& told, std::string& text) const;

  CommandSet commands_;
  // The rules began with +@all, so commands of later versions are allowed as well. Decides how the
  // rules are described.
  bool future_commands_ = false;
  // Allowed first arguments of commands that are not allowed as a whole ("+select|0"), by the
  // command's id.
  std::map<uint16_t, std::vector<std::string>> first_arguments_;
  bool all_keys_ = false;
  bool all_channels_ = false;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

// Everything about a user except the name.
class AclRules {
 public:
  // A new user of ACL SETUSER: off, without passwords and permissions.
  explicit AclRules(bool all_channels);

  // Applies one rule. Returns null, or Redis's error; then nothing has changed.
  const char* apply(Bytes rule);

  // Sets what `reset` will grant: acl-pubsub-default may have changed.
  void set_all_channels_by_default(bool all_channels) { all_channels_by_default_ = all_channels; }

  bool enabled() const { return enabled_; }
  bool needs_no_password() const { return no_password_; }
  // "sanitize-payload", "skip-sanitize-payload", or empty if neither was given. It has no effect
  // here: the payload of RESTORE is always checked.
  Bytes payload_word() const { return payload_word_; }
  // Hashes, in the order in which they were added.
  const std::vector<std::string>& passwords() const { return passwords_; }
  // Whether one of the passwords has this hash. Compares all of them.
  bool has_password(Bytes hash) const;
  const Permissions& permissions() const { return permissions_; }
  // Further sets of permissions. A command is allowed if one set allows all of it.
  const std::vector<Permissions>& selectors() const { return selectors_; }

  // Checks the permissions and all selectors. REQUIRES: the arguments fit the command's arity.
  Verdict check(const Command& command, std::span<const Bytes> args) const;
  bool may_use_channel(Bytes channel, bool is_pattern) const;
  // Whether a set of permissions that allows this command also allows to use a key that the command
  // does not name, to read any key, or to use every key with this prefix.
  bool may_use_key(const Command& command, std::span<const Bytes> args, Bytes key,
                   KeyRight right) const;
  bool may_read_every_key(const Command& command, std::span<const Bytes> args) const;
  bool may_use_prefix(const Command& command, std::span<const Bytes> args, Bytes prefix) const;

  // All rules as ACL LIST shows them. Applied to a new user they give the same rules.
  std::string describe() const;

 private:
  const char* add_password(std::string hash);
  const char* remove_password(Bytes hash);
  // "(~a +get)".
  const char* add_selector(Bytes text);
  // Whether a set of permissions allows this command and `also(permissions)` holds.
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
