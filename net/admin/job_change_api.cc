// Routes that change jobs: move, cancel, retry, purge; one, those of some ids, all that are
// selected.
#include <algorithm>
#include <functional>
#include <utility>

#include "engine/queue/job_id.h"
#include "engine/queue/selector.h"
#include "net/admin/job_answer.h"
#include "net/admin/routes.h"
#include "net/io/io_thread.h"

namespace sluice {

namespace {

using nlohmann::json;
using OptionType = OptionRow::Type;

JobAnswer bad_member(Exchange& exchange, Bytes name, Bytes why) {
  BodyReader body(exchange, json::object());
  body.fail(name, why);
  return refused_answer(*body.problem());
}

// --- Conditions ---

constexpr const char* kWas = "was";

// The words of a condition: names of the job's members and their values, an empty one for null.
Words read_was(BodyReader& body) {
  Words was;
  body.options({{kWas, "", OptionType::kTextPairs}}, was);
  return was;
}

// What names an end of a job: its queue time, which stays the same when the wall clock is set.
// Nothing for a job that has not ended or cannot be read. `job`: what Q.GET has replied just now.
std::optional<int64_t> end_of(Exchange& exchange, const RespValue& job) {
  if (!job.is_map() || job.at("finished").is_null()) return std::nullopt;
  return job.at("finished").integer + exchange.engine().thread().clock().times().ahead_ms;
}

// Nothing if the job has no such member, or one that is no text and no number.
std::optional<std::string> plain_member(Exchange& exchange, const RespValue& job,
                                        const std::string& name) {
  if (name == "end") {
    const auto end = end_of(exchange, job);
    return end ? std::to_string(*end) : "";
  }
  const RespValue* member = job.find(name);
  if (member == nullptr) return std::nullopt;
  if (member->is_null()) return "";
  if (member->kind == RespValue::Kind::kInteger) return std::to_string(member->integer);
  return member->kind == RespValue::Kind::kText ? std::optional(member->text) : std::nullopt;
}

// The answer if the job is not as `was` says.
std::optional<JobAnswer> refused_change(Exchange& exchange, const std::string& id,
                                        const Words& was) {
  const RespValue job = exchange.run({"Q.GET", exchange.path("queue"), id});
  if (!job.is_map()) return shown_job(exchange, job);
  for (size_t i = 0; i < was.size(); i += 2) {
    const auto now = plain_member(exchange, job, was[i]);
    if (!now) {
      return bad_member(exchange, kWas,
                        "must have members of a job that are texts or numbers, or its end");
    }
    if (*now == was[i + 1]) continue;
    return refused_answer(changed_problem(was[i], *now));
  }
  return std::nullopt;
}

// `change` of a job if it is as `was` says at that moment.
JobAnswer change_if(Exchange& exchange, const std::string& id, const Words& was,
                    const std::function<JobAnswer()>& change) {
  if (was.empty()) return change();
  JobAnswer answer;
  exchange.run_together([&] {
    auto refused = refused_change(exchange, id, was);
    answer = refused ? std::move(*refused) : change();
  });
  return answer;
}

// --- One job ---

// Distinguishes an unknown or ended job from one that can be moved.
bool is_waiting_state(Bytes state) {
  return state == "pending" || state == "delayed" || state == "blocked";
}

JobAnswer move_one(Exchange& exchange, const Words& words) {
  const RespValue moved = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, moved)) return refused_answer(std::move(*refused));
  const RespValue job = exchange.run({"Q.GET", words[1], words[2]});
  if (job.is_map() && moved.is_null() && !is_waiting_state(job.at("state").text)) {
    return refused_answer(problem(409, "NOTWAITING", "The job is active or has ended."));
  }
  return shown_job(exchange, job);
}

void move_job(Exchange& exchange) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words = {"Q.MOVE", exchange.path("queue"), exchange.path("id")};
  body.options({{"pri", "PRI"},
                {"boost_ms", "BOOST", OptionType::kDuration},
                {"delay_ms", "DELAY", OptionType::kDuration},
                {"at", "AT", OptionType::kInteger}},
               words);
  if (const auto place = body.bytes("place")) {
    if (*place != "front" && *place != "back") body.fail("place", *place, {"front", "back"});
    words.push_back(*place);
  }
  body.at_most_one({"place", "delay_ms", "at"});
  if (words.size() == 3) body.fail("", "nothing to change");
  const Words was = read_was(body);
  if (query.failed() || body.failed()) return;
  respond_answer(exchange,
                 change_if(exchange, words[2], was, [&] { return move_one(exchange, words); }));
}

// A command on one job: its words end with the options.
using ChangeOne = JobAnswer (*)(Exchange& exchange, const std::string& id, const Words& options);

