// The commands of a worker, for use from a shell: pop, ack, nack, touch.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/queue/job_id.h"
#include "net/http/json_text.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr int64_t kMostBlockMs = int64_t{1} << 40;
constexpr int64_t kAnswerMs = 30'000;

constexpr Option kPopOptions[] = {
    {"--worker", "NAME", "the worker's name", "WORKER"},
    {"--count", "N", "at most N jobs (1)", "COUNT"},
    {"--block", "MS", "wait up to this long for jobs; 0: no limit"},
    {"--lease", "MS", "duration of the leases", "LEASE"},
    {"--match", "KEY", "only jobs with this key; may be repeated", "MATCH", nullptr, 0, true},
    {"--cap", "N", "only while at most N slots are in use", "CAP"},
    {"--id", "ID", "only this job", "ID"},
    {"--with", "FIELD", "with --json: also this field; may be repeated", "WITH",
     "error need_results", 0, true},
    {"--reqid", "TOKEN", "a repeated request returns the same jobs; needs --worker", "REQID"},
};

int run_pop(Context& context) {
  if (context.arguments.has("--reqid") && !context.arguments.has("--worker")) {
    throw usage_error("--reqid requires --worker");
  }
  Words words = {"Q.POP", std::to_string(context.operands())};
  for (size_t i = 0; i < context.operands(); ++i) words.push_back(context.operand(i));
  context.arguments.append_words(kPopOptions, words);
  if (context.arguments.has("--block")) {
    const int64_t block_ms = context.arguments.integer("--block", 0, 0, kMostBlockMs);
    words.insert(words.end(), {"BLOCK", std::to_string(block_ms)});
    context.connection.set_patience(block_ms == 0 ? 0 : block_ms + kAnswerMs);
  }
  const RespValue jobs = as_maps(context.connection.call(words));
  if (context.json) {
    print_json(resp_to_json(jobs));
  } else if (jobs.items.empty()) {
    std::fprintf(stderr, "sluice: no job available\n");
  } else {
    leases_table(jobs, context.server_now_ms()).print(context.screen);
  }
  return kDone;
}

// --- Ending or renewing a lease ---

Words lease_words(const Context& context, const char* command, std::span<const Option> options) {
  // The server would parse it as the beginning of a selector.
  if (equals_ignore_case(context.operand(1), kWhereWord)) throw no_job_id(context.operand(1));
  Words words = {command, context.queue(), context.operand(1), context.operand(2)};
  context.arguments.append_words(options, words);
  return words;
}

// --log-file beside --log: what no argument can hold, such as any byte or very many.
void append_file(const Context& context, const std::string& option, const char* word,
                 Words& words) {
  const std::string file_option = option + "-file";
  context.arguments.at_most_one({option.c_str(), file_option.c_str()});
  const auto path = context.arguments.value(file_option);
  if (path) words.insert(words.end(), {word, read_text(*path)});
}

constexpr Option kAckOptions[] = {
    {"--result", "TEXT", "the job's result", "RESULT"},
    {"--result-file", "FILE", "the same from a file; - is standard input"},
};

int run_ack(Context& context) {
  Words words = lease_words(context, "Q.ACK", kAckOptions);
  append_file(context, "--result", "RESULT", words);
  context.connection.call(words);
  if (context.json) {
    print_json({{"state", "completed"}});
  } else {
    std::printf("%s: completed\n", printable(context.operand(1)).c_str());
  }
  return kDone;
}

constexpr Option kNackOptions[] = {
    {"--fail", nullptr, "it has failed (the default with an id)", "FAIL"},
    {"--fatal", nullptr, "it has failed, even if retries are left", "FATAL"},
    {"--silent", nullptr, "return it as if it had never been popped", "SILENT"},
    {"--delay", "MS", "delay before it is available again", "DELAY"},
    {"--error", "TEXT", "why", "ERROR"},
};

constexpr Option kNackWorkerOptions[] = {
    {"--worker", "NAME", "all jobs that this worker runs"},
    {"--dry-run", nullptr, "with --worker: only count them"},
};

