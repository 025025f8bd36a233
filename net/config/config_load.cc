// Loading: files, standard input and command-line arguments are read into one draft, which is
// published if all of it is valid.
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "engine/base/edit_distance.h"
#include "engine/base/quoting.h"
#include "net/config/config.h"
#include "net/config/config_special.h"

namespace sluice {

struct Config::Source {
  const std::string& name;
  int line;
  int depth;

  ConfigError error(const std::string& text, std::string message, std::string expected = "") const {
    return {name, line, text, std::move(message), std::move(expected)};
  }
};

namespace {

constexpr int kMaxIncludeDepth = 16;

std::string trimmed(const std::string& line) {
  const size_t from = line.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return line.substr(from, line.find_last_not_of(" \t\r\n") - from + 1);
}

std::string similar_directive(const std::string& name) {
  constexpr size_t kLongestName = 64;
  if (name.size() > kLongestName) return "";
  constexpr size_t kMost = 2;  // More edits than that are no typing error.
  size_t best = kMost + 1;
  std::string found;
  for (const Directive& directive : config_directives()) {
    const size_t distance = edit_distance(name, directive.name, kMost);
    if (distance >= best) continue;
    best = distance;
    found = directive.name;
  }
  return found.empty() ? "" : "'" + found + "'";
}

bool is_option(const std::string& argument) { return argument.rfind("--", 0) == 0; }

struct CommandLine {
  std::string file;
  bool standard_input = false;
  std::vector<std::string> options;  // Lines as they would be written in a file.
};

// Parses the arguments as redis-server does. The argument after an option's name is its value even
// if it begins with two dashes (as a password may), except after --save, which then means `save
// ""`. Further values follow up to the next option. "--port 6380" in one argument is a whole
// option.
CommandLine read_command_line(const std::vector<std::string>& arguments) {
  CommandLine result;
  size_t at = 0;
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0) {
    result.file = arguments[0];
    at = 1;
  }
  bool value_due = false;
  for (; at < arguments.size(); ++at) {
    const std::string& argument = arguments[at];
    if (argument == "-" && !value_due && result.options.empty()) {
      result.standard_input = true;
      continue;
    }
    if (value_due || !is_option(argument)) {
      // A stray first value becomes a line of its own, which the loader then rejects.
      if (result.options.empty()) result.options.emplace_back();
      result.options.back() += ' ' + config_special::quoted(argument);
      value_due = false;
      continue;
    }
    result.options.push_back(argument.substr(2));
    const std::string name = trimmed(argument);
    value_due = name.find_first_of(" \t") == std::string::npos;
    const bool is_last = at + 1 == arguments.size();
    if (equals_ignore_case(name, "--save") && (is_last || is_option(arguments[at + 1]))) {
      result.options.back() += " \"\"";
      value_due = false;
    }
  }
  return result;
}

}  // namespace

std::string ConfigError::text() const {
  std::string out = file.empty() ? "command line" : file;
  if (!file.empty() && line > 0) out += ':' + std::to_string(line);
  if (!directive.empty()) out += ": '" + (file.empty() ? "--" : std::string()) + directive + '\'';
  out += ": " + message;
  if (!expected.empty()) out += "; expected " + expected;
  return out;
}

Config::Loaded Config::include(const std::string& pattern, const Source& source,
                               ConfigDraft& draft) {
  if (source.depth >= kMaxIncludeDepth) {
    return source.error("include " + pattern, "files include each other more than 16 deep");
  }
  if (pattern.find_first_of("*?[") == std::string::npos) {
    return load_path(pattern, source.depth + 1, draft);
  }
  // As in Redis, a pattern may match nothing.
  glob_t matches{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  for (const std::string& path : paths) {
    if (Loaded error = load_path(path, source.depth + 1, draft)) return error;
  }
  return std::nullopt;
}

namespace {

// A line as a message may show it: without secrets and what follows them.
std::string shown_line(const std::string& text) {
  const std::string name = text.substr(0, text.find_first_of(" \t"));
  const Directive* directive = find_directive(name);
  return directive != nullptr && directive->secret ? name + " (redacted)" : text;
}

}  // namespace

Config::Loaded Config::load_line(const std::string& line, const Source& source,
                                 ConfigDraft& draft) {
  const std::string text = trimmed(line);
  if (text.empty() || text[0] == '#') return std::nullopt;
  std::string decoded = text;
  std::vector<Bytes> words;
  if (!split_quoted_args(decoded, words)) {
    return source.error(shown_line(text), "Unbalanced quotes in configuration line");
  }
  if (words.empty()) return std::nullopt;
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  if (equals_ignore_case(words[0], "include")) {
    if (arguments.size() != 1) return source.error(text, "wrong number of arguments", "one path");
    return include(arguments[0], source, draft);
  }
  const Directive* directive = find_directive(words[0]);
  if (directive == nullptr) {
    return source.error(text, "unknown directive", similar_directive(std::string(words[0])));
  }
  const Status status = apply_directive(*directive, arguments, draft);
  if (status.ok()) return std::nullopt;
  return source.error(shown_line(text), status.message(), expected_value(*directive));
}

Config::Loaded Config::load_stream(std::istream& stream, const std::string& name, int depth,
                                   ConfigDraft& draft) {
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (Loaded error = load_line(line, {name, number, depth}, draft)) return error;
  }
  if (stream.bad()) return ConfigError{name, 0, "", "cannot be read completely", ""};
  return std::nullopt;
}

