// Commands for one job, several jobs, or all that a selector matches: cancel, retry, purge.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/base/limits.h"
#include "engine/queue/field_help.h"
#include "engine/queue/job_id.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr int64_t kNoLimit = int64_t{1} << 52;

constexpr Option kManyOptions[] = {
    {"--all", nullptr, "all jobs the command applies to, instead of a selector"},
    {"--limit", "N", "change at most N of the selected jobs"},
    {"--dry-run", nullptr, "only count them"},
};

constexpr Option kYes[] = {{"--yes", nullptr, "with --all: do not ask for confirmation"}};
constexpr Option kYesOfRetry[] = {{"--yes", nullptr, "has no effect: retry does not ask"}};

constexpr Option kCancelOptions[] = {
    {"--reason", "TEXT", "the reason; shown to the worker and in the story", "REASON"},
    {"--grace", "MS", "how long an active job may keep running; 0: stop at once", "GRACE"},
};

// What Q.CANCEL answers with "gone". The user may not be allowed to read jobs.
Failure failure_of_gone(Context& context, const std::string& id) {
  const RespValue job = context.connection.try_call({"Q.GET", context.queue(), id});
  const auto failure = [](const char* word, const char* text) {
    return Failure{kServerError, text, {}, {}, {}, word};
  };
  if (job.is_error()) return failure("GONE", "gone: the job has ended or does not exist");
  return job.is_null() ? failure("NOJOB", "there is no such job")
                       : failure("ENDED", "the job has ended");
}

// Whether nothing was changed: cancelling a job that has ended or is unknown, purging one that has
// not ended.
bool is_in_vain(const Words& words, const RespValue& reply) {
  return reply.text == "gone" || (words[0] == "Q.PURGE" && reply.text != "purged");
}

Failure failure_of_one(Context& context, const Words& words, const RespValue& reply) {
  if (reply.is_error()) return context.connection.explain(words, reply.text);
  if (reply.text == "gone") return failure_of_gone(context, words[2]);
  return {kServerError, "the job has not ended, it is " + reply.text, {}, {}, {}, "NOTENDED"};
}

// Changes jobs one by one. Prints a line for each; a failure does not affect the others.
int change_each(Context& context, const char* command, std::span<const Option> options,
                nlohmann::json& results) {
  int code = kDone;
  for (size_t i = 1; i < context.operands(); ++i) {
    const std::string& id = context.operand(i);
    Words words = {command, context.queue(), id};
    context.arguments.append_words(options, words);
    const RespValue reply = context.connection.try_call(words);
    const bool failed = reply.is_error() || is_in_vain(words, reply);
    nlohmann::json line;
    put_bytes(line, "id", id);
    if (failed) {
      code = kServerError;
      const Failure failure = failure_of_one(context, words, reply);
      line["error"] = to_json(failure);
      if (!context.json)
        std::fprintf(stderr, "sluice: %s: %s\n", printable(id).c_str(), failure.text.c_str());
    } else {
      line["state"] = reply.text;
      if (!context.json)
        std::printf("%s: %s\n", printable(id).c_str(), printable(reply.text).c_str());
    }
    results.push_back(std::move(line));
  }
  return code;
}

int change_named(Context& context, const char* command, std::span<const Option> options) {
  for (size_t i = 1; i < context.operands(); ++i) {
    // The server would parse it as the beginning of a selector.
    if (equals_ignore_case(context.operand(i), kWhereWord)) throw no_job_id(context.operand(i));
  }
  nlohmann::json results = nlohmann::json::array();
  int code = kDone;
  try {
    code = change_each(context, command, options, results);
  } catch (const Failure&) {
    if (context.json && !results.empty()) print_json(results);
    throw;
  }
  if (context.json) print_json(results);
  return code;
}

