// The command line of sluice: rows that describe what it may contain, and the parsed result.
//
// Rows are static data. Help and completion are generated from them (help.h, candidates.h), so a
// new option takes one row and nothing else. Pure functions, apart from what `parse` is given.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice::cli {

class Context;

using Words = std::vector<std::string>;

struct Option {
  const char* name;   // --pri, or -p
  const char* value;  // name of the value in the help; null: a flag
  const char* help;
  // The word of the server's command. Null: an option of sluice itself.
  const char* word = nullptr;
  // Possible values, separated by blanks; a value that ends with = takes more text. Null: any
  // value.
  const char* choices = nullptr;
  // Character that separates the value into two words for the server; 0: one word.
  char separator = 0;
  bool repeats = false;
  bool tls = false;  // requires --tls
  // The value is a name where the server takes a glob, so it is escaped.
  bool literal = false;
};

struct CommandRow {
  const char* name;
  // As shown in the help. A word that begins with [ may be missing; with ... it may repeat.
  const char* operands;
  const char* help;     // one line
  const char* details;  // further lines of the command's own help, or null
  std::vector<std::span<const Option>> options;
  int (*run)(Context& context);
  const char* example;  // a command line
  // Generates more text for the command's help; null: no more.
  std::string (*more_help)() = nullptr;
  // Wrong usage exits with 1, as other errors do: 2 says something else of it.
  bool usage_is_error = false;
};

// For a name where the server takes a glob: the option's word is the glob that matches only it.
constexpr Option literal_option(const char* name, const char* value, const char* help,
                                const char* word) {
  Option option = {name, value, help, word};
  option.literal = true;
  return option;
}

// Options of every command: the connection, --json. If a command has an option of the same name
// (--key), that one is meant after the command's name.
std::span<const Option> common_options();
// Whether the option's value is the name of a file or directory, for completion.
bool takes_path(const Option& option);
// Whether the value is a time in milliseconds, which may also be given with a unit.
bool takes_duration(const Option& option);

class Arguments {
 public:
  // Parses the words after the program's name. Throws a usage error.
  static Arguments parse(std::span<const std::string> words, std::span<const CommandRow> rows);
  // The same for an incomplete line; `open` becomes the option that still needs its value.
  static Arguments parse_begun(std::span<const std::string> words, std::span<const CommandRow> rows,
                               const Option*& open);

  // Null if no command was given, which is only allowed with --help or --version.
  const CommandRow* command() const { return command_; }
  const std::vector<std::string>& operands() const { return operands_; }

  bool has(Bytes name) const { return value(name).has_value(); }
  // The last value of an option; "" for a flag.
  std::optional<std::string> value(Bytes name) const;
  std::vector<std::string> values(Bytes name) const;
  // The value of an option of every command, even if this command has another of the same name.
  std::optional<std::string> common_value(Bytes name) const;
  // Throws a usage error if more than one of these options was given.
  void at_most_one(std::initializer_list<const char*> names) const;
  // Throws a usage error if the value is not a number in this range.
  int64_t integer(Bytes name, int64_t usual, int64_t least, int64_t most) const;
  double number(Bytes name, double usual, double least, double most) const;

  // Appends those of `options` that the server takes, in the order in which they were given.
  void append_words(std::span<const Option> options, Words& to) const;

 private:
  // An option at the end that still needs its value becomes `open`; null: it is an error.
  void read(std::span<const std::string> words, std::span<const CommandRow> rows,
            const Option** open = nullptr);
  void take_option(std::span<const std::string> words, size_t& at, const Option** open);
  void check_operands() const;
  std::vector<std::string> values_of(const Option* option) const;

  const CommandRow* command_ = nullptr;
  std::vector<std::string> operands_;
  std::vector<std::pair<const Option*, std::string>> given_;  // options and their values
};

}  // namespace sluice::cli