JobAnswer cancel_one(Exchange& exchange, const std::string& id, const Words& options) {
  const std::string& queue = exchange.path("queue");
  Words words = {"Q.CANCEL", queue, id};
  append_words({&options}, words);
  const RespValue job = exchange.run({"Q.GET", queue, id});
  const RespValue reply = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  if (reply.text != "gone") {
    JobAnswer answer = {200, {{"result", reply.text}}};
    // The user may not be allowed to read jobs.
    if (!job.is_map()) return answer;
    put_value(answer.members, "was", job.at("state"));
    const auto end = end_of(exchange, exchange.run({"Q.GET", queue, id}));
    if (end) answer.members["end"] = *end;
    return answer;
  }
  return refused_answer(job.is_null() ? problem(404, "NOJOB", "No such job.")
                                      : problem(409, "ENDED", "The job has ended."));
}

JobAnswer retry_one(Exchange& exchange, const std::string& id, const Words&) {
  const RespValue reply = exchange.run({"Q.RETRY", exchange.path("queue"), id});
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  return {200, {{"state", reply.text}}};
}

JobAnswer purge_one(Exchange& exchange, const std::string& id, const Words&) {
  const RespValue reply = exchange.run({"Q.PURGE", exchange.path("queue"), id});
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  if (reply.text == "purged") return {200, {{"result", reply.text}}};
  return refused_answer(problem(409, "NOTENDED", "The job has not ended."));
}

const std::vector<OptionRow>& cancel_options() {
  static const std::vector<OptionRow> rows = {{"reason", "REASON"},
                                              {"grace_ms", "GRACE", OptionType::kDuration}};
  return rows;
}

void change_job(Exchange& exchange, ChangeOne change, const std::vector<OptionRow>& options) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words;
  body.options(options, words);
  const Words was = read_was(body);
  if (query.failed() || body.failed()) return;
  const std::string& id = exchange.path("id");
  respond_answer(exchange,
                 change_if(exchange, id, was, [&] { return change(exchange, id, words); }));
}

void cancel_job(Exchange& exchange) { change_job(exchange, cancel_one, cancel_options()); }

void retry_job(Exchange& exchange) { change_job(exchange, retry_one, {}); }

// --- Many at once ---

// The arguments of a call on many jobs: `where`, `cursor`, and options of the command.
struct Many {
  SelectorWords selector;
  Words options;
  bool dry_run = false;
};

bool read_many(Exchange& exchange, const std::vector<OptionRow>& options, Many& many) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  body.options({{"cursor", "CURSOR"}}, many.options);
  body.options(options, many.options);
  many.dry_run = body.boolean("dry_run").value_or(false);
  auto where = body.object("where");
  if (!where) body.fail("where", "is required");
  if (where) {
    many.selector = read_selector(*where);
    // A mistyped criterion is reported as such.
    if (!many.selector.means_something() && where->knows_all()) {
      where->fail("where",
                  "requires at least one of state, group, group_glob, pri, tag, key, worker, "
                  "older_ms, since_ms, until_ms, id_part, error, error_pattern and "
                  "payload_part, or all: true");
    }
  }
  return !query.failed() && !body.failed() && !where->failed();
}

// The states that a command on many jobs may change, and the default if none is given.
struct Changeable {
  JobStates allowed;
  JobStates usual;
};

// The states to count for a dry run. None if the command can change none of the given states. An
// unknown state is kept, for the command to reject.
Words counted_states(const Words& named, Changeable states) {
  Words counted;
  for (size_t i = 1; i < named.size(); i += 2) {
    const auto state = parse_job_state(named[i]);
    if (state && (states.allowed & state_bit(*state)) == 0) continue;
    counted.insert(counted.end(), {"STATE", named[i]});
  }
  for (unsigned i = 0; named.empty() && i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    if ((states.usual & state_bit(state)) == 0) continue;
    counted.insert(counted.end(), {"STATE", std::string(job_state_name(state))});
  }
  return counted;
}

// A job that was already asked to stop is not asked again, unless its time limit changes.
bool would_change(const RespValue& job, const Words& options) {
  if (job.at("cancel").is_null()) return true;
  for (size_t i = 0; i < options.size(); i += 2) {
    if (options[i] == "GRACE") return true;
  }
  return false;
}

void count_many(Exchange& exchange, const Many& many, Changeable states) {
  const SelectorWords& selector = many.selector;
  const Words counted = counted_states(selector.states, states);
  const bool none = counted.empty();
  Words words = {"Q.LIST", exchange.path("queue"), "WHERE"};
  // Run the command even if nothing is counted, so that errors in the rest are reported.
  append_words({none ? &selector.states : &counted}, words);
  // If the selector means all jobs, the states alone select.
  if (!selector.means_all()) append_words({&selector.others}, words);
  append_words({&selector.limit}, words);
  words.insert(words.end(), {"COUNT", "1000"});
  // A list takes none of the other options.
  if (!many.options.empty() && many.options[0] == "CURSOR") {
    words.insert(words.end(), {many.options[0], many.options[1]});
  }
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  const std::vector<RespValue>& jobs = reply.items[1].items;
  const auto count = std::count_if(jobs.begin(), jobs.end(), [&](const RespValue& job) {
    return would_change(job, many.options);
  });
  respond_count(exchange, none ? 0 : count, none ? "0" : reply.items[0].text, true);
}