// Describes what a command applies to; --limit alone is not a selector.
constexpr const char* kTargets =
    "ids, or a selector (--state, --group, --group-glob, --pri, --tag, --key, --worker, --older, "
    "--since, --until, --id-part, --error, --pattern, --payload), or --all";

// A command, and the states that it applies to if none is given.
struct BulkCommand {
  const char* word;
  std::span<const Option> options;
  const char* allowed;
  const char* usual;
};

constexpr const char* kLive = "blocked delayed pending active";
constexpr const char* kEnded = "completed failed cancelled expired";
constexpr BulkCommand kCancel = {"Q.CANCEL", kCancelOptions, kLive, kLive};
constexpr BulkCommand kRetry = {"Q.RETRY", {}, kEnded, "failed"};
constexpr BulkCommand kPurge = {"Q.PURGE", {}, kEnded, kEnded};

Words read_targets(const Arguments& arguments) {
  Words selector;
  append_selector(arguments, selector);
  if (selector.empty() != arguments.has("--all")) {
    const std::string name = arguments.command()->name;
    throw usage_error(name + " takes " +
                      (selector.empty() ? kTargets : "a selector or --all, not both"));
  }
  return selector;
}

int64_t read_limit(const Arguments& arguments) {
  return arguments.integer("--limit", kNoLimit, 1, kNoLimit);
}

// Number of listed jobs for which `counts`, up to about `limit`.
template <class Counts>
int64_t count_listed(Context& context, const Words& words, int64_t limit, Counts counts) {
  int64_t count = 0;
  std::string cursor = "0";
  do {
    Words page = words;
    page.insert(page.end(), {"COUNT", std::to_string(kMaxPageCount), "CURSOR", cursor});
    const RespValue reply = context.connection.call(page);
    cursor = reply.items[0].text;
    const RespValue jobs = as_maps(reply.items[1]);
    count += std::count_if(jobs.items.begin(), jobs.items.end(), counts);
  } while (cursor != "0" && count < limit);
  return count;
}

// Number of jobs that the command would change.
int64_t count_selected(Context& context, const BulkCommand& command) {
  const int64_t limit = read_limit(context.arguments);
  const std::vector<std::string> allowed = split_words(command.allowed);
  std::vector<std::string> states = context.arguments.values("--state");
  if (states.empty()) {
    states = split_words(command.usual);
  } else {
    std::erase_if(states, [&](const std::string& state) {
      return std::none_of(allowed.begin(), allowed.end(),
                          [&](const std::string& one) { return equals_ignore_case(one, state); });
    });
  }
  if (states.empty()) return 0;
  Words words = {"Q.LIST", context.queue(), "WHERE"};
  for (const std::string& state : states) words.insert(words.end(), {"STATE", state});
  append_selector(context.arguments, words, false);
  // A job that was already asked to stop is not counted again, unless its time limit changes.
  const bool told_count = context.arguments.has("--grace");
  return std::min(limit, count_listed(context, words, limit, [&](const RespValue& job) {
                    const RespValue* cancel = job.find("cancel");
                    return told_count || cancel == nullptr || cancel->is_null();
                  }));
}

int print_count(const Context& context, int64_t count, bool dry_run) {
  if (context.json) {
    dry_run ? print_json({{"count", count}, {"dry_run", true}}) : print_json({{"count", count}});
  } else {
    std::printf("%s%s job%s\n", dry_run ? "would change " : "", count_text(count).c_str(),
                count == 1 ? "" : "s");
  }
  return kDone;
}

// Runs the commands that `words(cursor, changed)` makes until one returns the last cursor, or
// `limit` jobs are changed.
template <class MakeWords>
int change_pages(Context& context, int64_t limit, MakeWords words) {
  int64_t changed = 0;
  std::string cursor = "0";
  try {
    do {
      const RespValue reply = context.connection.call(words(cursor, changed));
      cursor = reply.items[0].text;
      changed += reply.items[1].integer;
    } while (cursor != "0" && changed < limit);
  } catch (const Failure&) {
    if (changed > 0) print_count(context, changed, false);
    throw;
  }
  return print_count(context, changed, false);
}

