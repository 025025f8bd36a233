// Routes about jobs: list, add, show, move, cancel, retry, purge.
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/queue/job_id.h"
#include "engine/queue/selector.h"
#include "net/admin/api.h"
#include "net/admin/each_job.h"
#include "net/admin/routes.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;
using OptionType = OptionRow::Type;

const std::vector<OptionRow>& add_options() {
  static const std::vector<OptionRow> rows = {
      {"pri", "PRI"},
      {"boost_ms", "BOOST", OptionType::kDuration},
      {"delay_ms", "DELAY", OptionType::kDuration},
      {"at", "AT", OptionType::kInteger},
      {"group", "GROUP"},
      {"keys", "KEY", OptionType::kTexts},
      {"cost", "COST", OptionType::kInteger},
      {"ttl_ms", "TTL", OptionType::kDuration},
      {"lease_ms", "LEASE", OptionType::kDuration},
      {"max_run_ms", "MAXRUN", OptionType::kDuration},
      {"retry", "RETRY", OptionType::kInteger},
      {"backoff", "BACKOFF", OptionType::kPair},
      {"ifdup", "IFDUP"},
      {"needs", "NEED", OptionType::kTexts},
      {"after", "AFTER", OptionType::kTexts},
      {"tags", "TAG", OptionType::kTextPairs},
      {"max_wait_ms", "MAXWAIT", OptionType::kDuration},
  };
  return rows;
}

// Default number of jobs on a page of a list.
constexpr int64_t kUsualPage = 100;

void append(std::initializer_list<const Words*> parts, Words& words) {
  for (const Words* part : parts) words.insert(words.end(), part->begin(), part->end());
}

// A page of Q.LIST. A long one is read in several turns.
class JobList {
 public:
  // `words` must contain neither COUNT nor CURSOR.
  JobList(Exchange& exchange, Words words, std::string cursor, size_t count)
      : exchange_(exchange.shared_from_this()),
        words_(std::move(words)),
        cursor_(std::move(cursor)),
        count_(count) {}

  // Reads one piece. Returns false after the last one.
  bool go_on();

 private:
  static constexpr size_t kMostInPiece = 50;
  static constexpr const char* kLookedAtOnce = "500";
  static constexpr int kMostPieces = 1000;  // where long texts are searched

  const std::shared_ptr<Exchange> exchange_;
  const Words words_;
  std::string cursor_;
  const size_t count_;
  PieceSize piece_{8, kMostInPiece};
  size_t bytes_ = 0;
  size_t looked_at_ = 0;
  int pieces_ = 0;
  JsonList list_{"jobs"};
};

bool JobList::go_on() {
  if (exchange_->cut_off()) return false;
  const size_t wanted = std::min(piece_.next(), count_ - list_.size());
  Words words = words_;
  words.insert(words.begin() + 2,
               {"LOOK", kLookedAtOnce, "CURSOR", cursor_, "COUNT", std::to_string(wanted)});
  const RespValue reply = exchange_->run(words);
  if (respond_error(*exchange_, reply)) return false;
  const std::vector<RespValue>& jobs = reply.items[1].items;
  const size_t bytes = text_bytes(reply);
  for (const RespValue& job : jobs) list_.add(job);
  bytes_ += bytes;
  cursor_ = reply.items[0].text;
  looked_at_ += static_cast<size_t>(reply.items[2].integer);
  if (cursor_ == "0" || list_.size() >= count_ || bytes_ >= kMaxPageBytes ||
      looked_at_ >= kMaxExamined || ++pieces_ == kMostPieces) {
    list_.put({{"looked_at", looked_at_}});
    list_.respond(*exchange_, cursor_json(reply.items[0].text));
    return false;
  }
  piece_.note(jobs.size(), bytes);
  return true;
}