// Whether the command is about a worker, and not about one job. Throws a usage error.
bool names_worker(const Context& context) {
  const Arguments& arguments = context.arguments;
  arguments.at_most_one({"--fail", "--fatal", "--silent"});
  const auto worker = arguments.value("--worker");
  if (!worker) {
    if (context.operands() != 3) throw usage_error("nack takes an id and its lease, or --worker");
    if (arguments.has("--dry-run")) throw usage_error("--dry-run requires --worker");
    return false;
  }
  if (context.operands() != 1) throw usage_error("an id and its lease or --worker, not both");
  if (worker->empty()) throw usage_error("--worker requires a name, and not \"\"");
  arguments.at_most_one({"--worker", "--fatal"});
  arguments.at_most_one({"--worker", "--delay"});
  return true;
}

int run_nack(Context& context) {
  if (names_worker(context)) return nack_worker(context, kNackOptions);
  const RespValue reply =
      as_map(context.connection.call(lease_words(context, "Q.NACK", kNackOptions)));
  if (context.json) {
    print_json(resp_to_json(reply));
    return kDone;
  }
  std::string text = text_of(reply, "state");
  const int64_t not_before = integer_of(reply, "not_before", -1);
  if (not_before >= 0) text += " until " + moment_text(not_before, context.server_now_ms());
  text += ", attempts left: " + std::to_string(integer_of(reply, "attempts_left"));
  std::printf("%s: %s\n", printable(context.operand(1)).c_str(), text.c_str());
  return kDone;
}

constexpr Option kTouchOptions[] = {
    {"--lease", "MS", "duration from now", "LEASE"},
    {"--progress", "TEXT", "progress of the job", "PROGRESS"},
    {"--log", "TEXT", "append this to the log of the job, as it is", "LOG"},
    {"--log-file", "FILE", "the same from a file; - is standard input"},
    {"--worker", "NAME", "also show whether this worker is quiet", "WORKER"},
};

int run_touch(Context& context) {
  Words words = lease_words(context, "Q.TOUCH", kTouchOptions);
  append_file(context, "--log", "LOG", words);
  const RespValue reply = as_map(context.connection.call(words));
  if (context.json) {
    print_json(resp_to_json(reply));
    return kDone;
  }
  const RespValue* cancel = reply.find("cancel");
  std::string text = duration_text(integer_of(reply, "left_ms")) + " left";
  if (cancel != nullptr && !cancel->is_null())
    text += ", asked to stop: " + printable(cancel->text);
  if (integer_of(reply, "quiet") != 0) text += ", the worker is quiet";
  std::printf("%s: %s\n", printable(context.operand(1)).c_str(), text.c_str());
  return kDone;
}

constexpr const char* kLeaseDetails =
    "LEASE is the token printed by pop; '*' means the current lease, if the queue has\n"
    "fencing=off.";

constexpr const char* kNackDetails =
    "LEASE is the token printed by pop; '*' means the current lease, if the queue has\n"
    "fencing=off. With --worker instead of an id, for a machine that is dead: all that it\n"
    "runs ends as if the leases had expired, or with --fail or --silent.";

}  // namespace

std::span<const CommandRow> lease_commands() {
  static const CommandRow kRows[] = {
      {"pop",
       "QUEUE...",
       "pop the next jobs, with a lease",
       "End each with ack, or return it with nack, before the lease expires.",
       {kPopOptions},
       run_pop,
       "sluice pop exec --worker me --block 30s"},
      {"ack",
       "QUEUE ID LEASE",
       "complete a job",
       kLeaseDetails,
       {kAckOptions},
       run_ack,
       "sluice ack exec report 17 --result-file report.pdf"},
      {"nack",
       "QUEUE [ID [LEASE]]",
       "report a failure; the job is retried if it has retries left",
       kNackDetails,
       {kNackOptions, kNackWorkerOptions},
       run_nack,
       "sluice nack exec report 17 --error 'no network' --delay 1m"},
      {"touch",
       "QUEUE ID LEASE",
       "renew a lease; report progress, write to the log",
       kLeaseDetails,
       {kTouchOptions},
       run_touch,
       "echo page 4 | sluice touch exec report 17 --progress 4 --log-file -"},
  };
  return kRows;
}

}  // namespace sluice::cli
