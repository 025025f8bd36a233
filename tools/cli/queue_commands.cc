// Commands about queues: status, config, pause, resume.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/numbers.h"
#include "engine/queue/field_help.h"
#include "engine/queue/queue_config_fields.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/queue_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/stats_lines.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using nlohmann::json;

// The most bands, groups or workers shown in the details of a queue.
constexpr size_t kShownDetails = 20;

// --- status ---

constexpr Option kStatusOptions[] = {
    {"--by", "WHAT", "lines by pri, group, key, worker, or tag=NAME", nullptr,
     "pri group key worker tag="},
    {"--group", "GROUP", "the line of this group alone, however many there are"},
    {"--window", "MS", "time over which rates are measured (60000)", "WINDOW"},
};

RespValue stats_of(Context& context, const std::string& queue) {
  Words words = {"Q.STATS", queue};
  context.arguments.append_words(kStatusOptions, words);
  return as_map(context.connection.call(words));
}

json queue_json(const Context& context, const std::string& queue, const RespValue& stats) {
  json line = json::object();
  put_bytes(line, "name", queue);
  line["db"] = context.connection.address().database;
  line["stats"] = resp_to_json(stats);
  return line;
}

// What of the configuration the user may read: all fields, or none.
class ConfigReader {
 public:
  explicit ConfigReader(Context& context) : context_(context) {}

  // Null if the user may not read it. Without fields: all.
  RespValue read(const std::string& queue, const Words& fields) {
    Words words = {"Q.CONFIG", queue, "GET"};
    words.insert(words.end(), fields.begin(), fields.end());
    RespValue reply = context_.connection.try_call(words);
    if (!reply.is_error()) return as_map(std::move(reply));
    if (!reply.text.starts_with("NOPERM ")) {
      throw failure_of(reply.text);
    }
    is_refused_ = true;
    return {};
  }

  void tell() const {
    if (is_refused_)
      context_.note("this user may not read the configuration: what is paused is not shown");
  }

 private:
  Context& context_;
  bool is_refused_ = false;
};

void print_server(Context& context) {
  const RespValue reply = context.connection.try_call({"INFO"});
  // A user who may not run INFO still sees the queues.
  if (reply.is_error()) return;
  const int64_t up_s = parse_i64(info_field(reply.text, "uptime_in_seconds")).value_or(0);
  const std::string clients = info_field(reply.text, "connected_clients");
  const std::string memory = info_field(reply.text, "used_memory_human");
  const std::string line = "server " + context.connection.address().text() + ", up " +
                           duration_text(up_s * 1000) + ", clients " + clients + ", memory " +
                           memory;
  std::printf("%s\n\n", styled(line, Style::kDim, context.screen).c_str());
}

int print_all(Context& context) {
  for (const char* option : {"--by", "--group"}) {
    if (context.arguments.has(option)) throw usage_error(std::string(option) + " requires a queue");
  }
  std::vector<QueueStats> queues;
  json all = json::array();
  size_t hidden = 0;
  ConfigReader reader(context);
  const std::vector<std::string> names = find_queues(context.connection);
  for (const std::string& name : names) {
    try {
      queues.emplace_back(name, stats_of(context, name));
    } catch (const Failure& failure) {
      if (!is_hidden(failure)) throw;
      ++hidden;
      continue;
    }
    RespValue& stats = queues.back().second;
    const RespValue config = reader.read(name, {"paused", "max_waiting", "max_total"});
    if (context.json) {
      json line = queue_json(context, name, stats);
      if (!config.is_null()) line.update(config_to_json(config));
      all.push_back(std::move(line));
    } else {
      put_paused(config, stats);
    }
  }
  if (context.json) {
    print_json(all);
  } else {
    print_server(context);
    if (queues.empty()) {
      std::printf("no queues in database %d\n", context.connection.address().database);
    } else {
      queues_table(queues).print(context.screen);
    }
  }
  reader.tell();
  context.note_hidden(hidden);
  return kDone;
}

