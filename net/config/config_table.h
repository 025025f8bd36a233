// The table of directives, with one row each, used by the loader, CONFIG GET and SET, the usage
// text and the tests. A new directive takes a row (and a field of Settings).
//
// Threads: constant after the first call; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "net/config/settings.h"

namespace sluice {

enum class DirectiveKind : uint8_t {
  kOurs,     // Sluice's own.
  kRedis,    // Redis's, with Redis's meaning.
  kIgnored,  // Redis's, without effect here: checked, kept, echoed, and one warning.
};

enum class ChangeRule : uint8_t {
  kRuntime,
  kImmutable,  // Redis rejects CONFIG SET of it as well.
  kRestart,    // CONFIG SET to the present value is accepted; a change requires a restart.
  kFileOnly,   // No parameter of CONFIG GET and SET.
};

enum class ValueType : uint8_t {
  kBool,
  kInteger,
  kMemory,  // Bytes, with Redis's units: 1k = 1000, 1kb = 1024.
  kMemoryOrPercent,
  kOctal,
  kChoice,
  kText,
  kWords,  // Any number of arguments, for `parse`.
};

// The target of parsing: the settings, and for each row the text that CONFIG GET shows.
struct ConfigDraft {
  Settings settings;
  std::vector<std::string> values;
  std::vector<std::string> warnings;
  std::vector<std::string> ignored;  // Names of ignored directives that were given.
  bool save_given = false;           // The first `save` line replaces the default rules.
  bool from_file = false;            // Else CONFIG SET.
};

// Returns the text for CONFIG GET, or kInvalid with Redis's text if Redis has one.
using SpecialParser = Result<std::string> (*)(std::span<const std::string> arguments,
                                              ConfigDraft& draft);

// Where a value is stored; a choice is stored by a function that gets its index.
using Binding =
    std::variant<std::monostate, bool Settings::*, int64_t Settings::*, uint64_t Settings::*,
                 std::string Settings::*, void (*)(Settings&, size_t)>;

struct Directive {
  const char* name = "";
  const char* alias = "";
  DirectiveKind kind = DirectiveKind::kRedis;
  ChangeRule change = ChangeRule::kRuntime;
  // By default as `binding` and `choices` say; a text where neither does, or for `parse`.
  ValueType type = ValueType::kText;
  const char* default_value = "";
  int64_t low = 0;
  uint64_t high = INT64_MAX;
  const char* choices = "";  // kChoice: "a, b, c", as listed in the error text.
  // Not empty: the only supported value, and the reason.
  const char* only = "";
  const char* only_because = "";
  bool multiple = false;  // Several arguments; a single argument is split at its blanks.
  // The system may reject the value: Config::on_limit.
  bool limited = false;
  // Refers to files, which CONFIG SET reads again even if the value is unchanged:
  // Config::on_reload.
  bool reload = false;
  // Changes where the server listens: Config::on_listen.
  bool listens = false;
  // Its values are hidden in SLOWLOG and in messages.
  bool secret = false;
  // The nodes of a group need not agree in it, because it describes one of them, or because their
  // users show it: not in Config::mark().
  bool may_differ = false;
  Binding binding = std::monostate();
  SpecialParser parse = nullptr;
  const char* expected = "";  // With `parse`: describes a valid value.
  const char* summary = "";
};

// Returns the row with its values marked as secret.
inline Directive secret(Directive row) {
  row.secret = true;
  return row;
}

inline Directive may_differ(Directive row) {
  row.may_differ = true;
  return row;
}

// All rows: the effective ones in the order of conf/sluice.conf, then the ignored ones by name.
const std::vector<Directive>& config_directives();

// By name or alias, in any case; nullptr if unknown.
const Directive* find_directive(Bytes name);

// The row's index in config_directives() and in ConfigDraft::values.
size_t directive_index(const Directive& directive);

// Parses `arguments` into the draft. kInvalid if they are not valid.
Status apply_directive(const Directive& directive, std::span<const std::string> arguments,
                       ConfigDraft& draft);

// Describes a valid value for an operator: "a number from 0 to 65535, or auto".
std::string expected_value(const Directive& directive);

// --- For the table's own sources ---

// The limits of Redis's int and long.
inline constexpr uint64_t kMaxInt = INT32_MAX;
inline constexpr uint64_t kMaxLong = INT64_MAX;
inline constexpr int64_t kMebibyte = 1024 * 1024;

// config_ignored.cc
std::vector<Directive> ignored_directives();

}  // namespace sluice
