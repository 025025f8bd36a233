// Commands that add, inspect or move jobs: add, jobs, job, move.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/limits.h"
#include "engine/queue/field_help.h"
#include "engine/queue/job_id.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/error_view.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/story.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr int64_t kUsualJobs = 50;
constexpr int64_t kMostJobs = 10'000'000;

// The states, each with the order in which its jobs are best read.
constexpr std::array<std::pair<const char*, const char*>, 8> kStateOrders = {
    {{"active", "age"},
     {"pending", "rank"},
     {"delayed", "age"},
     {"blocked", ""},
     {"failed", "age desc"},
     {"expired", "age desc"},
     {"cancelled", "age desc"},
     {"completed", "age desc"}}};

// --- add ---

constexpr Option kAddOptions[] = {
    {"--id", "ID", "the job's id; default: chosen by the queue"},
    {"--pri", "BAND", "its priority band, by name or number", "PRI"},
    {"--group", "GROUP", "the group it belongs to", "GROUP"},
    {"--key", "KEY", "a label that limits apply to; may be repeated", "KEY", nullptr, 0, true},
    {"--tag", "NAME=VALUE", "a tag for statistics; may be repeated", "TAG", nullptr, '=', true},
    {"--cost", "SLOTS", "slots it takes (1)", "COST"},
    {"--delay", "MS", "start after this time at the earliest", "DELAY"},
    {"--at", "UNIX-MS", "start at this moment at the earliest", "AT"},
    {"--boost", "MS", "rank it as if added this much earlier; negative: later", "BOOST"},
    {"--ttl", "MS", "maximum time pending", "TTL"},
    {"--lease", "MS", "duration of its leases", "LEASE"},
    {"--max-run", "MS", "maximum duration of a run", "MAXRUN"},
    {"--retry", "N", "number of retries", "RETRY"},
    {"--backoff", "BASE:MAX", "delay between retries, in milliseconds", "BACKOFF", nullptr, ':'},
    {"--need", "ID", "a job that must complete first; may be repeated", "NEED", nullptr, 0, true},
    {"--after", "ID", "a job that must end first, in whatever way; may be repeated", "AFTER",
     nullptr, 0, true},
    {"--max-wait", "MS", "reject it if it would wait longer", "MAXWAIT"},
    {"--wait", "MS", "wait up to this long until it has ended; 0: no limit"},
    {"--if-dup", "MODE", "what to do if the id is in use", "IFDUP", "error keep update replace"},
};

// Prints how the job has ended, after the line about its addition. Returns the exit code.
int print_end(Context& context, const RespValue& job) {
  const std::string state = text_of(job, "state");
  if (job.is_null()) throw Failure{kServerError, "the queue has been deleted"};
  if (state != "completed") {
    const std::string error = error_text(job);
    const std::string id = printable(text_of(job, "id"));
    throw Failure{kServerError, id + ": " + state + (error.empty() ? "" : ": " + printable(error))};
  }
  const std::string result = text_of(job, "result");
  std::fwrite(result.data(), 1, result.size(), stdout);
  // On a terminal the prompt begins a line of its own.
  if (context.screen.terminal && !result.empty() && result.back() != '\n') std::printf("\n");
  return kDone;
}

