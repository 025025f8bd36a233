#include "net/config/config_special.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "engine/access/acl.h"
#include "engine/base/hex.h"
#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/keyspace/events.h"

namespace sluice::config_special {
namespace {

constexpr size_t kMaxBindAddresses = 16;
constexpr int64_t kMaxIoThreads = 128;

// As in Redis: strtod over the whole argument.
std::optional<double> parse_decimal(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

std::optional<ClientClass> client_class(Bytes name) {
  if (equals_ignore_case(name, "normal")) return kNormalClient;
  if (equals_ignore_case(name, "slave") || equals_ignore_case(name, "replica")) {
    return kReplicaClient;
  }
  if (equals_ignore_case(name, "pubsub")) return kPubsubClient;
  return std::nullopt;
}

std::string output_limits_text(const Settings& settings) {
  static constexpr const char* kNames[kClientClasses] = {"normal", "slave", "pubsub"};
  std::string text;
  for (size_t i = 0; i < kClientClasses; ++i) {
    const OutputBufferLimit& limit = settings.output_buffer_limits[i];
    if (i != 0) text += ' ';
    text += kNames[i];
    text += ' ' + std::to_string(limit.hard_bytes);
    text += ' ' + std::to_string(limit.soft_bytes);
    text += ' ' + std::to_string(limit.soft_seconds);
  }
  return text;
}

struct EventLetter {
  char letter;
  uint32_t bits;
};
// In the order in which Redis prints them: those of A first, then the others.
constexpr EventLetter kEventLetters[] = {
    {'g', kEventGeneric},  {'$', kEventString}, {'l', kEventList},    {'s', kEventSet},
    {'h', kEventHash},     {'z', kEventZset},   {'x', kEventExpired}, {'e', kEventEvicted},
    {'t', kEventStream},   {'d', kEventModule}, {'n', kEventNew},     {'K', kEventKeyspace},
    {'E', kEventKeyevent}, {'m', kEventKeyMiss}};

std::string events_text(uint32_t events) {
  // Redis omits the n beside A. Programs may compare the text, so this does the same.
  const bool all = (events & kEventAll) == kEventAll;
  std::string text = all ? "A" : "";
  for (const EventLetter& letter : kEventLetters) {
    if (all && (letter.bits & (kEventAll | kEventNew)) != 0) continue;
    if ((events & letter.bits) != 0) text += letter.letter;
  }
  return text;
}

// As Redis shows a percentile: six decimals, without the zeros at the end.
std::string percentile_text(double percent) {
  char digits[32];
  const int size = std::snprintf(digits, sizeof digits, "%.6f", percent);
  Bytes text(digits, static_cast<size_t>(size));
  while (text.ends_with('0')) text.remove_suffix(1);
  if (text.ends_with('.')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

std::string joined(Arguments parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ' ';
    text += part;
  }
  return text;
}

std::optional<int64_t> parse_long(const std::string& text) {
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

std::optional<uint64_t> parse_memory(Bytes text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = to_lower(text.substr(digits));
  uint64_t scale = 1;
  if (unit == "k") {
    scale = 1000;
  } else if (unit == "kb") {
    scale = 1024;
  } else if (unit == "m") {
    scale = 1000 * 1000;
  } else if (unit == "mb") {
    scale = 1024 * 1024;
  } else if (unit == "g") {
    scale = 1000ULL * 1000 * 1000;
  } else if (unit == "gb") {
    scale = 1024ULL * 1024 * 1024;
  } else if (!unit.empty() && unit != "b") {
    return std::nullopt;
  }
  uint64_t number = 0;
  if (digits > 0) {
    const auto parsed = std::from_chars(text.data(), text.data() + digits, number);
    if (parsed.ec == std::errc::result_out_of_range) return UINT64_MAX;
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, scale, &bytes)) return UINT64_MAX;
  return bytes;
}

std::vector<std::string> split_value(Bytes text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    parts.emplace_back(text.substr(0, blank));
    if (blank == Bytes::npos) return parts;
    text.remove_prefix(blank + 1);
    if (text.empty()) parts.emplace_back();
  }
  return parts;
}

std::string quoted(Bytes text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < ' ' || byte == 0x7f) {
      out += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

namespace {

Result<std::string> parse_bind_into(Arguments arguments, std::vector<std::string>& bind) {
  if (arguments.size() > kMaxBindAddresses) return invalid("Too many bind addresses specified.");
  if (arguments.size() == 1 && arguments[0].empty()) arguments = {};
  bind.assign(arguments.begin(), arguments.end());
  return joined(arguments);
}

}  // namespace

Result<std::string> parse_bind(Arguments arguments, ConfigDraft& draft) {
  return parse_bind_into(arguments, draft.settings.bind);
}

Result<std::string> parse_http_bind(Arguments arguments, ConfigDraft& draft) {
  return parse_bind_into(arguments, draft.settings.http_bind);
}

Result<std::string> parse_http_host(Arguments arguments, ConfigDraft& draft) {
  if (arguments.size() == 1 && arguments[0].empty()) arguments = {};
  for (const std::string& host : arguments) {
    const bool has_port = !host.starts_with('[') && host.find(':') != std::string::npos;
    if (host.empty() || has_port)
      return invalid("a host must be a name or an address, without a port");
  }
  draft.settings.http_hosts.assign(arguments.begin(), arguments.end());
  return joined(arguments);
}

Result<std::string> parse_http_token(Arguments arguments, ConfigDraft& draft) {
  // Lines of a file add tokens; CONFIG SET replaces them all.
  std::vector<TokenSetting>& tokens = draft.settings.http_tokens;
  if (!draft.from_file) tokens.clear();
  const Status status = add_token_settings(arguments, tokens);
  if (!status.ok()) return status;
  return token_settings_text(tokens);
}

Result<std::string> parse_port_number(Arguments arguments, int64_t& port) {
  if (equals_ignore_case(arguments[0], "auto")) {
    port = Settings::kPortAuto;
    return std::string("auto");
  }
  const std::optional<int64_t> number = parse_i64(arguments[0]);
  if (!number) return invalid("argument couldn't be parsed into an integer");
  if (*number < 0 || *number > kMaxPort)
    return invalid("argument must be between 0 and 65535 inclusive");
  port = *number;
  return std::to_string(port);
}

Result<std::string> parse_otlp_endpoint(Arguments arguments, ConfigDraft& draft) {
  std::optional<HttpEndpoint> endpoint;
  if (!arguments[0].empty()) {
    // OTLP's default port and path, if the URL has none.
    Result<HttpEndpoint> parsed = parse_http_endpoint(arguments[0], {"", "4318", "/v1/metrics"});
    if (!parsed.ok()) return parsed.status();
    endpoint = std::move(*parsed);
  }
  draft.settings.otlp.endpoint = std::move(endpoint);
  return arguments[0];
}

Result<std::string> parse_otlp_header(Arguments arguments, ConfigDraft& draft) {
  if (arguments.size() != 2) return invalid(kWrongNumber);
  const Status status = check_http_header(arguments[0], arguments[1]);
  if (!status.ok()) return status;
  draft.settings.otlp.headers.emplace_back(arguments[0], arguments[1]);
  return std::string();
}

Result<std::string> parse_io_threads(Arguments arguments, ConfigDraft& draft) {
  int64_t threads = 0;
  if (equals_ignore_case(arguments[0], "auto")) {
    // One core is left for the commit thread, RocksDB and the kernel.
    const int64_t cores = std::thread::hardware_concurrency();
    threads = std::clamp<int64_t>(cores - 1, 1, kMaxIoThreads);
  } else {
    const std::optional<int64_t> number = parse_i64(arguments[0]);
    if (!number) return invalid("argument couldn't be parsed into an integer");
    if (*number < 1 || *number > kMaxIoThreads)
      return invalid("argument must be between 1 and 128 inclusive");
    threads = *number;
  }
  draft.settings.io_threads = threads;
  return std::to_string(threads);
}

Result<std::string> parse_dir(Arguments arguments, ConfigDraft& draft) {
  if (arguments[0].empty()) return invalid("argument must not be empty");
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(arguments[0], error);
  if (error) return invalid(error.message());
  path = path.lexically_normal();
  // "data/" and "data" are one directory, and CONFIG GET shows it as getcwd() would.
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  draft.settings.dir = path.string();
  return path.string();
}

Result<std::string> parse_save(Arguments arguments, ConfigDraft& draft) {
  if (arguments.size() == 1 && arguments[0].empty()) arguments = {};
  if (arguments.size() % 2 != 0) return invalid("Invalid save parameters");
  std::vector<SaveSetting> rules;
  // Lines of a file add up, after the first of them has discarded the default rules; a line with ""
  // discards what came before. CONFIG SET replaces all.
  if (draft.from_file && draft.save_given && !arguments.empty()) rules = draft.settings.save;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::optional<int64_t> seconds = parse_long(arguments[i]);
    const std::optional<int64_t> changes = parse_long(arguments[i + 1]);
    if (!seconds || !changes || *seconds < 1 || *changes < 0)
      return invalid("Invalid save parameters");
    rules.push_back({*seconds, *changes});
  }
  std::string value;
  for (const SaveSetting& rule : rules) {
    if (!value.empty()) value += ' ';
    value += std::to_string(rule.seconds) + ' ' + std::to_string(rule.changes);
  }
  draft.settings.save = std::move(rules);
  if (draft.from_file) draft.save_given = true;
  return value;
}

Result<std::string> parse_output_limits(Arguments arguments, ConfigDraft& draft) {
  if (arguments.size() % 4 != 0) {
    return invalid("Wrong number of arguments in buffer limit configuration.");
  }
  auto limits = draft.settings.output_buffer_limits;
  for (size_t i = 0; i < arguments.size(); i += 4) {
    const std::optional<ClientClass> which = client_class(arguments[i]);
    if (!which) return invalid("Invalid client class specified in buffer limit configuration.");
    const std::optional<uint64_t> hard_bytes = parse_memory(arguments[i + 1]);
    const std::optional<uint64_t> soft_bytes = parse_memory(arguments[i + 2]);
    const std::optional<int64_t> soft_seconds = parse_long(arguments[i + 3]);
    if (!hard_bytes || !soft_bytes || !soft_seconds || *soft_seconds < 0) {
      return invalid("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    limits[*which] = {*hard_bytes, *soft_bytes, *soft_seconds};
  }
  draft.settings.output_buffer_limits = limits;
  return output_limits_text(draft.settings);
}

Result<std::string> parse_keyspace_events(Arguments arguments, ConfigDraft& draft) {
  uint32_t events = 0;
  for (const char c : arguments[0]) {
    if (c == 'A') {
      events |= kEventAll;
      continue;
    }
    const auto* found = std::find_if(std::begin(kEventLetters), std::end(kEventLetters),
                                     [c](const EventLetter& letter) { return letter.letter == c; });
    if (found == std::end(kEventLetters)) {
      return invalid("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
    }
    events |= found->bits;
  }
  draft.settings.notify_keyspace_events = events;
  return events_text(events);
}

Result<std::string> parse_user(Arguments arguments, ConfigDraft& draft) {
  if (arguments.empty()) return invalid(kWrongNumber);
  const std::string& name = arguments[0];
  const Status status = Acl::validate({arguments.begin(), arguments.end()});
  if (!status.ok()) return status;
  for (const std::vector<std::string>& user : draft.settings.users) {
    if (user[0] == name) {
      return invalid("Error in user declaration '" + name +
                     "': Duplicate user found. A user can only be defined once in config files");
    }
  }
  draft.settings.users.emplace_back(arguments.begin(), arguments.end());
  return std::string();
}

Result<std::string> parse_daemonize(Arguments arguments, ConfigDraft& draft) {
  const bool yes = equals_ignore_case(arguments[0], "yes");
  if (!yes && !equals_ignore_case(arguments[0], "no"))
    return invalid("argument must be 'yes' or 'no'");
  if (yes) {
    draft.warnings.emplace_back(
        "daemonize yes: the server stays in the foreground; let systemd or a shell's & put it into "
        "the background");
  }
  return std::string("no");
}

Result<std::string> parse_replicaof(Arguments arguments, ConfigDraft&) {
  if (arguments.size() != 2) return invalid(kWrongNumber);
  if (!equals_ignore_case(arguments[0], "no") || !equals_ignore_case(arguments[1], "one")) {
    return invalid("this server cannot be a replica of another one");
  }
  return std::string();
}

Result<std::string> refuse_rename_command(Arguments, ConfigDraft&) {
  return invalid(
      "commands cannot be renamed; revoke them from users instead, as in: "
      "user default on nopass ~* &* +@all -flushall");
}

Result<std::string> refuse_loadmodule(Arguments, ConfigDraft&) {
  return invalid("this server cannot load modules");
}

Result<std::string> parse_loglevel(Arguments arguments, ConfigDraft& draft) {
  // In the order of LogVerbosity. Redis 7.0.15 does not have the last one.
  static constexpr const char* kLevels[] = {"debug", "verbose", "notice", "warning", "nothing"};
  for (size_t i = 0; i < std::size(kLevels); ++i) {
    if (!equals_ignore_case(kLevels[i], arguments[0])) continue;
    draft.settings.loglevel = static_cast<LogVerbosity>(i);
    return std::string(kLevels[i]);
  }
  return invalid("argument(s) must be one of the following: debug, verbose, notice, warning");
}

Result<std::string> parse_percentiles(Arguments arguments, ConfigDraft&) {
  if (arguments.size() == 1 && arguments[0].empty()) arguments = {};
  std::vector<std::string> shown;
  for (const std::string& argument : arguments) {
    const std::optional<double> number = parse_decimal(argument);
    if (!number || std::isnan(*number)) {
      return invalid("Invalid latency-tracking-info-percentiles parameters");
    }
    if (*number < 0.0 || *number > 100.0) {
      return invalid("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    shown.push_back(percentile_text(*number));
  }
  return joined(shown);
}

}  // namespace sluice::config_special
