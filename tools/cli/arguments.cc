#include "tools/cli/arguments.h"

#include <algorithm>

#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
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
    {"-n", "DB", "the database (0)"},
    {"--user", "NAME", "the ACL user"},
    {"--pass", "PASSWORD", "its password; better in SLUICE_AUTH or REDISCLI_AUTH"},
    {"--tls", nullptr, "speak TLS, to the server's tls-port"},
    tls_option("--sni", "HOST", "the name that its certificate must have; otherwise that of -h"),
    tls_option("--cacert", "FILE", "who may have signed it; otherwise the system's store"),
    tls_option("--cacertdir", "DIR", "a directory of such, by hash"),
    tls_option("--insecure", nullptr, "believe any certificate"),
    tls_option("--cert", "FILE", "this client's own certificate"),
    tls_option("--key", "FILE", "its private key; before COMMAND, where that has a --key too"),
    tls_option("--tls-ciphers", "LIST", "ciphers up to TLSv1.2, as OpenSSL lists them"),
    tls_option("--tls-ciphersuites", "LIST", "the same for TLSv1.3"),
    {"--json", nullptr, "print JSON, as HTTP.md has it"},
    {"--help", nullptr, "what a command does and takes"},
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

}  // namespace

std::span<const Option> common_options() { return kCommonOptions; }

bool takes_path(const Option& option) {
  if (option.value == nullptr) return false;
  const Bytes value = option.value;
  return value == "FILE" || value == "DIR" || value == "SOCKET";
}

void Arguments::take_option(std::span<const std::string> words, size_t& at) {
  std::string name = words[at];
  std::optional<std::string> value;
  const size_t equals = name.find('=');
  if (name.starts_with("--") && equals != std::string::npos) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  const Option* option = find_option(command_, name);
  if (option == nullptr) {
    const std::string of = command_ == nullptr ? "" : std::string(" of ") + command_->name;
    throw usage_error("there is no option " + name + of);
  }
  if (option->value == nullptr) {
    if (value) throw usage_error(name + " takes no value");
    value = "";
  } else if (!value) {
    if (at + 1 == words.size()) throw usage_error(name + " takes a value, " + option->value);
    value = words[++at];
  }
  if (option->separator != 0 && value->find(option->separator) == std::string::npos) {
    throw usage_error(name + " takes " + option->value + ", not " + *value);
  }
  const bool again = !values_of(option).empty();
  if (again && !option->repeats) throw usage_error(name + " stands there twice");
  given_.emplace_back(option, *value);
}

void Arguments::check_operands() const {
  if (command_ == nullptr || has("--help")) return;
  const size_t count = operands_.size();
  if (count >= command_->least_operands && count <= command_->most_operands) return;
  throw usage_error(std::string("usage: sluice ") + command_->name + " " + command_->operands);
}

Arguments Arguments::parse(std::span<const std::string> words, std::span<const CommandRow> rows) {
  Arguments parsed;
  bool options_end = false;
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!options_end && word == "--") {
      options_end = true;
    } else if (!options_end && word.size() > 1 && word[0] == '-') {
      parsed.take_option(words, at);
    } else if (parsed.command_ == nullptr) {
      const auto found = std::find_if(rows.begin(), rows.end(),
                                      [&](const CommandRow& row) { return word == row.name; });
      if (found == rows.end()) throw usage_error("there is no command " + word);
      parsed.command_ = &*found;
    } else {
      parsed.operands_.push_back(word);
    }
  }
  parsed.check_operands();
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

int64_t Arguments::integer(Bytes name, int64_t usual, int64_t least, int64_t most) const {
  const auto text = value(name);
  if (!text) return usual;
  const auto number = parse_i64(*text);
  if (number && *number >= least && *number <= most) return *number;
  throw usage_error(std::string(name) + " takes a whole number from " + std::to_string(least) +
                    " to " + std::to_string(most) + ", not " + *text);
}

double Arguments::number(Bytes name, double usual, double least, double most) const {
  const auto text = value(name);
  if (!text) return usual;
  const auto number = parse_double(*text);
  if (number && *number >= least && *number <= most) return *number;
  throw usage_error(std::string(name) + " takes a number from " + format_double(least) + " to " +
                    format_double(most) + ", not " + *text);
}

void Arguments::append_words(std::span<const Option> options, Words& to) const {
  for (const auto& [option, value] : given_) {
    const bool is_one =
        std::any_of(options.begin(), options.end(),
                    [wanted = option](const Option& one) { return &one == wanted; });
    if (!is_one || option->word == nullptr) continue;
    to.emplace_back(option->word);
    if (option->separator != 0) {
      const size_t between = value.find(option->separator);
      to.push_back(value.substr(0, between));
      to.push_back(value.substr(between + 1));
    } else if (option->value != nullptr) {
      to.push_back(option->literal ? glob_escape(value) : value);
    }
  }
}

}  // namespace sluice::cli