// Lists of ended jobs show the newest first.
bool means_ended(const SelectorWords& selector) {
  JobStates states = 0;
  for (size_t i = 1; i < selector.states.size(); i += 2) {
    const auto state = parse_job_state(selector.states[i]);
    if (!state) return false;
    states |= state_bit(*state);
  }
  return states != 0 && (states & kLiveStates) == 0;
}

// The next jobs in dispatch order are read at one moment; they are few.
void list_next(Exchange& exchange, Words words, int64_t count) {
  words.insert(words.end(), {"COUNT", std::to_string(count)});
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  JsonList list("jobs");
  for (const RespValue& job : reply.items[1].items) list.add(job);
  list.respond(exchange, cursor_json(reply.items[0].text));
}

void list_jobs(Exchange& exchange) {
  QueryReader query(exchange);
  Words words = {"Q.LIST", exchange.path("queue")};
  const std::string by = query.text("by").value_or("");
  if (!by.empty()) words.insert(words.end(), {"BY", by});
  const std::optional<bool> desc = query.boolean("desc");
  if (desc && !equals_ignore_case(by, "AGE")) query.fail("desc", "goes with by=age");
  const std::optional<int64_t> count = query.integer("count", 1, kMaxPageCount);
  const std::optional<std::string> cursor = query.text("cursor");
  query.options({{"with", "WITH", OptionType::kTexts}}, words);
  read_progress_bytes(query, words);
  SelectorWords selector = read_selector(query);
  const bool selects = selector.means_something() || !selector.limit.empty();
  const bool in_dispatch_order = equals_ignore_case(by, "DISPATCH");
  if (in_dispatch_order && selects) query.fail("by", "dispatch takes neither criteria nor a limit");
  if (query.failed()) return;
  if (by.empty() && means_ended(selector)) words.insert(words.end(), {"BY", "AGE", "DESC"});
  if (desc.value_or(false)) words.emplace_back("DESC");
  if (selects) {
    // A selector with only a limit means all jobs.
    if (!selector.means_something()) selector.others = {"ALL"};
    words.emplace_back("WHERE");
    append({&selector.states, &selector.others, &selector.limit}, words);
  }
  if (in_dispatch_order && !cursor) {
    return list_next(exchange, std::move(words), count.value_or(kUsualPage));
  }
  const int64_t limit =
      selector.limit.empty() ? kMaxPageCount : parse_i64(selector.limit[1]).value_or(kMaxPageCount);
  const int64_t usual = selector.limit.empty() ? kUsualPage : limit;
  const auto most = std::clamp<int64_t>(std::min(count.value_or(usual), limit), 1, kMaxPageCount);
  const auto list = std::make_shared<JobList>(exchange, std::move(words), cursor.value_or("0"),
                                              static_cast<size_t>(most));
  work_in_turns(exchange.engine().thread(), [list] { return list->go_on(); });
}

// --- Adding ---

// The words of Q.ADD. The body remembers what is wrong with it.
Words add_words(Exchange& exchange, BodyReader& body) {
  const auto given = body.bytes("id");
  if (given && !is_job_id(*given)) body.fail("id", kNoJobId);
  const std::string id = given.value_or("*");
  const auto payload = body.bytes("payload");
  if (!payload) body.fail("payload", "is required");
  Words words = {"Q.ADD", exchange.path("queue"), id, payload.value_or("")};
  body.options(add_options(), words);
  body.at_most_one({"delay_ms", "at"});
  return words;
}

unsigned added_status(const RespValue& added) {
  const std::string& result = added.at("result").text;
  return result == "added" || result == "replaced" ? 201 : 200;
}

Answer add_one(Exchange& exchange, BodyReader body) {
  const Words words = add_words(exchange, body);
  if (auto refused = body.problem()) return refused_answer(std::move(*refused));
  const RespValue reply = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  return {added_status(reply), resp_to_json(reply)};
}