Config::Loaded Config::load_path(const std::string& path, int depth, ConfigDraft& draft) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return ConfigError{path, 0, "", "is a directory", "a configuration file"};
  }
  std::ifstream stream(path);
  if (!stream) {
    return ConfigError{path, 0, "", std::strerror(errno), "a configuration file that can be read"};
  }
  return load_stream(stream, path, depth, draft);
}

Status Config::check_together(const Settings& settings) {
  if (!settings.aclfile.empty() && !settings.users.empty()) {
    return invalid("both user lines and an aclfile are given; use only one of them");
  }
  if (settings.etcd_user.empty() != settings.etcd_password_file.empty()) {
    return invalid("etcd-user and etcd-password-file need each other");
  }
  if (settings.journal == JournalKind::kLocal) {
    if (settings.sentinel_port == 0) return {};
    return invalid("sentinel-port needs journal etcd: without it there is no group of nodes");
  }
  if (settings.etcd_endpoints.empty()) {
    return invalid("journal etcd needs etcd-endpoints, such as http://10.0.0.1:2379");
  }
  if (!settings.appendonly) {
    return invalid("journal etcd needs appendonly yes: the journal is all that standbys have");
  }
  return {};
}

// Runs `fill` on a draft of the present configuration, and publishes the draft on success. `name`:
// of the file for an error of the whole; empty: the command line.
Config::Loaded Config::load(const std::string& name,
                            const std::function<Loaded(ConfigDraft&)>& fill) {
  MutexLock set_lock(set_mutex_);
  ConfigDraft draft;
  {
    MutexLock lock(mutex_);
    draft = current_;
  }
  draft.from_file = true;
  if (Loaded error = fill(draft)) return error;
  const Status together = check_together(draft.settings);
  if (!together.ok()) return ConfigError{name, 0, "", together.message(), ""};
  draft.from_file = false;
  MutexLock lock(mutex_);
  publish(std::move(draft));
  return std::nullopt;
}

Config::Loaded Config::load_text(Bytes text, const std::string& name) {
  return load(name, [&](ConfigDraft& draft) {
    std::istringstream stream{std::string(text)};
    return load_stream(stream, name, 0, draft);
  });
}

Config::Loaded Config::apply_arguments(const std::vector<std::string>& arguments) {
  const CommandLine line = read_command_line(arguments);
  Loaded error = load(line.file, [&](ConfigDraft& draft) -> Loaded {
    if (!line.file.empty()) {
      if (Loaded bad = load_path(line.file, 0, draft)) return bad;
    }
    if (line.standard_input) {
      if (Loaded bad = load_stream(std::cin, "standard input", 0, draft)) return bad;
    }
    static const std::string kCommandLine;
    for (const std::string& option : line.options) {
      if (Loaded bad = load_line(option, {kCommandLine, 0, 0}, draft)) return bad;
    }
    return std::nullopt;
  });
  if (error || line.file.empty()) return error;
  std::error_code ignored;
  MutexLock lock(mutex_);
  file_ = std::filesystem::absolute(line.file, ignored).lexically_normal().string();
  return std::nullopt;
}

Config::Loaded Config::apply_arguments(int argc, const char* const* argv) {
  return apply_arguments(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

}  // namespace sluice
