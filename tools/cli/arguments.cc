#include "tools/cli/arguments.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/durations.h"
#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "engine/queue/field_help.h"
#include "tools/cli/failure.h"

namespace sluice::cli {

namespace {

constexpr Option tls_option(const char* name, const char* value, const char* help) {
  Option option = {name, value, help};
  option.tls = true;
  return option;
}

constexpr Option kCommonOptions[] = {
    {"-h", "HOST", "the server's host (127.0.0.1)"},
    {"-p", "PORT", "its port (6379)"},
    {"-s", "SOCKET", "its Unix socket, instead of host and port"},
    {"--sentinel", "HOST:PORT,...", "ask these for the primary, instead of host and port"},
    {"--sentinel-name", "NAME", "the group's name there (mymaster)"},
    {"-n", "DB", "the database (0)"},
    {"--user", "NAME", "the ACL user"},
    {"--pass", "PASSWORD", "the user's password; SLUICE_AUTH or REDISCLI_AUTH is safer"},
    {"--tls", nullptr, "use TLS (connect to the server's tls-port)"},
    tls_option("--sni", "HOST",
               "the name that the server's certificate must have; default: that of -h"),
    tls_option("--cacert", "FILE", "trusted certificate authorities; default: the system's store"),
    tls_option("--cacertdir", "DIR", "a directory of trusted authorities, named by hash"),
    tls_option("--insecure", nullptr, "accept any certificate"),
    tls_option("--cert", "FILE", "this client's own certificate"),
    tls_option("--key", "FILE", "its private key; goes before COMMAND if that has a --key too"),
    tls_option("--tls-ciphers", "LIST", "ciphers up to TLSv1.2, in OpenSSL's syntax"),
    tls_option("--tls-ciphersuites", "LIST", "the same for TLSv1.3"),
    {"--json", nullptr, "print JSON in the format of HTTP.md"},
    {"--help", nullptr, "show help for a command"},
};

const Option* find_in(std::span<const Option> options, Bytes name) {
  for (const Option& option : options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

const Option* find_option(const CommandRow* command, Bytes name) {
  if (command != nullptr) {
    for (const auto& group : command->options) {
      if (const Option* option = find_in(group, name)) return option;
    }
  }
  return find_in(common_options(), name);
}

// `what` says that the given word is not one of the names.
Failure unknown_word(const std::string& what, const std::string& given,
                     std::vector<std::string> names) {
  Failure failure = usage_error(what);
  failure.nearest = nearest_word(given, names);
  failure.text += suggestion(failure.nearest);
  failure.allowed = std::move(names);
  return failure;
}

Failure no_option(const std::string& given, const CommandRow* command) {
  std::vector<std::string> names;
  for (const Option& option : kCommonOptions) names.emplace_back(option.name);
  if (command != nullptr) {
    for (const auto& group : command->options) {
      for (const Option& option : group) names.emplace_back(option.name);
    }
  }
  const std::string of = command == nullptr ? "" : std::string(" of ") + command->name;
  return unknown_word("there is no option " + given + of, given, std::move(names));
}

// How a value is shown that is refused.
std::string shown(const std::string& value) { return value.empty() ? "\"\"" : value; }

Failure no_command(const std::string& given, std::span<const CommandRow> rows) {
  std::vector<std::string> names;
  for (const CommandRow& row : rows) names.emplace_back(row.name);
  return unknown_word("there is no command " + given, given, std::move(names));
}

}  // namespace

std::span<const Option> common_options() { return kCommonOptions; }

bool takes_path(const Option& option) {
  if (option.value == nullptr) return false;
  const Bytes value = option.value;
  return value == "FILE" || value == "DIR" || value == "SOCKET";
}

bool takes_duration(const Option& option) {
  if (option.value == nullptr) return false;
  const Bytes value = option.value;
  return value == "MS" || value == "BASE:MAX";
}

namespace {

bool is_choice(const std::string& value, std::span<const std::string> choices) {
  return std::any_of(choices.begin(), choices.end(), [&](const std::string& choice) {
    return equals_ignore_case(choice, value) ||
           (choice.ends_with('=') && value.starts_with(choice) && value != choice);
  });
}

// Each part of a list must be one of the choices.
void check_choice(const Option& option, const std::string& value) {
  if (option.choices == nullptr) return;
  const std::vector<std::string> choices = split_words(option.choices);
  const bool is_list = Bytes(option.value).find(',') != Bytes::npos;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = is_list ? std::min(value.find(',', at), value.size()) : value.size();
    const std::string part = value.substr(at, end - at);
    at = end + 1;
    if (is_choice(part, choices)) continue;
    const std::string nearest = nearest_word(part, choices);
    throw Failure{kUsageError,
                  std::string(option.name) + " takes " + listed(choices) + ", not " + shown(part) +
                      suggestion(nearest),
                  choices, nearest};
  }
}

}  // namespace

void Arguments::take_option(std::span<const std::string> words, size_t& at, const Option** open) {
  std::string name = words[at];
  std::optional<std::string> value;
  const size_t equals = name.find('=');
  if (name.starts_with("--") && equals != std::string::npos) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  const Option* option = find_option(command_, name);
  if (option == nullptr) throw no_option(name, command_);
  if (option->value == nullptr) {
    if (value) throw usage_error(name + " takes no value");
    value = "";
  } else if (!value) {
    if (at + 1 != words.size()) {
      value = words[++at];
    } else if (open != nullptr) {
      *open = option;
      return;
    } else {
      throw usage_error(name + " requires a value, " + option->value);
    }
  }
  if (option->separator != 0 && value->find(option->separator) == std::string::npos) {
    throw usage_error(name + " takes " + option->value + ", not " + shown(*value));
  }
  // As of a variable that is not set. It would mean the default, which is another server or user.
  const bool says_where = option->value != nullptr && find_in(kCommonOptions, name) == option;
  if (says_where && value->empty() && name != "--pass") {
    throw usage_error(name + " requires a value, " + option->value + ", and not \"\"");
  }
  check_choice(*option, *value);
  const bool again = !values_of(option).empty();
  if (again && !option->repeats) throw usage_error(name + " is given twice");
  given_.emplace_back(option, *value);
}

void Arguments::check_operands() const {
  if (command_ == nullptr || has("--help")) return;
  const std::string operands = command_->operands;
  const std::vector<std::string> words = split_words(operands);
  const auto least = std::count_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word[0] != '['; });
  const bool repeats = operands.find("...") != std::string::npos;
  const size_t count = operands_.size();
  if (count >= static_cast<size_t>(least) && (repeats || count <= words.size())) return;
  throw usage_error(std::string("usage: sluice ") + command_->name +
                    (operands.empty() ? "" : " " + operands));
}

