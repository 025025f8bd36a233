// CONFIG REWRITE: the configuration file, with the present values in it.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/quoting.h"
#include "net/config/config.h"
#include "net/config/config_special.h"
#include "net/process/replace_file.h"

namespace sluice {
namespace {

// A value in the form that the loader reads: in quotes if it needs them.
std::string file_value(const std::string& value) {
  const auto plain = [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\';
  };
  if (!value.empty() && std::all_of(value.begin(), value.end(), plain)) return value;
  return config_special::quoted(value);
}

// 256mb is easier to read than 268435456.
std::string memory_value(const std::string& value) {
  const uint64_t bytes = config_special::parse_memory(value).value_or(0);
  if (value.back() == '%' || bytes == 0 || bytes % 1024 != 0) return value;
  if (bytes % (1024 * 1024 * 1024) == 0) return std::to_string(bytes >> 30) + "gb";
  if (bytes % (1024 * 1024) == 0) return std::to_string(bytes >> 20) + "mb";
  return std::to_string(bytes >> 10) + "kb";
}

std::vector<std::string> directive_lines(const Directive& directive, const std::string& value) {
  const std::string name = directive.name;
  if (value.empty()) return {name + " \"\""};
  if (directive.type == ValueType::kMemory || directive.type == ValueType::kMemoryOrPercent) {
    return {name + ' ' + memory_value(value)};
  }
  if (!directive.multiple) return {name + ' ' + file_value(value)};
  const std::vector<std::string> parts = config_special::split_value(value);
  std::vector<std::string> lines;
  if (name == "http-token") {
    std::vector<TokenSetting> tokens;
    CHECK(add_token_settings(parts, tokens).ok());
    for (const TokenSetting& token : tokens) {
      lines.push_back(name);
      const std::vector<std::string> words = config_special::split_value(token_words(token));
      for (const std::string& word : words) lines.back() += ' ' + file_value(word);
    }
    return lines;
  }
  if (name == "client-output-buffer-limit") {
    // One line for each class, as usual in configuration files.
    for (size_t i = 0; i + 3 < parts.size(); i += 4) {
      lines.push_back(name + ' ' + (parts[i] == "slave" ? "replica" : parts[i]) + ' ' +
                      memory_value(parts[i + 1]) + ' ' + memory_value(parts[i + 2]) + ' ' +
                      parts[i + 3]);
    }
    return lines;
  }
  lines.push_back(name);
  for (const std::string& part : parts) lines.back() += ' ' + file_value(part);
  return lines;
}

// The directive of a file's line; nullptr for comments and unknown text.
const Directive* directive_of_line(std::string line) {
  const size_t start = line.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || line[start] == '#') return nullptr;
  std::vector<Bytes> words;
  if (!split_quoted_args(line, words) || words.empty()) return nullptr;
  return find_directive(words[0]);
}

std::string default_of(const Directive& directive) {
  static const Config defaults;
  const Config::Pairs pairs = defaults.get({directive.name});
  return pairs.empty() ? "" : pairs[0].second;
}

bool takes_several_lines(const Directive& directive) {
  const Bytes name = directive.name;
  return name == "save" || name == "client-output-buffer-limit" || name == "user" ||
         name == "http-token";
}

bool is_user(const Directive& directive) { return std::strcmp(directive.name, "user") == 0; }

// Rewrites a configuration file: a directive's first line gets its present value, its further lines
// are removed, and directives without a line that are not at their default are appended.
class Rewriter {
 public:
  // `only`: the lines of other directives stay unchanged; null: all are rewritten.
  Rewriter(const std::vector<std::string>& values,
           const std::optional<std::vector<std::string>>& user_lines, const Directive* only)
      : values_(values),
        user_lines_(user_lines),
        only_(only),
        done_(config_directives().size(), false) {}

  void take_line(const std::string& line) {
    const Directive* directive = directive_of_line(line);
    if (directive == nullptr || !replaceable(*directive)) {
      out_ += line + '\n';
      return;
    }
    if (done_[directive_index(*directive)]) return;
    if (!is_up_to_date(*directive, line)) return append(*directive);
    done_[directive_index(*directive)] = true;
    out_ += line + '\n';
  }

  std::string finish() {
    bool first = true;
    for (const Directive& directive : config_directives()) {
      const size_t index = directive_index(directive);
      if (!replaceable(directive) || done_[index]) continue;
      if (is_user(directive) ? user_lines_->empty() : values_[index] == default_of(directive)) {
        continue;
      }
      if (first && out_.find(kMark) == std::string::npos) out_ += kMark;
      first = false;
      append(directive);
    }
    return std::move(out_);
  }

 private:
  static constexpr const char* kMark = "\n# Generated by CONFIG REWRITE\n";

  bool replaceable(const Directive& directive) const {
    if (only_ != nullptr) return &directive == only_;
    if (is_user(directive)) return user_lines_.has_value();
    return directive.change != ChangeRule::kFileOnly;
  }

  // A line that still gives the present value is kept as written: "64mb", "auto", "./data".
  bool is_up_to_date(const Directive& directive, std::string line) const {
    if (takes_several_lines(directive)) return false;
    std::vector<Bytes> words;
    if (!split_quoted_args(line, words)) return false;
    ConfigDraft draft;
    draft.values.resize(values_.size());
    const std::vector<std::string> arguments(words.begin() + 1, words.end());
    const size_t index = directive_index(directive);
    return apply_directive(directive, arguments, draft).ok() &&
           draft.values[index] == values_[index];
  }

  void append(const Directive& directive) {
    const size_t index = directive_index(directive);
    done_[index] = true;
    for (const std::string& line :
         is_user(directive) ? *user_lines_ : directive_lines(directive, values_[index])) {
      out_ += line + '\n';
    }
  }

  const std::vector<std::string>& values_;
  const std::optional<std::vector<std::string>>& user_lines_;
  const Directive* only_;
  std::vector<bool> done_;
  std::string out_;
};

}  // namespace

Status Config::rewrite(const std::optional<std::vector<std::string>>& user_lines) {
  return rewrite_file(user_lines, nullptr);
}

Status Config::keep(const std::string& name) {
  return rewrite_file(std::nullopt, find_directive(name));
}

Status Config::rewrite_file(const std::optional<std::vector<std::string>>& user_lines,
                            const Directive* only) {
  MutexLock set_lock(set_mutex_);
  std::vector<std::string> values;
  std::string path;
  {
    MutexLock lock(mutex_);
    values = current_.values;
    path = file_;
  }
  if (path.empty()) return refusal("ERR The server is running without a config file");
  Rewriter rewriter(values, user_lines, only);
  std::ifstream stream(path);
  // The present contents are needed to preserve comments.
  if (!stream.is_open() && errno != ENOENT) {
    return refusal("ERR Rewriting config file: cannot read " + path + ": " + std::strerror(errno));
  }
  for (std::string line; std::getline(stream, line);) rewriter.take_line(line);
  if (stream.bad()) return refusal("ERR Rewriting config file: cannot read " + path);
  const Status status = replace_file(path, rewriter.finish());
  return status.ok() ? status : refusal("ERR Rewriting config file: " + status.message());
}

}  // namespace sluice