RespValue lines_of(Context& context, const std::string& by) {
  const size_t equals = by.find('=');
  Words words = {by.substr(0, equals)};
  if (equals != std::string::npos) words.push_back(by.substr(equals + 1));
  return stats_lines(context.connection, context.queue(), words);
}

RespValue line_of_group(Context& context, const std::string& group) {
  RespValue name;
  name.kind = RespValue::Kind::kText;
  name.text = group;
  RespValue lines;
  lines.kind = RespValue::Kind::kMap;
  lines.items = {std::move(name),
                 as_map(context.connection.call({"Q.STATS", context.queue(), "GROUP", group}))};
  return lines;
}

// Prints the first lines; --by prints all.
void print_lines(const Context& context, const char* what, RespValue lines) {
  if (lines.items.empty()) return;
  const size_t all = lines.items.size() / 2;
  lines.items.resize(std::min(all, kShownDetails) * 2);
  std::printf("\n");
  lines_table(what, lines).print(context.screen);
  if (all > kShownDetails) std::printf("… and %zu more\n", all - kShownDetails);
}

int print_one(Context& context) {
  context.arguments.at_most_one({"--by", "--group"});
  require_queue(context);
  const auto by = context.arguments.value("--by");
  const auto group = context.arguments.value("--group");
  if (by || group) {
    const RespValue lines = by ? lines_of(context, *by) : line_of_group(context, *group);
    if (context.json) {
      print_json(resp_to_json(lines));
    } else if (!lines.items.empty()) {
      lines_table("NAME", lines).print(context.screen);
    }
    return kDone;
  }
  RespValue stats = stats_of(context, context.queue());
  ConfigReader reader(context);
  const RespValue config = reader.read(context.queue(), {});
  reader.tell();
  if (context.json) {
    json line = queue_json(context, context.queue(), stats);
    line["config"] = config.is_null() ? json(nullptr) : config_to_json(config);
    print_json(line);
    return kDone;
  }
  put_paused(config, stats);
  queues_table({{context.queue(), stats}}).print(context.screen);
  std::printf("\n");
  const std::vector<std::string> lines = summary_lines(stats, context.screen);
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  if (stats.find("adopted") != nullptr) return kDone;
  print_lines(context, "BAND", lines_of(context, "pri"));
  print_lines(context, "GROUP", lines_of(context, "group"));
  print_lines(context, "WORKER", lines_of(context, "worker"));
  return kDone;
}

int run_status(Context& context) {
  return context.operands() == 0 ? print_all(context) : print_one(context);
}

// --- config ---

// Only queues and groups can be paused.
constexpr Option kGroupOptions[] = {
    literal_option("--group", "GROUP", "the group's configuration instead of the queue's", "GROUP"),
    {"--group-glob", "GLOB", "that of matching groups", "GROUP"},
};

constexpr Option kKeyOptions[] = {
    literal_option("--key", "KEY", "the key's configuration instead of the queue's", "KEY"),
    {"--key-glob", "GLOB", "that of matching keys", "KEY"},
};

constexpr Option kWorkerOptions[] = {
    literal_option("--worker", "NAME", "the worker's configuration instead of the queue's",
                   "WORKER"),
    {"--worker-glob", "GLOB", "that of matching workers", "WORKER"},
};

constexpr Option kSetOptions[] = {
    {"--if", "FIELD=VALUE", "set only if the field has this value now; may be repeated", nullptr,
     nullptr, '=', true},
    {"--dry-run", nullptr,
     "only tell how much is above the new limits, and would be deleted at once"},
};

constexpr Option kCreateOptions[] = {
    {"--create", nullptr, "create the queue if it does not exist"},
};

constexpr Option kResetOptions[] = {
    {"--reset", nullptr, "reset to the defaults; removes a rule"},
    {"--export", nullptr,
     "print the configuration of these queues, or of all, as a file for apply"},
};

Words config_words(Context& context) {
  Words words = {"Q.CONFIG", context.queue()};
  context.arguments.append_words(kGroupOptions, words);
  context.arguments.append_words(kKeyOptions, words);
  context.arguments.append_words(kWorkerOptions, words);
  if (words.size() > 4) {
    throw usage_error(
        "use only one of --group, --group-glob, --key, --key-glob, --worker and --worker-glob");
  }
  return words;
}