// Adds a job and waits for its end.
void add_and_wait(Exchange& exchange, Words words, int64_t wait_ms) {
  words.insert(words.end(), {"WAIT", std::to_string(wait_ms)});
  exchange.run_waiting(words, [self = exchange.shared_from_this()](const RespValue& reply) {
    if (respond_error(*self, reply)) return;
    json added = resp_to_json(reply.items[0]);
    added["job"] = resp_to_json(reply.items[1]);
    respond_json(*self, added, added_status(reply.items[0]));
  });
}

void add_job(Exchange& exchange) {
  QueryReader query(exchange);
  json body = body_of(exchange);
  if (query.failed()) return;
  if (body.is_array()) {
    if (body.size() > kMostAtOnce) return respond_bad_field(exchange, {"jobs", kTooMany});
    const size_t count = body.size();
    return answer_each(exchange, count, [&exchange, jobs = std::move(body)](size_t i) mutable {
      return add_one(exchange, BodyReader(exchange, std::move(jobs[i])));
    });
  }
  BodyReader reader(exchange, std::move(body));
  Words words = add_words(exchange, reader);
  const int64_t wait_ms = reader.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (reader.failed()) return;
  if (wait_ms != 0) return add_and_wait(exchange, std::move(words), wait_ms);
  const RespValue added = exchange.run(words);
  if (!respond_error(exchange, added)) {
    respond_json(exchange, resp_to_json(added), added_status(added));
  }
}

void respond_job(Exchange& exchange, const RespValue& reply) {
  if (respond_error(exchange, reply)) return;
  if (reply.is_null()) return exchange.respond(problem(404, "NOJOB", "No such job."));
  respond_json(exchange, resp_to_json(reply));
}

void get_job(Exchange& exchange) {
  QueryReader query(exchange);
  Words words = {"Q.GET", exchange.path("queue"), exchange.path("id")};
  query.options({{"with", "WITH", OptionType::kTexts}}, words);
  read_progress_bytes(query, words);
  const int64_t wait_ms = query.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (query.failed()) return;
  if (wait_ms == 0) return respond_job(exchange, exchange.run(words));
  Words waiting = words;
  waiting.insert(waiting.end(), {"WAIT", std::to_string(wait_ms)});
  exchange.run_waiting(waiting, [self = exchange.shared_from_this(), words](RespValue reply) {
    // Timeout, or the job was not retained: return its present state.
    if (reply.is_null()) reply = self->run(words);
    respond_job(*self, reply);
  });
}

// Distinguishes an unknown or ended job from one that can be moved.
bool is_waiting_state(Bytes state) {
  return state == "pending" || state == "delayed" || state == "blocked";
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
  if (query.failed() || body.failed()) return;
  const RespValue moved = exchange.run(words);
  if (respond_error(exchange, moved)) return;
  const RespValue job = exchange.run({"Q.GET", words[1], words[2]});
  if (job.is_map() && moved.is_null() && !is_waiting_state(job.at("state").text)) {
    return exchange.respond(problem(409, "NOTWAITING", "The job is active or has ended."));
  }
  respond_job(exchange, job);
}

// A command on one job: its words end with the options.
using ChangeOne = Answer (*)(Exchange& exchange, const std::string& id, const Words& options);

Answer cancel_one(Exchange& exchange, const std::string& id, const Words& options) {
  const std::string& queue = exchange.path("queue");
  Words words = {"Q.CANCEL", queue, id};
  append({&options}, words);
  const RespValue job = exchange.run({"Q.GET", queue, id});
  const RespValue reply = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  if (reply.text != "gone") {
    Answer answer = {200, {{"result", reply.text}}};
    // The user may not be allowed to read jobs.
    if (job.is_map()) put_value(answer.members, "was", job.at("state"));
    return answer;
  }
  return refused_answer(job.is_null() ? problem(404, "NOJOB", "No such job.")
                                      : problem(409, "ENDED", "The job has ended."));
}