// Changes all jobs that the selector matches, page by page.
int change_selected(Context& context, const BulkCommand& command) {
  const Arguments& arguments = context.arguments;
  const int64_t limit = read_limit(arguments);
  Words selector = read_targets(arguments);
  require_queue(context);
  if (arguments.has("--dry-run")) {
    return print_count(context, count_selected(context, command), true);
  }
  const std::string name = arguments.command()->name;
  const bool asks = selector.empty() && name != "retry" && !arguments.has("--yes");
  const std::string which = name == "purge" ? " that have ended?" : " that have not ended?";
  if (asks && !is_confirmed(name + " all jobs of " + shown_queue(context.queue()) + which)) {
    throw Failure{kServerError, "nothing was changed"};
  }
  if (selector.empty()) selector = {"ALL"};
  return change_pages(context, limit, [&](const std::string& cursor, int64_t changed) {
    Words words = {command.word, context.queue(), "WHERE"};
    words.insert(words.end(), selector.begin(), selector.end());
    const int64_t count = std::min(kMaxPageCount, limit - changed);
    words.insert(words.end(), {"LIMIT", std::to_string(count), "CURSOR", cursor});
    arguments.append_words(command.options, words);
    return words;
  });
}

int change(Context& context, const BulkCommand& command) {
  if (context.operands() == 1) return change_selected(context, command);
  Words selector;
  append_selector(context.arguments, selector);
  for (const char* option : {"--all", "--limit", "--dry-run"}) {
    if (context.arguments.has(option)) selector.emplace_back(option);
  }
  if (!selector.empty()) throw usage_error("ids or a selector, not both");
  return change_named(context, command.word, command.options);
}

int run_cancel(Context& context) { return change(context, kCancel); }
int run_retry(Context& context) { return change(context, kRetry); }
int run_purge(Context& context) { return change(context, kPurge); }

}  // namespace

int nack_worker(Context& context, std::span<const Option> options) {
  const std::string worker = *context.arguments.value("--worker");
  require_queue(context);
  if (context.arguments.has("--dry-run")) {
    const Words runs = {"Q.LIST", context.queue(), "WHERE", "STATE", "active", "WORKER", worker};
    return print_count(context,
                       count_listed(context, runs, kNoLimit, [](const RespValue&) { return true; }),
                       true);
  }
  return change_pages(context, kNoLimit, [&](const std::string& cursor, int64_t) {
    Words words = {"Q.NACK", context.queue(), "WHERE", "WORKER", worker, "CURSOR", cursor};
    context.arguments.append_words(options, words);
    return words;
  });
}

std::span<const CommandRow> bulk_commands() {
  static const CommandRow kRows[] = {
      {"cancel",
       "QUEUE [ID...]",
       "cancel jobs; active jobs are asked to stop",
       "Takes ids, or a selector for all matching jobs that have not ended.\n"
       "With --all it asks for confirmation if standard input is a terminal.",
       {kCancelOptions, selector_options(), kManyOptions, kYes},
       run_cancel,
       "sluice cancel exec --group ann --state pending --dry-run"},
      {"retry",
       "QUEUE [ID...]",
       "queue ended jobs again",
       "Takes ids, or a selector for all matching jobs; without --state, failed jobs.",
       {selector_options(), kManyOptions, kYesOfRetry},
       run_retry,
       "sluice retry exec --state failed --older 1h"},
      {"purge",
       "QUEUE [ID...]",
       "remove ended jobs",
       "Takes ids, or a selector for all matching jobs that have ended.\n"
       "With --all it asks for confirmation if standard input is a terminal.",
       {selector_options(), kManyOptions, kYes},
       run_purge,
       "sluice purge exec --state completed"},
  };
  return kRows;
}

}  // namespace sluice::cli
