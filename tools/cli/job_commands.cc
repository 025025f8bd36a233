// Commands about jobs that somebody adds or looks at: add, jobs, job, move.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/queue/field_help.h"
#include "engine/queue/job_id.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/story.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr int64_t kUsualJobs = 50;
constexpr int64_t kMostJobs = 10'000'000;
constexpr int64_t kPage = 1000;

// In which order the jobs of a state are worth reading, and the states themselves.
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
    {"--id", "ID", "the job's id; otherwise the queue chooses one"},
    {"--pri", "BAND", "its band, by name or number", "PRI"},
    {"--group", "GROUP", "whose job it is", "GROUP"},
    {"--key", "KEY", "a label that limits apply to; may be repeated", "KEY", nullptr, 0, true},
    {"--tag", "NAME=VALUE", "for statistics; may be repeated", "TAG", nullptr, '=', true},
    {"--cost", "SLOTS", "slots that it takes (1)", "COST"},
    {"--delay", "MS", "not before so much time has passed", "DELAY"},
    {"--at", "UNIX-MS", "not before this moment", "AT"},
    {"--boost", "MS", "ranked as if it had come so much earlier", "BOOST"},
    {"--ttl", "MS", "the time that it may spend pending", "TTL"},
    {"--lease", "MS", "the term of its leases", "LEASE"},
    {"--max-run", "MS", "its longest run", "MAXRUN"},
    {"--retry", "N", "failures that are tried again", "RETRY"},
    {"--backoff", "BASE:MAX", "milliseconds between the tries", "BACKOFF", nullptr, ':'},
    {"--need", "ID", "a job to be completed before; may be repeated", "NEED", nullptr, 0, true},
    {"--max-wait", "MS", "refuse it if it would wait longer", "MAXWAIT"},
    {"--if-dup", "MODE", "if the id is in use", "IFDUP", "error keep update replace"},
};

std::string place_text(const RespValue& reply) {
  std::string text = text_of(reply, "state");
  const int64_t position = integer_of(reply, "position", -1);
  if (position >= 0) text += ", " + count_text(position) + " before it";
  const int64_t eta_ms = integer_of(reply, "eta_ms", -1);
  if (eta_ms >= 0) text += ", starts in some " + duration_text(eta_ms);
  return text;
}

int run_add(Context& context) {
  std::string payload = context.operands() > 1 ? context.operand(1) : "-";
  if (payload == "-" && ::isatty(STDIN_FILENO) != 0) {
    std::fprintf(stderr, "sluice: the payload is read from here; Ctrl-D ends it\n");
  }
  if (payload == "-") payload.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto given = context.arguments.value("--id");
  if (given && !is_job_id(*given)) throw no_job_id(*given);
  Words words = {"Q.ADD", context.queue(), given.value_or("*"), payload};
  context.arguments.append_words(kAddOptions, words);
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
    {"--by", "ORDER", "the order; otherwise state by state, ended jobs the newest first", nullptr,
     "rank age deadline dispatch"},
    {"--with", "FIELD", "payload or result as well; may be repeated", "WITH", "payload result", 0,
     true},
    {"--limit", "N", "at most so many jobs (50)"},
};

class JobLister {
 public:
  explicit JobLister(Context& context)
      : context_(context), limit_(context.arguments.integer("--limit", kUsualJobs, 1, kMostJobs)) {
    jobs_.kind = RespValue::Kind::kArray;
  }