Answer retry_one(Exchange& exchange, const std::string& id, const Words&) {
  const RespValue reply = exchange.run({"Q.RETRY", exchange.path("queue"), id});
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  return {200, {{"state", reply.text}}};
}

Answer purge_one(Exchange& exchange, const std::string& id, const Words&) {
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
  if (query.failed() || body.failed()) return;
  respond_answer(exchange, change(exchange, exchange.path("id"), words));
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
  append({none ? &selector.states : &counted}, words);
  // If the selector means all jobs, the states alone select.
  if (!selector.means_all()) append({&selector.others}, words);
  append({&selector.limit}, words);
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

Answer change_named(Exchange& exchange, ChangeOne change, const std::string& id,
                    const Words& options) {
  Answer answer;
  if (equals_ignore_case(id, kWhereWord)) {
    BodyReader named(exchange, json::object());
    named.fail("id", kNoJobId);
    answer = refused_answer(*named.problem());
  } else {
    answer = change(exchange, id, options);
  }
  put_bytes(answer.members, "id", id);
  return answer;
}

// The jobs whose ids the body names: each has an answer of its own.
void change_each(Exchange& exchange, json members, ChangeOne change,
                 const std::vector<OptionRow>& rows) {
  QueryReader query(exchange);
  BodyReader body(exchange, std::move(members));
  Words ids;
  Words options;
  body.options({{"ids", "", OptionType::kTexts}}, ids);
  body.options(rows, options);
  if (ids.size() > kMostAtOnce) body.fail("ids", kTooMany);
  if (query.failed() || body.failed()) return;
  answer_each(exchange, ids.size(), [&exchange, change, ids, options](size_t i) {
    return change_named(exchange, change, ids[i], options);
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
  append({&selector.states, &selector.others, &selector.limit, &many.options}, words);
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

std::vector<Route> job_routes() {
  constexpr const char* kJobs = "/api/v1/queues/{queue}/jobs";
  constexpr const char* kJob = "/api/v1/queues/{queue}/jobs/{id}";
  Route add =
      operate_route(kJobs, add_job,
                    "Adds a job, or each of an array; 200 for an array, and where IFDUP kept or "
                    "updated the job.",
                    "NewJobOrJobs", "AddedOrJobs");
  add.status = 201;
  add.may_be_there = true;
  add.problems = {429};
  return {
      {.pattern = kJobs,
       .handler = list_jobs,
       .summary = "The selected jobs, page by page.",
       .parameters =
           with_selector({{"by", "string", "rank, age, deadline or dispatch"},
                          {"desc", "boolean", "with by=age: the newest first"},
                          {"count", "integer", "at most this many"},
                          kCursorParameter,
                          kProgressParameter,
                          {"with", "string", "payload, result or options; may be repeated"}}),
       .answer = "Jobs"},
      std::move(add),
      {.pattern = kJob,
       .handler = get_job,
       .summary = "A job: its position, why it waits, how it ended.",
       .parameters = {{"with", "string", "payload, result, options or dependents; may be repeated"},
                      kProgressParameter,
                      {"wait_ms", "duration", "wait up to this long for its end, at most 60000"}},
       .answer = "Job"},
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
                    "Queues an ended job again.", "Nothing", "State"),
      operate_route("/api/v1/queues/{queue}/jobs:cancel", cancel_jobs,
                    "Cancels the selected jobs, or those of the given ids.", "CancelManyOrIds",
                    "CountOrOutcomes"),
      operate_route("/api/v1/queues/{queue}/jobs:retry", retry_jobs,
                    "Retries the selected ended jobs, without a state failed ones; or those of the "
                    "given ids.",
                    "ManyOrIds", "CountOrOutcomes"),
      operate_route("/api/v1/queues/{queue}/jobs:purge", purge_jobs,
                    "Removes the selected ended jobs, or those of the given ids.", "ManyOrIds",
                    "CountOrOutcomes"),
  };
}

}  // namespace sluice