// A mistyped name must not create a queue.
void check_queue(Context& context) {
  if (context.arguments.has("--create")) return;
  require_queue(context, "; use --create to create it");
}

// Appends FIELD=VALUE as two words, with durations in milliseconds.
void append_pair(const std::string& text, Words& pairs) {
  const size_t equals = text.find('=');
  pairs.push_back(text.substr(0, equals));
  pairs.push_back(plain_value(pairs.back(), text.substr(equals + 1)));
}

// `verb`: SET or TRY.
RespValue set_config(Context& context, Words words, const char* verb, Words pairs) {
  isolate_if(pairs);
  words.emplace_back(verb);
  words.insert(words.end(), pairs.begin(), pairs.end());
  Words expected;
  for (const std::string& text : context.arguments.values("--if")) append_pair(text, expected);
  if (!expected.empty()) words.emplace_back("IF");
  words.insert(words.end(), expected.begin(), expected.end());
  return context.connection.call(words);
}

int try_config(Context& context, const Words& words, const Words& pairs) {
  const RespValue trial = as_map(set_config(context, words, "TRY", pairs));
  if (context.json) {
    print_json(resp_to_json(trial));
  } else {
    fields_table(trial, 0, false).print(context.screen);
    if (integer_of(trial, "complete") == 0) context.note("not all of them were counted");
  }
  return kDone;
}

// The values of a queue on which the defaults of others depend. `shown`: some of its fields.
QueueValues values_for_defaults(Context& context, const RespValue& shown) {
  QueueValues values;
  if (shown.find("default_pri") == nullptr) return values;
  const RespValue order =
      as_map(context.connection.call({"Q.CONFIG", context.queue(), "GET", "priority_order"}));
  values.descending = order.at("priority_order").text == "desc";
  return values;
}

// What a rule does not set has no default: other rules or the queue may.
Table config_table(Context& context, const RespValue& shown, bool is_rule) {
  const QueueValues values = values_for_defaults(context, shown);
  Table table({{"FIELD"}, {"VALUE", false, true}, {"DEFAULT", false, true}});
  for (size_t i = 0; i + 1 < shown.items.size(); i += 2) {
    const std::string& name = shown.items[i].text;
    const ConfigRow* field = is_rule ? nullptr : find_config_row(name);
    table.add({printable(name), printable(shown.items[i + 1].text),
               field == nullptr ? "" : std::string(default_text(*field, values))});
  }
  return table;
}

int show_config(Context& context, Words words, const Words& fields) {
  const bool is_rule = words.size() > 2;
  words.emplace_back("GET");
  words.insert(words.end(), fields.begin(), fields.end());
  const RespValue reply = as_map(context.connection.call(words));
  if (context.json) {
    print_json(config_to_json(reply));
    return kDone;
  }
  const Table table = config_table(context, reply, is_rule);
  if (!table.empty()) table.print(context.screen);
  return kDone;
}

// FIELD shows a field, FIELD=VALUE sets it. After a change, prints the fields that were set.
int run_config(Context& context) {
  if (context.arguments.has("--export")) return export_config(context);
  if (context.operands() == 0) throw usage_error("config requires a queue, or --export");
  const Words words = config_words(context);
  Words fields;
  Words pairs;
  for (size_t i = 1; i < context.operands(); ++i) {
    const std::string& text = context.operand(i);
    const size_t equals = text.find('=');
    fields.push_back(text.substr(0, equals));
    if (equals != std::string::npos) append_pair(text, pairs);
  }
  if (!pairs.empty() && pairs.size() != fields.size() * 2) {
    throw usage_error("use either FIELD or FIELD=VALUE for all fields");
  }
  for (const char* option : {"--if", "--dry-run"}) {
    if (!context.arguments.has(option)) continue;
    context.arguments.at_most_one({"--reset", option});
    if (pairs.empty()) throw usage_error(std::string(option) + " requires FIELD=VALUE");
  }
  check_queue(context);
  if (context.arguments.has("--dry-run")) return try_config(context, words, pairs);
  if (context.arguments.has("--reset")) {
    if (!fields.empty()) throw usage_error("--reset takes no fields");
    Words reset = words;
    reset.emplace_back("RESET");
    context.connection.call(reset);
  }
  if (!pairs.empty()) set_config(context, words, "SET", pairs);
  return show_config(context, words, fields);
}

