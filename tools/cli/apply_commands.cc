// Configuration as a file: diff-config, apply, config --export.
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "tools/cli/config_file.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

// diff-config's exit code, as that of other programs that compare.
constexpr int kDiffers = 2;

constexpr Option kPruneOptions[] = {
    {"--prune", nullptr, "also reset queues that are not in the file to the defaults"},
};
constexpr Option kApplyOptions[] = {
    {"--yes", nullptr, "do not ask for confirmation"},
};

using Queues = std::map<std::string, QueueSettings>;

ConfigLevel level_of_word(const std::string& word) {
  return word == "group" ? ConfigLevel::kGroup
         : word == "key" ? ConfigLevel::kKey
                         : ConfigLevel::kWorker;
}

Settings to_settings(const RespValue& map) {
  Settings settings;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    settings[map.items[i].text] = map.items[i + 1].text;
  }
  return settings;
}

// What a queue is configured to; nothing if it does not exist.
std::optional<QueueSettings> read_queue(Connection& connection, const std::string& queue) {
  if (connection.call({"EXISTS", queue}).integer == 0) return std::nullopt;
  QueueSettings settings;
  settings.has_paused = settings.has_workers = true;
  settings.fields = to_settings(connection.call({"Q.CONFIG", queue, "GET"}));
  std::string cursor = "0";
  do {
    const RespValue page =
        connection.call({"Q.CONFIG", queue, "RULES", "CURSOR", cursor, "COUNT", "1000"});
    cursor = page.items.at(0).text;
    for (const RespValue& rule : page.items.at(1).items) {
      const RuleName name = {level_of_word(rule.items.at(0).text), rule.items.at(1).text};
      settings.put_rule(name, to_settings(rule.items.at(2)));
    }
  } while (cursor != "0");
  return settings;
}

// The changes of one queue, with how it is now.
struct QueuePlan {
  std::optional<QueueSettings> now;
  QueueSettings wanted;
  std::vector<SettingChange> changes;
};

// What of a limit is in use: the number and its name. Nothing for a glob, which has no number of
// its own, and for keys. `displaces`: the queue's `full`; limits of groups always reject.
std::string use_of(Connection& connection, const SettingChange& change, int64_t limit,
                   bool displaces) {
  Words words = {"Q.STATS", change.queue};
  if (change.rule.first == ConfigLevel::kGroup) {
    const auto name = glob_literal(change.rule.second);
    if (!name) return {};
    words.insert(words.end(), {"GROUP", *name});
  } else if (change.rule.first != ConfigLevel::kQueue) {
    return {};
  }
  const RespValue stats = as_map(connection.call(words));
  const int64_t waiting = integer_of(stats, "waiting");
  const int64_t active = integer_of(stats, "active");
  const bool is_slots = change.field == "max_active";
  const int64_t used = is_slots                        ? integer_of(stats, "slots")
                       : change.field == "max_waiting" ? waiting
                                                       : waiting + active;
  if (used <= limit) return {};
  const std::string over = count_text(used - limit);
  if (is_slots) {
    return count_text(used) + " slots are in use: none is given until " + over + " are free";
  }
  const bool cancels = displaces && change.rule.first == ConfigLevel::kQueue;
  return count_text(used) + " jobs are there: " +
         (cancels ? "a more urgent new one cancels the least urgent, others are refused until "
                  : "new ones are refused until ") +
         over + " have left";
}

// What a lower retention deletes at once; without the number at a standby, which refuses TRY.
std::string loss_of(Connection& connection, const SettingChange& change) {
  const RespValue reply =
      connection.try_call({"Q.CONFIG", change.queue, "TRY", change.field, change.to});
  if (reply.is_error()) return "what is beyond it is deleted at once";
  const RespValue tried = as_map(reply);
  const bool is_events = change.field == "events";
  const int64_t count = integer_of(tried, is_events ? "events_dropped" : "dropped");
  if (count == 0) return {};
  const std::string what = is_events ? "event" : "ended job";
  return (integer_of(tried, "complete") == 0 ? "at least " : "") + count_text(count) + " " + what +
         (count == 1 ? " is" : "s are") + " deleted at once";
}

