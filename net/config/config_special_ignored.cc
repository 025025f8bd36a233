// Parsers of Redis's directives that have no effect here and are more than one plain value.
#include <algorithm>

#include "engine/base/characters.h"
#include "engine/base/numbers.h"
#include "net/config/config_special.h"

namespace sluice::config_special {
namespace {

constexpr const char* kBadTemplate = "template format is invalid or contains unknown variables";
constexpr size_t kMaxHostnameBytes = 255;
constexpr int64_t kMostHz = 500;
constexpr uint64_t kLeastBacklogBytes = 16384;

// Parses one argument, yes or no.
Result<std::string> parse_flag(Arguments arguments) {
  const bool yes = equals_ignore_case(arguments[0], "yes");
  if (!yes && !equals_ignore_case(arguments[0], "no"))
    return invalid("argument must be 'yes' or 'no'");
  return std::string(yes ? "yes" : "no");
}

// A variable of the title template, and whether it shows anything.
struct TitleVariable {
  const char* name;
  bool shows;
};
constexpr TitleVariable kTitleVariables[] = {
    {"title", false},  // Redis checks a template with an empty title
    {"listen-addr", true}, {"server-mode", true}, {"port", true},
    {"tls-port", true},    {"unixsocket", false}, {"config-file", true}};

}  // namespace

Result<std::string> parse_activedefrag(Arguments arguments, ConfigDraft& draft) {
  const Result<std::string> value = parse_flag(arguments);
  // A file may come from a Redis that was built with it.
  if (!value.ok() || *value == "no" || draft.from_file) return value;
  return invalid(
      "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
      "modified Jemalloc like the one shipped by default with the Redis source distribution");
}

// There is no such file; the name is kept for CONFIG GET.
Result<std::string> parse_dbfilename(Arguments arguments, ConfigDraft&) {
  if (arguments[0].find('/') != std::string::npos) {
    return invalid("dbfilename can't be a path, just a filename");
  }
  return arguments[0];
}

Result<std::string> parse_hz(Arguments arguments, ConfigDraft&) {
  const std::optional<int64_t> hz = parse_i64(arguments[0]);
  if (!hz) return invalid("argument couldn't be parsed into an integer");
  if (*hz < 0 || *hz > INT32_MAX)
    return invalid("argument must be between 0 and 2147483647 inclusive");
  return std::to_string(std::clamp<int64_t>(*hz, 1, kMostHz));
}

Result<std::string> parse_backlog_size(Arguments arguments, ConfigDraft&) {
  const std::optional<uint64_t> bytes = parse_memory(arguments[0]);
  if (!bytes) return invalid("argument must be a memory value");
  if (*bytes < 1 || *bytes > INT64_MAX) {
    return invalid("argument must be between 1 and 9223372036854775807 inclusive");
  }
  return std::to_string(std::max(*bytes, kLeastBacklogBytes));
}

Result<std::string> parse_hostname(Arguments arguments, ConfigDraft&) {
  const std::string& name = arguments[0];
  if (name.size() > kMaxHostnameBytes) return invalid("Hostnames must be less than 256 characters");
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '.';
  });
  if (!good) return invalid("Hostnames may only contain alphanumeric characters, hyphens or dots");
  return name;
}

Result<std::string> parse_title_template(Arguments arguments, ConfigDraft&) {
  bool shows = false;
  Bytes rest = arguments[0];
  while (!rest.empty()) {
    if (!rest.starts_with('{') || rest.starts_with("{{")) {
      shows = shows || rest[0] != ' ';
      rest.remove_prefix(rest[0] == '{' ? 2 : 1);
      continue;
    }
    const size_t end = rest.find('}');
    const Bytes name = end == Bytes::npos ? Bytes() : rest.substr(1, end - 1);
    const auto* found =
        std::find_if(std::begin(kTitleVariables), std::end(kTitleVariables),
                     [name](const TitleVariable& variable) { return variable.name == name; });
    if (found == std::end(kTitleVariables)) return invalid(kBadTemplate);
    shows = shows || found->shows;
    rest.remove_prefix(end + 1);
  }
  if (!shows) return invalid(kBadTemplate);
  return arguments[0];
}

Result<std::string> parse_peer_tls(Arguments arguments, ConfigDraft& draft) {
  const Result<std::string> value = parse_flag(arguments);
  if (!value.ok() || *value == "no" || draft.from_file) return value;
  if (!draft.settings.tls_cert_file.empty()) return value;
  return invalid("Unable to update TLS configuration. Check server logs.");
}

Result<std::string> parse_oom_scores(Arguments arguments, ConfigDraft&) {
  if (arguments.size() != 3) return invalid(kWrongNumber);
  for (const std::string& argument : arguments) {
    const std::optional<int64_t> number = parse_long(argument);
    if (!number || *number < -2000 || *number > 2000) {
      return invalid("Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    }
  }
  return joined(arguments);
}

Result<std::string> parse_shutdown_options(Arguments arguments, ConfigDraft&) {
  static constexpr const char* kOptions[] = {"save", "nosave", "now", "force"};
  bool given[std::size(kOptions)] = {};
  bool good = !arguments.empty();
  for (const std::string& argument : arguments) {
    size_t i = 0;
    while (i < std::size(kOptions) && !equals_ignore_case(argument, kOptions[i])) ++i;
    if (i < std::size(kOptions)) {
      given[i] = true;
    } else if (!equals_ignore_case(argument, "default")) {
      good = false;
    }
  }
  if (!good) {
    return invalid("argument(s) must be one of the following: default, save, nosave, now, force");
  }
  if (given[0] && given[1]) {
    return invalid("shutdown options SAVE and NOSAVE can't be used simultaneously");
  }
  std::string value;
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (given[i]) value += (value.empty() ? "" : " ") + std::string(kOptions[i]);
  }
  return value.empty() ? "default" : value;
}

}  // namespace sluice::config_special