// --- pause, resume ---

int set_paused(Context& context, const std::string& direction) {
  context.arguments.at_most_one({"--group", "--group-glob"});
  const Words words = config_words(context);
  check_queue(context);
  set_config(context, words, "SET", {"paused", direction});
  return show_config(context, words, {"paused"});
}

int run_pause(Context& context) {
  return set_paused(context, context.operands() > 1 ? context.operand(1) : "out");
}

int run_resume(Context& context) { return set_paused(context, "none"); }

std::string config_fields_help() {
  std::string text = "fields, with their format, meaning and default:\n";
  for (const FieldHelp& field : config_field_help()) {
    const ConfigRow* row = find_config_row(field.name);
    text += "  " + std::string(field.name) + "=" + std::string(field.takes) + "\n      " +
            std::string(field.meaning) + "\n      default: " + std::string(row->default_text) +
            "\n";
  }
  return text;
}

// --- delete ---

constexpr Option kDeleteOptions[] = {
    {"--yes", nullptr, "do not ask for confirmation"},
    {"--dry-run", nullptr, "only print what would be deleted"},
};

int run_delete(Context& context) {
  require_queue(context);
  const std::string& queue = context.queue();
  const RespValue stats = as_map(context.connection.call({"Q.STATS", queue}));
  const int64_t waiting = integer_of(stats, "waiting");
  const int64_t active = integer_of(stats, "active");
  const bool dry_run = context.arguments.has("--dry-run");
  const std::string what = shown_queue(queue) + " with " + count_text(waiting) + " waiting and " +
                           count_text(active) + " active jobs";
  const bool asks = !dry_run && !context.arguments.has("--yes");
  if (asks && !is_confirmed("delete " + what + ", its history and its configuration?")) {
    throw Failure{kServerError, "nothing was deleted"};
  }
  if (!dry_run) context.connection.call({"DEL", queue});
  if (context.json) {
    print_json({{"deleted", !dry_run}, {"waiting", waiting}, {"active", active}});
  } else {
    std::printf("%s %s\n", dry_run ? "would delete" : "deleted", what.c_str());
  }
  return kDone;
}

}  // namespace

std::span<const CommandRow> queue_commands() {
  static const CommandRow kRows[] = {
      {"status",
       "[QUEUE]",
       "show all queues, or one in detail",
       nullptr,
       {kStatusOptions},
       run_status,
       "sluice status exec --by group"},
      {"config",
       "[QUEUE [FIELD...|FIELD=VALUE...]]",
       "show or change a queue's configuration",
       nullptr,
       {kGroupOptions, kKeyOptions, kWorkerOptions, kSetOptions, kResetOptions, kCreateOptions},
       run_config,
       "sluice config exec max_active=4 rate=20/1s fair=on",
       config_fields_help},
      {"pause",
       "QUEUE [in|out|all]",
       "stop handing out jobs (out, the default), accepting jobs (in), or both",
       "Only queues and groups can be paused.",
       {kGroupOptions, kCreateOptions},
       run_pause,
       "sluice pause exec --group ann"},
      {"resume",
       "QUEUE",
       "end a pause",
       "Only queues and groups can be paused.",
       {kGroupOptions, kCreateOptions},
       run_resume,
       "sluice resume exec"},
      {"delete",
       "QUEUE",
       "delete a queue: its jobs, its history, its configuration",
       "It asks for confirmation if standard input is a terminal.",
       {kDeleteOptions},
       run_delete,
       "sluice delete exec --dry-run"},
  };
  return kRows;
}

}  // namespace sluice::cli
