#include "tools/cli/context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/numbers.h"
#include "engine/queue/field_help.h"
#include "engine/queue/queue_config_fields.h"
#include "net/http/json_text.h"
#include "net/process/wall_clock.h"
#include "tools/cli/failure.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr Option kSelectorOptions[] = {
    {"--state", "STATE", "jobs in this state; may be repeated", "STATE", kStateWords, 0, true},
    literal_option("--group", "GROUP", "jobs of exactly this group", "GROUP"),
    {"--group-glob", "GLOB", "jobs of matching groups", "GROUP"},
    {"--pri", "BAND", "jobs of this band, by name or number", "PRI"},
    {"--tag", "NAME=VALUE", "jobs with this tag", "TAG", nullptr, '='},
    {"--key", "KEY", "jobs with this key", "KEY"},
    {"--worker", "NAME", "jobs leased by this worker", "WORKER"},
    {"--older", "MS", "waiting, running or ended for longer than this", "OLDER"},
    {"--since", "UNIX-MS", "added, started or ended at this moment or later", "SINCE"},
    {"--until", "UNIX-MS", "added, started or ended before this moment", "UNTIL"},
    {"--id-part", "TEXT", "jobs whose id contains this text, whatever its case", "IDPART"},
    {"--error", "TEXT", "jobs whose error contains this text, whatever its case", "ERROR"},
    {"--pattern", "ERROR", "jobs with this error as jobs --by error prints it", "PATTERN"},
    {"--payload", "TEXT", "jobs whose payload contains this text, whatever its case", "PAYLOAD"},
};

}  // namespace

Context::Context(const Arguments& given, std::span<const CommandRow> rows)
    : arguments(given),
      commands(rows),
      connection(Address::from(given)),
      json(given.has("--json")) {}

int64_t Context::server_now_ms() { return time_ms_of(connection.try_call({"TIME"})); }

void Context::note(const std::string& text) const {
  const std::string line = json ? dump_json({{"note", text_to_json(text)}}) : "sluice: " + text;
  std::fprintf(stderr, "%s\n", line.c_str());
}

void Context::note_hidden(size_t queues) const {
  if (queues > 0) note(std::to_string(queues) + " more may not be read by this user");
}

int64_t time_ms_of(const RespValue& time) {
  if (time.items.size() != 2) return wall_ms();
  const int64_t seconds = parse_i64(time.items[0].text).value_or(0);
  return seconds * 1000 + parse_i64(time.items[1].text).value_or(0) / 1000;
}

void print_json(const nlohmann::json& value) {
  const std::string text = dump_json(value);
  std::printf("%s\n", text.c_str());
}

void tell_of_lost_log(const Context& context, int64_t bytes) {
  context.note(std::to_string(bytes) + " bytes of the log are no longer kept");
}

std::span<const Option> selector_options() { return kSelectorOptions; }

void append_selector(const Arguments& arguments, Words& to, bool with_states) {
  if (arguments.has("--group") && arguments.has("--group-glob")) {
    throw usage_error("use --group or --group-glob, not both");
  }
  arguments.append_words(selector_options().subspan(with_states ? 0 : 1), to);
}

std::vector<std::string> find_queues(Connection& connection) {
  std::vector<std::string> names;
  std::string cursor = "0";
  do {
    const RespValue page = connection.call({"SCAN", cursor, "TYPE", "queue", "COUNT", "1000"});
    cursor = page.items[0].text;
    for (const RespValue& name : page.items[1].items) names.push_back(name.text);
  } while (cursor != "0");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_hidden(const Failure& failure) {
  return failure.text.starts_with("NOPERM") && failure.text.find(" keys ") != std::string::npos;
}

void require_queue(Connection& connection, const std::string& queue, const char* otherwise) {
  const RespValue there = connection.try_call({"EXISTS", queue});
  if (there.is_error() || there.integer != 0) return;
  const std::string nearest = nearest_word(queue, find_queues(connection));
  Failure failure{kServerError,
                  "there is no queue " + shown_queue(queue) + suggestion(nearest) + otherwise};
  failure.nearest = nearest;
  failure.word = "NOQUEUE";
  throw failure;
}

void require_queue(Context& context, const char* otherwise) {
  require_queue(context.connection, context.queue(), otherwise);
}

std::string read_input() {
  std::string text;
  std::string part(size_t{1} << 16, '\0');
  // A terminal says its end once, so nothing is read after it.
  while (std::feof(stdin) == 0 && std::ferror(stdin) == 0) {
    text.append(part, 0, std::fread(part.data(), 1, part.size(), stdin));
    if (text.size() <= kMaxPayload) continue;
    throw Failure{kServerError, "TOOBIG standard input has more than " +
                                    std::to_string(kMaxPayload) + " bytes, the most that is read"};
  }
  if (std::ferror(stdin) != 0) {
    throw Failure{kServerError, std::string("cannot read standard input: ") + std::strerror(errno)};
  }
  std::clearerr(stdin);
  return text;
}

std::string read_text(const std::string& path) {
  if (path == "-") return read_input();
  std::ifstream file(path, std::ios::binary);
  try {
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.is_open()) return text;
  } catch (const std::ios_base::failure&) {  // a directory
  }
  throw Failure{kServerError, "cannot read " + path};
}

bool is_confirmed(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0) return true;
  // Not to standard error, which may be a file that nobody sees.
  const std::string text = question + " [y/N] ";
  const int terminal = ::open("/dev/tty", O_WRONLY | O_CLOEXEC);
  const bool is_asked = ::write(terminal < 0 ? STDIN_FILENO : terminal, text.data(), text.size()) ==
                        static_cast<ssize_t>(text.size());
  if (terminal >= 0) ::close(terminal);
  if (!is_asked) throw usage_error("cannot ask at the terminal: use --yes");
  std::string answer;
  std::getline(std::cin, answer);
  return equals_ignore_case(answer, "y") || equals_ignore_case(answer, "yes");
}

}  // namespace sluice::cli
