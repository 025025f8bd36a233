// Parsers of Redis's directives that have no effect here and are more than one plain value.
#include <algorithm>

#include "engine/base/numbers.h"
#include "net/config/config_special.h"

namespace sluice::config_special {
namespace {

constexpr const char* kWrongNumber = "wrong number of arguments";
constexpr const char* kBadTemplate = "template format is invalid or contains unknown variables";
constexpr size_t kMaxHostnameBytes = 255;
constexpr int64_t kMostHz = 500;
constexpr uint64_t kLeastBacklogBytes = 16384;

// Parses one argument, yes or no. Returns an empty text and sets `value`, or an error.
std::string parse_flag(Arguments arguments, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
  const bool yes = equals_ignore_case(arguments[0], "yes");
  if (!yes && !equals_ignore_case(arguments[0], "no")) return "argument must be 'yes' or 'no'";
  value = yes ? "yes" : "no";
  return "";
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

std::string parse_activedefrag(Arguments arguments, ConfigDraft& draft, std::string& value) {
  const std::string error = parse_flag(arguments, value);
  // A file may come from a Redis that was built with it.
  if (!error.empty() || value == "no" || draft.from_file) return error;
  return "Active defragmentation cannot be enabled: it requires a Redis server compiled with a "
         "modified Jemalloc like the one shipped by default with the Redis source distribution";
}

// There is no such file; the name is kept for CONFIG GET.
std::string parse_dbfilename(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
  if (arguments[0].find('/') != std::string::npos) {
    return "dbfilename can't be a path, just a filename";
  }
  value = arguments[0];
  return "";
}

std::string parse_hz(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
  const std::optional<int64_t> hz = parse_i64(arguments[0]);
  if (!hz) return "argument couldn't be parsed into an integer";
  if (*hz < 0 || *hz > INT32_MAX) return "argument must be between 0 and 2147483647 inclusive";
  value = std::to_string(std::clamp<int64_t>(*hz, 1, kMostHz));
  return "";
}

std::string parse_backlog_size(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
  const std::optional<uint64_t> bytes = parse_memory(arguments[0]);
  if (!bytes) return "argument must be a memory value";
  if (*bytes < 1 || *bytes > INT64_MAX) {
    return "argument must be between 1 and 9223372036854775807 inclusive";
  }
  value = std::to_string(std::max(*bytes, kLeastBacklogBytes));
  return "";
}

std::string parse_hostname(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
  const std::string& name = arguments[0];
  if (name.size() > kMaxHostnameBytes) return "Hostnames must be less than 256 characters";
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  });
  if (!good) return "Hostnames may only contain alphanumeric characters, hyphens or dots";
  value = name;
  return "";
}

std::string parse_title_template(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 1) return kWrongNumber;
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
    if (found == std::end(kTitleVariables)) return kBadTemplate;
    shows = shows || found->shows;
    rest.remove_prefix(end + 1);
  }
  if (!shows) return kBadTemplate;
  value = arguments[0];
  return "";
}

std::string parse_peer_tls(Arguments arguments, ConfigDraft& draft, std::string& value) {
  const std::string error = parse_flag(arguments, value);
  if (!error.empty() || value == "no" || draft.from_file) return error;
  if (!draft.settings.tls_cert_file.empty()) return "";
  return "Unable to update TLS configuration. Check server logs.";
}

std::string parse_oom_scores(Arguments arguments, ConfigDraft&, std::string& value) {
  if (arguments.size() != 3) return kWrongNumber;
  for (const std::string& argument : arguments) {
    const std::optional<int64_t> number = parse_long(argument);
    if (!number || *number < -2000 || *number > 2000) {
      return "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
    }
  }
  value = joined(arguments);
  return "";
}

std::string parse_shutdown_options(Arguments arguments, ConfigDraft&, std::string& value) {
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
    return "argument(s) must be one of the following: default, save, nosave, now, force";
  }
  value.clear();
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (given[i]) value += (value.empty() ? "" : " ") + std::string(kOptions[i]);
  }
  if (value.empty()) value = "default";
  return "";
}

}  // namespace sluice::config_special