void add_notes(Connection& connection, QueuePlan& plan) {
  if (!plan.now) return;
  const bool displaces = plan.wanted.fields.at("full") == "displace";
  for (SettingChange& change : plan.changes) {
    const bool is_limit = change.field == "max_active" || change.field == "max_waiting" ||
                          change.field == "max_total";
    const int64_t limit = parse_i64(change.to).value_or(0);
    if (is_limit && limit > 0) change.note = use_of(connection, change, limit, displaces);
    const bool is_retention = change.field == "retain_completed" ||
                              change.field == "retain_failed" || change.field == "events";
    if (is_retention) change.note = loss_of(connection, change);
  }
}

Queues read_wanted(const Context& context) {
  return read_config_file(context.operand(0), read_text(context.operand(0)));
}

std::vector<QueuePlan> plan(Context& context, Queues wanted) {
  if (context.arguments.has("--prune")) {
    const std::vector<std::string> names = find_queues(context.connection);
    for (const std::string& name : names) wanted.emplace(name, default_settings());
  }
  std::vector<QueuePlan> plans;
  for (const auto& [name, settings] : wanted) {
    QueuePlan made{read_queue(context.connection, name), settings, {}};
    made.changes = plan_changes(name, made.now, settings);
    add_notes(context.connection, made);
    if (!made.changes.empty()) plans.push_back(std::move(made));
  }
  return plans;
}

Style style_of(char sign) {
  return sign == '+' ? Style::kGood : sign == '-' ? Style::kBad : Style::kBusy;
}

void print_plan(const Context& context, const std::vector<QueuePlan>& plans) {
  nlohmann::json all = nlohmann::json::array();
  for (const QueuePlan& queue : plans) {
    for (const SettingChange& change : queue.changes) {
      if (context.json) {
        all.push_back(change_to_json(change));
        continue;
      }
      const std::string line = change_text(change);
      std::printf("%s\n", styled(line, style_of(change.sign), context.screen).c_str());
    }
  }
  if (context.json) print_json(all);
  std::fflush(stdout);
}

std::string counted(const std::vector<QueuePlan>& plans) {
  size_t count = 0;
  for (const QueuePlan& queue : plans) count += queue.changes.size();
  const auto many = [](size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  return many(count, "change") + " to " + many(plans.size(), "queue");
}

int run_diff_config(Context& context) {
  const std::vector<QueuePlan> plans = plan(context, read_wanted(context));
  print_plan(context, plans);
  // Changes that nobody could read are no answer; main says why.
  if (std::ferror(stdout) != 0) return kServerError;
  return plans.empty() ? kDone : kDiffers;
}

// A queue's changes are one transaction, so no job meets half of them.
void apply_to_queue(Connection& connection, const QueuePlan& queue) {
  const std::vector<Words> commands = commands_of(queue.changes, queue.now, queue.wanted);
  connection.call({"MULTI"});
  for (const Words& words : commands) connection.call(words);
  const RespValue replies = connection.call({"EXEC"});
  for (const RespValue& reply : replies.items) {
    if (reply.is_error()) throw failure_of(reply.text);
  }
}

// Says where a failure ends it.
void apply_all(Connection& connection, const std::vector<QueuePlan>& plans) {
  for (size_t done = 0; done < plans.size(); ++done) {
    try {
      apply_to_queue(connection, plans[done]);
    } catch (Failure& failure) {
      failure.text += " (queue " + shown_queue(plans[done].changes[0].queue) + "; " +
                      std::to_string(done) + " of " + std::to_string(plans.size()) +
                      " queues were changed before it)";
      throw;
    }
  }
}

// The changes alone; what is in use of a limit changes all the time.
std::vector<std::string> lines_of(const std::vector<QueuePlan>& plans) {
  std::vector<std::string> lines;
  for (const QueuePlan& queue : plans) {
    for (SettingChange change : queue.changes) {
      change.note.clear();
      lines.push_back(change_text(change));
    }
  }
  return lines;
}

int run_apply(Context& context) {
  const Queues wanted = read_wanted(context);
  std::vector<QueuePlan> plans = plan(context, wanted);
  print_plan(context, plans);
  // main says why.
  if (std::ferror(stdout) != 0) {
    throw Failure{kServerError, "the plan cannot be printed: nothing was changed"};
  }
  if (plans.empty()) {
    if (!context.json) std::fprintf(stderr, "sluice: no changes\n");
    return kDone;
  }
  if (!context.arguments.has("--yes")) {
    if (::isatty(STDIN_FILENO) == 0) throw usage_error("apply requires --yes where it cannot ask");
    if (!is_confirmed("apply " + counted(plans) + "?")) {
      throw Failure{kServerError, "nothing was changed"};
    }
    // Somebody else may have changed the queues while the question stood.
    std::vector<QueuePlan> shown = std::exchange(plans, plan(context, wanted));
    if (lines_of(shown) != lines_of(plans)) {
      throw Failure{kServerError,
                    "the queues' configuration has changed since the plan was shown: "
                    "nothing was changed; see the new plan with apply"};
    }
  }
  apply_all(context.connection, plans);
  if (!context.json) std::fprintf(stderr, "sluice: applied %s\n", counted(plans).c_str());
  return kDone;
}

}  // namespace

