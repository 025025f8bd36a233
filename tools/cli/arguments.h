// The command line of sluice: rows that say what may stand there, and what stood there.
//
// Rows are static data. Help and completion are made of them (help.h, completion.h), so a row is
// all that a new option takes. Pure but for what `parse` is given.
#pragma once

#include <cstdint>
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
  const char* value;  // what help calls its value; null: a flag
  const char* help;
  // The word of the server's command. Null: sluice's own.
  const char* word = nullptr;
  // What the value may be, separated by blanks; one that ends with = goes on. Null: anything.
  const char* choices = nullptr;
  // A value is two words for the server, with this between them; 0: one word.
  char separator = 0;
  bool repeats = false;
  bool tls = false;  // means nothing without --tls
  // A name that is a glob for the server: taken literally.
  bool literal = false;
};

struct CommandRow {
  const char* name;
  const char* operands;  // as help shows them
  size_t least_operands;
  size_t most_operands;
  const char* help;     // one line
  const char* details;  // further lines of its own help, or null
  std::vector<std::span<const Option>> options;
  int (*run)(Context& context);
  const char* example;  // a command line
  // What else its help says; null: nothing.
  std::string (*more_help)() = nullptr;
};

// A name where the server takes a glob: the option's word is the glob that matches it alone.
constexpr Option literal_option(const char* name, const char* value, const char* help,
                                const char* word) {
  Option option = {name, value, help, word};
  option.literal = true;
  return option;
}

// Options that every command has: the connection, --json. Where a command has one of the same name
// (--key), that one is meant behind the command's name.
std::span<const Option> common_options();
// Whether the value of an option is the name of a file or folder, for completion.
bool takes_path(const Option& option);
// Whether it is milliseconds, which may have a unit instead.
bool takes_duration(const Option& option);

class Arguments {
 public:
  // Reads what stands behind the program's name. Throws a usage error.
  static Arguments parse(std::span<const std::string> words, std::span<const CommandRow> rows);
  // The same of a line that is not complete yet: `open` is the option whose value is to come.
  static Arguments parse_begun(std::span<const std::string> words, std::span<const CommandRow> rows,
                               const Option*& open);

  // Null: there is none, which is only so with --help or --version.
  const CommandRow* command() const { return command_; }
  const std::vector<std::string>& operands() const { return operands_; }

  bool has(Bytes name) const { return value(name).has_value(); }
  // The last value of an option; of a flag "".
  std::optional<std::string> value(Bytes name) const;
  std::vector<std::string> values(Bytes name) const;
  // Of an option that every command has, even if this one has another of its name.
  std::optional<std::string> common_value(Bytes name) const;
  // Throws a usage error where it is no number of this range.
  int64_t integer(Bytes name, int64_t usual, int64_t least, int64_t most) const;
  double number(Bytes name, double usual, double least, double most) const;

  // Appends those of `options` that are the server's, in the order in which they stood there.
  void append_words(std::span<const Option> options, Words& to) const;

 private:
  void read(std::span<const std::string> words, std::span<const CommandRow> rows);
  void take_option(std::span<const std::string> words, size_t& at);
  void check_operands() const;
  std::vector<std::string> values_of(const Option* option) const;

  const CommandRow* command_ = nullptr;
  std::vector<std::string> operands_;
  std::vector<std::pair<const Option*, std::string>> given_;  // with their values
};

}  // namespace sluice::cli