  // False: there are more than the limit.
  bool list() {
    const Arguments& arguments = context_.arguments;
    Words selector;
    if (arguments.has("--by")) {
      append_selector(arguments, selector);
      return walk(selector, *arguments.value("--by"));
    }
    // State by state, each in its own order: a walk without any order would be one by hashes.
    const std::vector<std::string> chosen = arguments.values("--state");
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
      // One more than fits tells that there are more.
      const std::string count = std::to_string(std::min(kPage, room() + 1));
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

int run_jobs(Context& context) {
  JobLister lister(context);
  const bool all = lister.list();
  const RespValue& jobs = lister.jobs();
  if (context.json) {
    print_json(resp_to_json(jobs));
    return kDone;
  }
  if (!jobs.items.empty()) {
    const std::vector<std::string> with = context.arguments.values("--with");
    jobs_table(jobs, context.server_now_ms(), with).print(context.screen);
  }
  if (!all) {
    std::fprintf(stderr, "sluice: there are more; --limit shows more than %lld\n",
                 static_cast<long long>(lister.limit()));
  }
  return kDone;
}

// --- job ---

constexpr Option kJobOptions[] = {
    {"--wait", "MS", "wait for its end for so long; 0: for ever"},
    {"--no-story", nullptr, "leave out what has happened to it"},
};

RespValue get_job(Context& context) {
  const std::string& id = context.operand(1);
  Words words = {"Q.GET", context.queue(), id, "WITH", "payload", "WITH", "result"};
  if (context.arguments.has("--wait")) {
    const int64_t wait_ms = context.arguments.integer("--wait", 0, 0, 1LL << 40);
    words.insert(words.end(), {"WAIT", std::to_string(wait_ms)});
    context.connection.set_patience(wait_ms == 0 ? 0 : wait_ms + 30'000);
  }
  RespValue job = as_map(context.connection.call(words));
  if (!job.is_null()) return job;
  const bool waited = context.arguments.has("--wait");
  throw Failure{kServerError, printable(id) + (waited ? ": it has not ended, or is not kept"
                                                      : ": there is no such job")};
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
    return kDone;
  }
  const int64_t now_ms = context.server_now_ms();
  // Whole, not cut to the terminal: this is where one looks for all of it.
  Screen whole = context.screen;
  whole.width = 0;
  fields_table(job, now_ms).print(whole);
  if (!story.events.items.empty()) {
    std::printf("\n");
    events_table(story.events, now_ms).print(context.screen);
  }
  if (!story.note.empty()) std::fprintf(stderr, "sluice: %s\n", story.note.c_str());
  return kDone;
}

// --- move ---

constexpr Option kMoveOptions[] = {
    {"--pri", "BAND", "to this band, by name or number", "PRI"},
    {"--front", nullptr, "before everything in its band", "FRONT"},
    {"--back", nullptr, "behind everything in its band", "BACK"},
    {"--boost", "MS", "ranked as if it had come so much earlier", "BOOST"},
    {"--delay", "MS", "not before so much time has passed", "DELAY"},
    {"--at", "UNIX-MS", "not before this moment", "AT"},
};

int run_move(Context& context) {
  const std::string& id = context.operand(1);
  Words words = {"Q.MOVE", context.queue(), id};
  context.arguments.append_words(kMoveOptions, words);
  if (words.size() == 3) throw usage_error("move takes at least one option: where to?");
  const RespValue reply = context.connection.call(words);
  const RespValue job = as_map(context.connection.call({"Q.GET", context.queue(), id}));
  if (job.is_null()) throw Failure{kServerError, printable(id) + ": there is no such job"};
  const std::string state = text_of(job, "state");
  // What waits without being pending has no position either.
  const bool moved = !reply.is_null() || state == "delayed" || state == "blocked";
  if (!moved) throw Failure{kServerError, printable(id) + ": it does not wait, it is " + state};
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
       "QUEUE",
       1,
       1,
       "list jobs",
       nullptr,
       {selector_options(), kJobsOptions},
       run_jobs,
       "sluice jobs exec --state failed --older 1h"},
      {"job",
       "QUEUE ID",
       2,
       2,
       "all about one job: fields, payload, result, story",
       "The story is read out of the queue's event log, as far as that goes back.",
       {kJobOptions},
       run_job,
       "sluice job exec report"},
      {"add",
       "QUEUE [PAYLOAD|-]",
       1,
       2,
       "add a job; - is standard input, and the default",
       nullptr,
       {kAddOptions},
       run_add,
       "sluice add exec 'print(1)' --id report --pri high --delay 5s"},
      {"move",
       "QUEUE ID",
       2,
       2,
       "move a waiting job within the queue",
       nullptr,
       {kMoveOptions},
       run_move,
       "sluice move exec report --front"},
  };
  return kRows;
}

}  // namespace sluice::cli