int export_config(Context& context) {
  Queues queues;
  size_t hidden = 0;
  const bool all = context.operands() == 0;
  for (const std::string& name :
       all ? find_queues(context.connection) : context.arguments.operands()) {
    try {
      if (!all) require_queue(context.connection, name);
      const auto settings = read_queue(context.connection, name);
      if (settings) queues[name] = *settings;
    } catch (const Failure& failure) {
      if (!all || !is_hidden(failure)) throw;
      ++hidden;
    }
  }
  context.note_hidden(hidden);
  const std::string text = write_config_file(queues);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kDone;
}

std::span<const CommandRow> apply_commands() {
  static constexpr const char* kFileHelp =
      "FILE, or - for standard input, is JSON, as config --export prints it:\n"
      "  {\"queues\": {\"exec\": {\"max_active\": 8, \"rate\": \"20/1s\",\n"
      "                       \"groups\": {\"team.*\": {\"max_active\": 2}},\n"
      "                       \"keys\": {\"gpu\": {\"max_active\": 1}}}}}\n"
      "It is the whole configuration of each queue in it: a field that it leaves out gets its\n"
      "default, a rule that it leaves out is removed. Only a pause, and rules of workers, stay\n"
      "unless it names them (\"paused\", \"workers\"). Of rules that match a name and have "
      "equally\n"
      "many literal bytes the last one wins. Other queues are left alone.\n";
  static const std::string kDiffHelp =
      std::string(kFileHelp) +
      "Each line is a change: + is set, - is reset, ~ has another value.\n"
      "A note after a semicolon says what it means now: what is above a new limit, and how many\n"
      "ended jobs or events a lower retain_* or events deletes at once.\n"
      "Exit codes: 0 no changes, 2 changes, 1 an error, also one in the file or wrong usage.";
  static const std::string kApplyHelp =
      std::string(kFileHelp) +
      "It prints the changes as diff-config does, and asks before it makes them. All changes of a\n"
      "queue are made at once. If the plan no longer holds at the answer, nothing is changed.\n"
      "Applying the file again changes nothing.";
  static const CommandRow kRows[] = {
      {"diff-config",
       "FILE",
       "show what apply would change",
       kDiffHelp.c_str(),
       {kPruneOptions},
       run_diff_config,
       "sluice diff-config queues.json",
       nullptr,
       true},
      {"apply",
       "FILE",
       "configure queues as a file says",
       kApplyHelp.c_str(),
       {kPruneOptions, kApplyOptions},
       run_apply,
       "sluice config --export > queues.json && sluice apply queues.json"},
  };
  return kRows;
}

}  // namespace sluice::cli