void Arguments::read(std::span<const std::string> words, std::span<const CommandRow> rows,
                     const Option** open) {
  bool options_end = false;
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!options_end && word == "--") {
      options_end = true;
    } else if (!options_end && word.size() > 1 && word[0] == '-') {
      take_option(words, at, open);
    } else if (command_ == nullptr) {
      const auto found = std::find_if(rows.begin(), rows.end(),
                                      [&](const CommandRow& row) { return word == row.name; });
      if (found == rows.end()) throw no_command(word, rows);
      command_ = &*found;
    } else {
      operands_.push_back(word);
    }
  }
}

Arguments Arguments::parse(std::span<const std::string> words, std::span<const CommandRow> rows) {
  Arguments parsed;
  parsed.read(words, rows);
  parsed.check_operands();
  return parsed;
}

Arguments Arguments::parse_begun(std::span<const std::string> words,
                                 std::span<const CommandRow> rows, const Option*& open) {
  Arguments parsed;
  open = nullptr;
  parsed.read(words, rows, &open);
  return parsed;
}

std::vector<std::string> Arguments::values_of(const Option* option) const {
  std::vector<std::string> values;
  for (const auto& [given, value] : given_) {
    if (given == option) values.push_back(value);
  }
  return values;
}

std::vector<std::string> Arguments::values(Bytes name) const {
  return values_of(find_option(command_, name));
}

std::optional<std::string> Arguments::value(Bytes name) const {
  const std::vector<std::string> all = values(name);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<std::string> Arguments::common_value(Bytes name) const {
  const std::vector<std::string> all = values_of(find_in(common_options(), name));
  return all.empty() ? std::nullopt : std::optional(all.back());
}

void Arguments::at_most_one(std::initializer_list<const char*> names) const {
  std::string other;
  for (const char* name : names) {
    if (!has(name)) continue;
    if (!other.empty()) throw usage_error(other + " and " + name + " exclude each other");
    other = name;
  }
}

int64_t Arguments::integer(Bytes name, int64_t usual, int64_t least, int64_t most) const {
  const auto text = value(name);
  if (!text) return usual;
  const bool duration = takes_duration(*find_option(command_, name));
  const auto number = duration ? parse_duration_ms(*text) : parse_i64(*text);
  if (number && *number >= least && *number <= most) return *number;
  throw usage_error(std::string(name) + " takes " + (duration ? "milliseconds" : "a whole number") +
                    " from " + std::to_string(least) + " to " + std::to_string(most) +
                    (duration ? ", or a number with a unit (5s, 1h)" : "") + ", not " +
                    shown(*text));
}

double Arguments::number(Bytes name, double usual, double least, double most) const {
  const auto text = value(name);
  if (!text) return usual;
  const auto number = parse_double(*text);
  if (number && *number >= least && *number <= most) return *number;
  char bounds[64];
  std::snprintf(bounds, sizeof(bounds), "from %g to %g", least, most);
  throw usage_error(std::string(name) + " takes a number " + bounds + ", not " + shown(*text));
}

void Arguments::append_words(std::span<const Option> options, Words& to) const {
  for (const auto& [option, value] : given_) {
    const bool is_one =
        std::any_of(options.begin(), options.end(),
                    [wanted = option](const Option& one) { return &one == wanted; });
    if (!is_one || option->word == nullptr) continue;
    to.emplace_back(option->word);
    if (option->separator != 0) {
      const std::string plain = takes_duration(*option) ? with_plain_durations(value) : value;
      const size_t between = plain.find(option->separator);
      to.push_back(plain.substr(0, between));
      to.push_back(plain.substr(between + 1));
    } else if (takes_duration(*option)) {
      to.push_back(with_plain_durations(value));
    } else if (option->value != nullptr) {
      to.push_back(option->literal ? glob_escape(value) : value);
    }
  }
}

}  // namespace sluice::cli