JobAnswer change_named(Exchange& exchange, ChangeOne change, const std::string& id,
                       const Words& options, const Words& was) {
  JobAnswer answer =
      equals_ignore_case(id, kWhereWord)
          ? bad_member(exchange, "id", kNoJobId)
          : change_if(exchange, id, was, [&] { return change(exchange, id, options); });
  put_bytes(answer.members, "id", id);
  return answer;
}

// The jobs whose ids the body names: each has an answer of its own, and maybe a condition.
void change_each(Exchange& exchange, json members, ChangeOne change,
                 const std::vector<OptionRow>& rows) {
  const json was = members.value(kWas, json());
  members.erase(kWas);
  QueryReader query(exchange);
  BodyReader body(exchange, std::move(members));
  Words ids;
  Words options;
  body.options({{"ids", "", OptionType::kTexts}}, ids);
  body.options(rows, options);
  if (ids.size() > kMostJobsNamed) body.fail("ids", kTooManyJobs);
  if (!was.is_null() && !(was.is_array() && was.size() == ids.size())) {
    body.fail(kWas, "must be an array with an object for each of the ids");
  }
  if (query.failed() || body.failed()) return;
  std::vector<Words> conditions(ids.size());
  for (size_t i = 0; i < was.size(); ++i) {
    BodyReader one(exchange, json::object({{kWas, was[i]}}));
    conditions[i] = read_was(one);
    if (one.failed()) return;
  }
  answer_each(exchange, ids.size(), [&exchange, change, ids, options, conditions](size_t i) {
    return change_named(exchange, change, ids[i], options, conditions[i]);
  });
}

struct ManyCommand {
  const char* name;
  ChangeOne one;
  std::vector<OptionRow> options;
  Changeable states;
};

void change_many(Exchange& exchange, const ManyCommand& command) {
  json members = body_of(exchange);
  if (members.is_object() && members.contains("ids")) {
    return change_each(exchange, std::move(members), command.one, command.options);
  }
  Many many;
  if (!read_many(exchange, command.options, many)) return;
  if (many.dry_run) return count_many(exchange, many, command.states);
  Words words = {command.name, exchange.path("queue"), "WHERE"};
  const SelectorWords& selector = many.selector;
  append_words({&selector.states, &selector.others, &selector.limit, &many.options}, words);
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  respond_count(exchange, reply.items[1].integer, reply.items[0].text, false);
}

void cancel_jobs(Exchange& exchange) {
  change_many(exchange, {"Q.CANCEL", cancel_one, cancel_options(), {kLiveStates, kLiveStates}});
}

void retry_jobs(Exchange& exchange) {
  change_many(exchange,
              {"Q.RETRY", retry_one, {}, {kTerminalStates, state_bit(JobState::kFailed)}});
}

void purge_jobs(Exchange& exchange) {
  change_many(exchange, {"Q.PURGE", purge_one, {}, {kTerminalStates, kTerminalStates}});
}

}  // namespace

std::vector<Route> job_change_routes() {
  constexpr const char* kJob = "/api/v1/queues/{queue}/jobs/{id}";
  std::vector<Route> routes = {
      {.method = HttpMethod::patch,
       .pattern = kJob,
       .access = Access::kOperate,
       .handler = move_job,
       .summary = "Changes the band or position of a waiting job.",
       .body = "Move",
       .answer = "Job"},
      operate_route("/api/v1/queues/{queue}/jobs/{id}:cancel", cancel_job,
                    "Cancels a waiting job, or asks the worker of a running one to stop.", "Cancel",
                    "Cancelled"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:retry", retry_job,
                    "Queues an ended job again.", "Condition", "State")};
  for (Route& route : routes) route.problems = {412};
  const std::vector<Route> of_many = {
      operate_route("/api/v1/queues/{queue}/jobs:cancel", cancel_jobs,
                    "Cancels the selected jobs, or those of the given ids.", "CancelManyOrIds",
                    "CountOrOutcomes"),
      operate_route("/api/v1/queues/{queue}/jobs:retry", retry_jobs,
                    "Retries the selected ended jobs, without a state failed ones; or those of the "
                    "given ids.",
                    "ManyOrIds", "CountOrOutcomes"),
      operate_route("/api/v1/queues/{queue}/jobs:purge", purge_jobs,
                    "Removes the selected ended jobs, or those of the given ids.", "ManyOrIds",
                    "CountOrOutcomes")};
  routes.insert(routes.end(), of_many.begin(), of_many.end());
  return routes;
}

}  // namespace sluice
