// Commands for one job, several, or all that a selector names: cancel, retry, purge.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/queue/job_id.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

// As many as one call changes.
constexpr int64_t kPage = 1000;
constexpr int64_t kNoLimit = int64_t{1} << 52;

constexpr Option kManyOptions[] = {
    {"--all", nullptr, "all jobs that it may be about, in place of a selector"},
    {"--limit", "N", "of the selected jobs no more than so many"},
};

constexpr Option kCancelOptions[] = {
    {"--reason", "TEXT", "why; the worker and the story tell it", "REASON"},
    {"--grace", "MS", "how long an active one may go on; 0: not at all", "GRACE"},
};

// One by one; each has its line, and one that cannot be done leaves the others.
int change_named(Context& context, const char* command, std::span<const Option> options) {
  nlohmann::json results = nlohmann::json::array();
  int code = kDone;
  for (size_t i = 1; i < context.operands(); ++i) {
    // The server would take it as the beginning of a selector.
    if (equals_ignore_case(context.operand(i), kWhereWord)) throw no_job_id(context.operand(i));
  }
  for (size_t i = 1; i < context.operands(); ++i) {
    const std::string& id = context.operand(i);
    Words words = {command, context.queue(), id};
    context.arguments.append_words(options, words);
    const RespValue reply = context.connection.try_call(words);
    // A cancel of what has ended or is unknown changes nothing.
    const bool failed = reply.is_error() || reply.text == "gone";
    if (failed) {
      code = kServerError;
      const std::string why = reply.is_error() ? explain_error(reply.text)
                                               : "gone: it has ended, or there is no such job";
      std::fprintf(stderr, "sluice: %s: %s\n", printable(id).c_str(), why.c_str());
    } else if (!context.json) {
      std::printf("%s: %s\n", printable(id).c_str(), printable(reply.text).c_str());
    }
    nlohmann::json line = {{failed ? "error" : "state", reply.text}};
    put_bytes(line, "id", id);
    results.push_back(std::move(line));
  }
  if (context.json) print_json(results);
  return code;
}

// What may stand there; --limit alone says nothing.
std::string targets_of(const std::string& name) {
  return std::string(name == "purge" ? "" : "ids, or ") +
         "a selector (--state, --group, --group-glob, --pri, --tag, --key, --worker, --older), or "
         "--all";
}

// All that the selector names, page by page.
int change_selected(Context& context, const char* command, std::span<const Option> options) {
  const Arguments& arguments = context.arguments;
  const int64_t limit = arguments.integer("--limit", kNoLimit, 1, kNoLimit);
  Words selector;
  append_selector(arguments, selector);
  if (selector.empty() != arguments.has("--all")) {
    const std::string name = arguments.command()->name;
    throw usage_error(name + (selector.empty() ? " takes " + targets_of(name)
                                               : " takes a selector or --all, not both"));
  }
  if (selector.empty()) selector = {"ALL"};
  int64_t changed = 0;
  std::string cursor = "0";
  do {
    Words words = {command, context.queue(), "WHERE"};
    words.insert(words.end(), selector.begin(), selector.end());
    words.insert(words.end(), {"LIMIT", std::to_string(std::min(kPage, limit - changed))});
    words.insert(words.end(), {"CURSOR", cursor});
    arguments.append_words(options, words);
    const RespValue reply = context.connection.call(words);
    cursor = reply.items[0].text;
    changed += reply.items[1].integer;
  } while (cursor != "0" && changed < limit);
  if (context.json) {
    print_json({{"count", changed}});
  } else {
    std::printf("%s job%s\n", count_text(changed).c_str(), changed == 1 ? "" : "s");
  }
  return kDone;
}

int change(Context& context, const char* command, std::span<const Option> options) {
  if (context.operands() == 1) return change_selected(context, command, options);
  Words selector;
  append_selector(context.arguments, selector);
  if (!selector.empty() || context.arguments.has("--all") || context.arguments.has("--limit")) {
    throw usage_error("ids or a selector, not both");
  }
  return change_named(context, command, options);
}

int run_cancel(Context& context) { return change(context, "Q.CANCEL", kCancelOptions); }
int run_retry(Context& context) { return change(context, "Q.RETRY", {}); }
int run_purge(Context& context) { return change_selected(context, "Q.PURGE", {}); }

}  // namespace

std::span<const CommandRow> bulk_commands() {
  static const CommandRow kRows[] = {
      {"cancel",
       "QUEUE [ID...]",
       1,
       100'000,
       "cancel jobs; active ones are told to stop",
       "Either ids, or a selector for all jobs that it names and that have not ended.",
       {kCancelOptions, selector_options(), kManyOptions},
       run_cancel},
      {"retry",
       "QUEUE [ID...]",
       1,
       100'000,
       "let ended jobs wait again",
       "Either ids, or a selector for all jobs that it names; without --state failed ones.",
       {selector_options(), kManyOptions},
       run_retry},
      {"purge",
       "QUEUE",
       1,
       1,
       "forget ended jobs",
       nullptr,
       {selector_options(), kManyOptions},
       run_purge},
  };
  return kRows;
}

}  // namespace sluice::cli