// With --wait. Standard output has the result alone.
int add_and_wait(Context& context, Words words) {
  const int64_t wait_ms = context.arguments.integer("--wait", 0, 0, 1LL << 40);
  words.insert(words.end(), {"WAIT", std::to_string(wait_ms)});
  context.connection.set_patience(wait_ms == 0 ? 0 : wait_ms + 30'000);
  RespValue reply = context.connection.call(words);
  const RespValue added = as_map(std::move(reply.items.at(0)));
  const RespValue job = as_map(std::move(reply.items.at(1)));
  if (!context.json) return print_end(context, job);
  nlohmann::json line = resp_to_json(added);
  line["job"] = resp_to_json(job);
  print_json(line);
  return text_of(job, "state") == "completed" ? kDone : kServerError;
}

int run_add(Context& context) {
  context.arguments.at_most_one({"--delay", "--at"});
  std::string payload = context.operands() > 1 ? context.operand(1) : "-";
  if (payload == "-" && ::isatty(STDIN_FILENO) != 0) {
    context.note("reading the payload from standard input; end with Ctrl-D");
  }
  if (payload == "-") payload = read_input();
  const auto given = context.arguments.value("--id");
  if (given && !is_job_id(*given)) throw no_job_id(*given);
  Words words = {"Q.ADD", context.queue(), given.value_or("*"), payload};
  context.arguments.append_words(kAddOptions, words);
  if (context.arguments.has("--wait")) return add_and_wait(context, std::move(words));
  const RespValue reply = as_map(context.connection.call(words));
  if (context.json) {
    print_json(resp_to_json(reply));
  } else {
    const std::string id = printable(text_of(reply, "id"));
    const std::string place = place_text(reply);
    std::printf("%s %s: %s\n", id.c_str(), text_of(reply, "result").c_str(), place.c_str());
  }
  return kDone;
}

// --- jobs ---

constexpr Option kJobsOptions[] = {
    {"--failed", nullptr, "failed jobs: --state failed"},
    {"--by", "ORDER", "the order, or failed jobs by their errors; default: by state", nullptr,
     "rank age deadline dispatch error"},
    {"--desc", nullptr, "with --by age: the newest first"},
    {"--with", "FIELD", "also show payload, result or options; may be repeated", "WITH",
     "payload result options", 0, true},
    {"--limit", "N", "at most N jobs (50)"},
};

class JobLister {
 public:
  explicit JobLister(Context& context)
      : context_(context), limit_(context.arguments.integer("--limit", kUsualJobs, 1, kMostJobs)) {
    jobs_.kind = RespValue::Kind::kArray;
  }

  // Returns false if there are more jobs than the limit.
  bool list() {
    const Arguments& arguments = context_.arguments;
    Words selector;
    if (arguments.has("--by")) {
      if (arguments.has("--failed")) selector = {"STATE", "failed"};
      append_selector(arguments, selector);
      std::string order = *arguments.value("--by");
      if (arguments.has("--desc")) order += " desc";
      if (equals_ignore_case(order, "dispatch") && !selector.empty()) {
        throw usage_error("--by dispatch takes no selector");
      }
      return walk(selector, order);
    }
    // List state by state, each in its own order; a walk without an order would be ordered by hash.
    std::vector<std::string> chosen = arguments.values("--state");
    if (arguments.has("--failed")) chosen.emplace_back("failed");
    append_selector(arguments, selector, false);
    for (const auto& row : kStateOrders) {
      const char* state = row.first;
      const bool is_chosen =
          chosen.empty() || std::any_of(chosen.begin(), chosen.end(), [&](const auto& one) {
            return equals_ignore_case(one, state);
          });
      Words with_state = selector;
      with_state.insert(with_state.begin(), {"STATE", state});
      if (is_chosen && !walk(with_state, row.second)) return false;
    }
    return true;
  }

  const RespValue& jobs() const { return jobs_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t room() const { return limit_ - static_cast<int64_t>(jobs_.items.size()); }

  bool walk(const Words& selector, const std::string& order) {
    std::string cursor = "0";
    do {
      // Ask for one more than fits, to find out whether there are more.
      const std::string count = std::to_string(std::min(kMaxPageCount, room() + 1));
      Words words = {"Q.LIST", context_.queue()};
      if (!selector.empty()) words.emplace_back("WHERE");
      words.insert(words.end(), selector.begin(), selector.end());
      if (!order.empty()) words.emplace_back("BY");
      const std::vector<std::string> order_words = split_words(order);
      words.insert(words.end(), order_words.begin(), order_words.end());
      context_.arguments.append_words(kJobsOptions, words);
      words.insert(words.end(), {"CURSOR", cursor, "COUNT", count});
      RespValue reply = context_.connection.call(words);
      cursor = reply.items[0].text;
      RespValue page = as_maps(std::move(reply.items[1]));
      for (RespValue& job : page.items) {
        if (room() == 0) return false;
        jobs_.items.push_back(std::move(job));
      }
    } while (cursor != "0");
    return true;
  }

  Context& context_;
  const int64_t limit_;
  RespValue jobs_;
};

// How often which error is among the failed jobs of a queue, or of all. It takes no selector.
int print_errors(Context& context) {
  Words selector;
  append_selector(context.arguments, selector);
  if (!selector.empty() && selector != Words{"STATE", "failed"}) {
    throw usage_error("--by error groups all failed jobs, without another selector");
  }
  const auto limit =
      static_cast<size_t>(context.arguments.integer("--limit", kUsualJobs, 1, kMostJobs));
  const bool of_all = context.operands() == 0;
  if (!of_all) require_queue(context);
  std::vector<QueueErrors> queues;
  size_t groups = 0;
  size_t hidden = 0;
  for (const std::string& name :
       of_all ? find_queues(context.connection) : context.arguments.operands()) {
    try {
      const ErrorGroups all = read_error_groups(context.connection, name);
      groups += all.size();
      // Those of a thousand queues may fill the memory: only what can be shown is kept.
      QueueErrors& errors = queues.emplace_back(QueueErrors{name, {}});
      for (const ErrorGroup* group : all.largest(limit)) errors.groups.push_back(*group);
    } catch (const Failure& failure) {
      if (!of_all || !is_hidden(failure)) throw;
      ++hidden;
    }
  }
  const std::vector<ErrorLine> shown = largest_errors(queues, limit);
  if (context.json) {
    print_json(of_all ? errors_of_queues(shown) : errors_by_pattern(shown));
  } else if (shown.empty()) {
    std::fprintf(stderr, "sluice: no failed jobs\n");
  } else {
    errors_table(shown, of_all, context.server_now_ms()).print(context.screen);
  }
  if (groups > limit) {
    const size_t more = groups - limit;
    context.note((more == 1 ? "there is 1 more group"
                            : "there are " + std::to_string(more) + " more groups") +
                 "; see --limit");
  }
  context.note_hidden(hidden);
  return kDone;
}

int run_jobs(Context& context) {
  const std::string by = context.arguments.value("--by").value_or("");
  if (context.arguments.has("--desc") && !equals_ignore_case(by, "age")) {
    throw usage_error("--desc requires --by age");
  }
  if (equals_ignore_case(by, "error")) return print_errors(context);
  if (context.operands() == 0) throw usage_error("jobs without a queue requires --by error");
  JobLister lister(context);
  require_queue(context);
  const bool all = lister.list();
  const RespValue& jobs = lister.jobs();
  if (context.json) {
    print_json(resp_to_json(jobs));
  } else if (jobs.items.empty()) {
    std::fprintf(stderr, "sluice: no such jobs\n");
  } else {
    const std::vector<std::string> with = context.arguments.values("--with");
    jobs_table(jobs, context.server_now_ms(), context.screen.terminal, with).print(context.screen);
  }
  if (!all) {
    context.note("there are more jobs than " + std::to_string(lister.limit()) + "; see --limit");
  }
  return kDone;
}

// --- job ---

constexpr Option kJobOptions[] = {
    {"--wait", "MS", "wait up to this long until it has ended; 0: no limit"},
    {"--no-story", nullptr, "do not show its events"},
};

RespValue get_job(Context& context) {
  const std::string& id = context.operand(1);
  Words words = {"Q.GET", context.queue(), id};
  for (const char* field : {"options", "dependents", "payload", "result"}) {
    words.insert(words.end(), {"WITH", field});
  }
  if (context.arguments.has("--wait")) {
    const int64_t wait_ms = context.arguments.integer("--wait", 0, 0, 1LL << 40);
    words.insert(words.end(), {"WAIT", std::to_string(wait_ms)});
    context.connection.set_patience(wait_ms == 0 ? 0 : wait_ms + 30'000);
  }
  RespValue job = as_map(context.connection.call(words));
  if (!job.is_null()) return job;
  if (!context.arguments.has("--wait")) throw no_job(printable(id));
  throw Failure{kServerError, printable(id) + ": it has not ended, or is no longer kept"};
}

void print_job(Context& context, const RespValue& job, const RespValue& events) {
  const int64_t now_ms = context.server_now_ms();
  // Not cut to the terminal's width: this is where people look for the complete values, as long as
  // they can be read there.
  Screen whole = context.screen;
  whole.width = 0;
  fields_table(job, now_ms, whole.terminal).print(whole);
  if (events.items.empty()) return;
  std::printf("\n");
  events_table(events, now_ms).print(context.screen);
}

int run_job(Context& context) {
  const RespValue job = get_job(context);
  Story story;
  if (!context.arguments.has("--no-story")) {
    story = read_story(context.connection, context.queue(), context.operand(1),
                       integer_of(job, "enqueued"));
  }
  if (context.json) {
    nlohmann::json all = resp_to_json(job);
    if (!context.arguments.has("--no-story")) all["story"] = resp_to_json(story.events);
    print_json(all);
  } else {
    print_job(context, job, story.events);
  }
  if (!story.note.empty()) context.note(story.note);
  return kDone;
}

// --- move ---

constexpr Option kMoveOptions[] = {
    {"--pri", "BAND", "to this priority band, by name or number", "PRI"},
    {"--front", nullptr, "to the front of its band", "FRONT"},
    {"--back", nullptr, "to the back of its band", "BACK"},
    {"--boost", "MS", "rank it as if added this much earlier; negative: later", "BOOST"},
    {"--delay", "MS", "start after this time at the earliest", "DELAY"},
    {"--at", "UNIX-MS", "start at this moment at the earliest", "AT"},
};

int run_move(Context& context) {
  const std::string& id = context.operand(1);
  Words words = {"Q.MOVE", context.queue(), id};
  context.arguments.append_words(kMoveOptions, words);
  if (words.size() == 3) throw usage_error("move requires at least one option");
  context.arguments.at_most_one({"--front", "--back", "--delay", "--at"});
  const RespValue reply = context.connection.call(words);
  const RespValue job = as_map(context.connection.call({"Q.GET", context.queue(), id}));
  if (job.is_null()) throw no_job(printable(id));
  const std::string state = text_of(job, "state");
  // Waiting jobs that are not pending have no position either.
  const bool moved = !reply.is_null() || state == "delayed" || state == "blocked";
  if (!moved) {
    Failure failure{kServerError, printable(id) + ": the job is not waiting, it is " + state};
    failure.word = "NOTWAITING";
    throw failure;
  }
  if (context.json) {
    print_json(resp_to_json(job));
  } else {
    const std::string place = place_text(job);
    std::printf("%s moved: %s\n", printable(id).c_str(), place.c_str());
  }
  return kDone;
}

}  // namespace

std::span<const CommandRow> job_commands() {
  static const CommandRow kRows[] = {
      {"jobs",
       "[QUEUE]",
       "list jobs",
       "--by error shows how many failed jobs have which error, with digits and hex as #; retry,\n"
       "cancel and purge take one of these errors as --pattern. Without a queue it shows those of\n"
       "all queues.",
       {selector_options(), kJobsOptions},
       run_jobs,
       "sluice jobs exec --failed --by error"},
      {"job",
       "QUEUE ID",
       "show one job: fields, payload, result, story",
       "The story is read from the queue's event log, as far as it goes back. A terminal gets\n"
       "4096 bytes of a payload, a result or a progress at most; --json and a pipe get all.",
       {kJobOptions},
       run_job,
       "sluice job exec report"},
      {"add",
       "QUEUE [PAYLOAD|-]",
       "add a job; the payload - is standard input (default)",
       nullptr,
       {kAddOptions},
       run_add,
       "sluice add exec 'print(1)' --id report --pri high --delay 5s"},
      {"move",
       "QUEUE ID",
       "move a waiting job within the queue",
       nullptr,
       {kMoveOptions},
       run_move,
       "sluice move exec report --front"},
  };
  return kRows;
}

}  // namespace sluice::cli
