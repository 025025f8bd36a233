// The endpoints of the systems that queues come from, with their own shapes, on top of the queues
// that http-executions-queue, http-stats-queue and http-grading-queue name.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/queue/job_id.h"
#include "net/admin/api.h"
#include "net/admin/newest_jobs.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"

namespace sluice {

namespace {

using nlohmann::json;

// "2026-02-09T14:30:45.123Z"; null for no time.
json iso_time(const RespValue& ms) {
  if (ms.is_null()) return nullptr;
  const auto seconds = static_cast<std::time_t>(ms.integer / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof(text), "%s.%03dZ", date, static_cast<int>(ms.integer % 1000));
  return text;
}

json iso_now() {
  using std::chrono::system_clock;
  const auto now = system_clock::now().time_since_epoch();
  RespValue ms;
  ms.kind = RespValue::Kind::kInteger;
  ms.integer = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return iso_time(ms);
}

// What a payload or result says as a JSON object; empty where it is none, or nested too deeply.
json object_of(const RespValue* text) {
  if (text == nullptr || text->is_null()) return json::object();
  json parsed = parse_json(text->text);
  return parsed.is_object() ? parsed : json::object();
}

// --- Executions ---

constexpr int64_t kMaxExecutions = 200;
constexpr int64_t kUsualExecutions = 50;

const char* status_of(Bytes state) {
  if (state == "active") return "running";
  if (state == "completed") return "completed";
  if (state == "failed") return "failed";
  if (state == "cancelled") return "cancelled";
  return state == "expired" ? "timeout" : "queued";
}

// What payloads and results of the executions of one answer may come to: what they say of further
// ones is left out, as if they said nothing.

// What the job's result or payload says of `names`: the result's word counts.
json said_of(const RespValue& job, std::initializer_list<const char*> names) {
  const json payload = object_of(job.find("payload"));
  const json result = object_of(job.find("result"));
  json said = json::object();
  for (const char* name : names) {
    said[name] = result.contains(name)    ? result[name]
                 : payload.contains(name) ? payload[name]
                                          : json(nullptr);
  }
  const std::string& group = job.at("group").text;
  json& user = said["user_id"];
  if (user.is_null() && !group.empty()) user = text_to_json(group);
  return said;
}

json execution_of(const RespValue& job) {
  json execution = said_of(job, {"script", "lang", "lang_version", "stdout", "stderr", "exit_code",
                                 "error_type", "user_id"});
  execution["execution_id"] = text_to_json(job.at("id").text);
  execution["status"] = status_of(job.at("state").text);
  execution["priority"] = to_lower(job.at("pri").text);
  execution["created_at"] = iso_time(job.at("enqueued"));
  const RespValue& finished = job.at("finished");
  const RespValue& started = job.at("started");
  execution["updated_at"] = iso_time(!finished.is_null()  ? finished
                                     : !started.is_null() ? started
                                                          : job.at("enqueued"));
  return execution;
}

// States that show as this status; empty: there is no such status.
Words states_of(const std::string& status) {
  if (status == "queued") return {"pending", "delayed", "blocked"};
  for (const char* state : {"active", "completed", "failed", "cancelled", "expired"}) {
    if (status == status_of(state)) return {state};
  }
  return {};
}

// Whether what is shown as `user_id` is what a parameter says.
bool is_user(const json& shown, const std::string& user) {
  return shown == text_to_json(user) || (shown.is_number() && dump_json(shown) == user);
}

void list_executions(Exchange& exchange) {
  QueryReader query(exchange);
  Words selector;
  if (const auto status = query.text("status")) {
    const Words states = states_of(*status);
    if (states.empty()) {
      query.fail("status", *status,
                 {"queued", "running", "completed", "failed", "cancelled", "timeout"});
    }
    for (const std::string& state : states) selector.insert(selector.end(), {"STATE", state});
  }
  query.options({{"priority", "PRI"}}, selector);
  const auto user = query.text("user_id");
  const auto limit = query.integer("limit", 1, kMaxExecutions).value_or(kUsualExecutions);
  const auto skip = query.integer("skip", 0, INT32_MAX).value_or(0);
  if (query.failed()) return;
  const auto executions = std::make_shared<json>(json::array());
  const auto self = exchange.shared_from_this();
  NewestJobs newest;
  newest.queue = exchange.service().aliases().executions;
  newest.selector = std::move(selector);
  if (user) {
    newest.wanted = [user](const RespValue& job) {
      return is_user(said_of(job, {"user_id"})["user_id"], *user);
    };
  }
  newest.skip = static_cast<size_t>(skip);
  newest.limit = static_cast<size_t>(limit);
  newest.max_text_bytes = kMaxPageBytes;
  newest.take = [executions, user](const RespValue& job) {
    executions->push_back(execution_of(job));
    // Of one whose payload is not read any more.
    json& shown = executions->back()["user_id"];
    if (user && !is_user(shown, *user)) shown = text_to_json(*user);
  };
  newest.then = [self, executions, limit, skip](size_t found) {
    const auto total = static_cast<int64_t>(found);
    respond_json(*self, {{"executions", std::move(*executions)},
                         {"total", total},
                         {"limit", limit},
                         {"skip", skip},
                         {"has_more", skip + limit < total}});
  };
  list_newest_jobs(exchange, std::move(newest));
}

void put_priority(Exchange& exchange) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  const auto priority = body.text("priority");
  // Bands have numbers elsewhere; here they go by their names.
  if (!priority || parse_i64(*priority)) body.fail("priority", "must be the name of a priority");
  if (query.failed() || body.failed()) return;
  const std::string& queue = exchange.service().aliases().executions;
  const std::string& id = exchange.path("id");
  if (respond_error(exchange, exchange.run({"Q.MOVE", queue, id, "PRI", *priority}))) return;
  const RespValue job = exchange.run({"Q.GET", queue, id, "WITH", "payload", "WITH", "result"});
  if (respond_error(exchange, job)) return;
  if (job.is_null()) return exchange.respond(problem(404, "NOJOB", "There is no such execution."));
  respond_json(exchange, execution_of(job));
}

void get_executions_queue(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed()) return;
  const RespValue stats = exchange.run({"Q.STATS", exchange.service().aliases().executions});
  if (respond_error(exchange, stats)) return;
  json bands = json::object();
  const RespValue& depths = stats.at("by_priority");
  for (size_t i = 0; i + 1 < depths.items.size(); i += 2) {
    if (depths.items[i + 1].integer == 0) continue;
    bands[to_lower(depths.items[i].text)] = depths.items[i + 1].integer;
  }
  respond_json(exchange, {{"queue_depth", stats.at("pending").integer},
                          {"active_count", stats.at("active").integer},
                          {"max_concurrent", stats.at("max_active").integer},
                          {"by_priority", std::move(bands)}});
}

// --- The in-process queue ---

void get_queue_stats(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed()) return;
  const std::string& name = exchange.service().aliases().stats;
  const RespValue stats = exchange.run({"Q.STATS", name});
  if (respond_error(exchange, stats)) return;
  const RespValue tags = exchange.run({"Q.STATS", name, "BY", "TAG", "lang"});
  json languages = json::object();
  for (size_t i = 0; tags.is_map() && i + 1 < tags.items.size(); i += 2) {
    const int64_t pending = tags.items[i + 1].at("pending").integer;
    if (pending != 0) languages[name_to_json(tags.items[i].text)] = pending;
  }
  const json queue = {
      {"queued", stats.at("pending").integer},
      {"active", stats.at("active").integer},
      {"maxConcurrent", stats.at("max_active").integer},
      {"completedTasks", stats.at("completed").integer},
      {"failedTasks", stats.at("failed").integer + stats.at("expired").integer},
      {"averageTaskTime", std::llround(stats.at("run_ms").at("mean").as_number())},
      {"queuedByLanguage", std::move(languages)},
      {"queueUtilization", std::llround(stats.at("utilization").as_number() * 100)}};
  respond_json(exchange, {{"queue", queue}, {"timestamp", iso_now()}});
}

// --- The grading queue ---

// "team.7" of a collation; nothing, with the failure noted: it is none.
std::optional<std::string> collation_of(BodyReader& body) {
  auto collation = body.object("collation");
  if (!collation) return std::nullopt;
  const auto type = collation->bytes("type");
  const auto id = collation->bytes("id");
  if (!type || !id || (*type != "user" && *type != "team")) {
    body.fail("collation", "must have a type, user or team, and an id");
    return std::nullopt;
  }
  return *type + "." + *id;
}

struct GradingJob {
  std::string key;
  Words place;   // whose it is, and when it is due
  Words urgent;  // an immediate one's band
};

// The members that are looked at; all of them are the payload.
bool read_grading_job(Exchange& exchange, bool immediate, GradingJob& job) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  body.allow_others();
  const auto key = body.bytes("key");
  if (!key) body.fail("key", "must be there");
  if (key && !is_job_id(*key)) body.fail("key", kNoJobId);
  const auto group = collation_of(body);
  if (!group) body.fail("collation", "must be there");
  const int64_t delay_ms = body.integer("priority", 0, INT32_MAX).value_or(0);
  if (query.failed() || body.failed()) return false;
  job.key = *key;
  job.place = {"GROUP", *group};
  if (immediate) {
    job.urgent = {"PRI", "0"};
  } else if (delay_ms != 0) {
    job.place.insert(job.place.end(), {"BOOST", std::to_string(-delay_ms)});
  }
  return true;
}

// One that waited before it became immediate is due now, as if it had come now. `answer` says where
// it stands then. False, with the problem responded: it may not be moved.
bool make_due(Exchange& exchange, const RespValue& before, json& answer) {
  const std::string& queue = exchange.service().aliases().grading;
  const std::string& id = before.at("id").text;
  RespValue job = exchange.run({"Q.GET", queue, id});
  if (!job.is_map()) return true;
  if (job.at("pri").text != before.at("pri").text || job.at("state").text == "delayed") {
    if (respond_error(exchange, exchange.run({"Q.MOVE", queue, id, "BACK"}))) return false;
    job = exchange.run({"Q.GET", queue, id});
  }
  for (const char* name : {"state", "position", "eta_ms"}) {
    if (job.is_map()) put_value(answer, name, job.at(name));
  }
  return true;
}

// Creates the job, or gives the one that waits the new contents; its place stays, unless it becomes
// immediate.
void create_or_update(Exchange& exchange, bool immediate) {
  GradingJob job;
  if (!read_grading_job(exchange, immediate, job)) return;
  const std::string& queue = exchange.service().aliases().grading;
  Words words = {"Q.ADD", queue, job.key, exchange.request().body};
  words.insert(words.end(), job.urgent.begin(), job.urgent.end());
  Words placed = words;
  placed.insert(placed.end(), job.place.begin(), job.place.end());
  RespValue reply = exchange.run(placed);
  RespValue present;
  if (reply.is_error() && reply.text.starts_with("DUPLICATE ")) {
    // One that has ended makes way for a new one, with its place; one that has not keeps its own.
    present = exchange.run({"Q.GET", queue, job.key});
    const bool lives = present.is_map() && present.at("finished").is_null();
    Words again = lives ? words : placed;
    again.insert(again.end(), {"IFDUP", "UPDATE"});
    reply = exchange.run(again);
  }
  if (respond_error(exchange, reply)) return;
  json answer = resp_to_json(reply);
  const bool updated = present.is_map() && reply.at("result").text == "updated";
  if (immediate && updated && !make_due(exchange, present, answer)) return;
  respond_json(exchange, answer);
}

void put_grading_job(Exchange& exchange) { create_or_update(exchange, false); }

void put_immediate_job(Exchange& exchange) { create_or_update(exchange, true); }

void move_grading_job(Exchange& exchange) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  // The key alone names the job here: the reservation's nonce and collation are none of ours.
  body.allow_others();
  const auto key = body.bytes("jobKey");
  if (!key) body.fail("jobKey", "must be there");
  const auto action = body.bytes("moveAction");
  if (!action || (*action != "release" && *action != "delay")) {
    body.fail("moveAction", action.value_or(""), {"release", "delay"});
  }
  if (query.failed() || body.failed()) return;
  const std::string& queue = exchange.service().aliases().grading;
  Words words = {"Q.MOVE", queue, *key};
  if (*action == "release") {
    words.insert(words.end(), {"PRI", "0", "FRONT"});
  } else {
    words.emplace_back("BACK");
  }
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  if (!reply.is_null()) return respond_json(exchange, {{"position", reply.integer}});
  const RespValue job = exchange.run({"Q.GET", queue, *key});
  exchange.respond(job.is_null() ? problem(404, "NOJOB", "There is no such job.")
                                 : problem(409, "NOTWAITING", "The job does not wait."));
}

void delete_grading_job(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  if (query.failed()) return;
  const RespValue reply =
      exchange.run({"Q.CANCEL", exchange.service().aliases().grading, exchange.path("id")});
  if (respond_error(exchange, reply)) return;
  if (reply.text == "gone") return exchange.respond(problem(404, "NOJOB", "No such job waits."));
  respond_json(exchange, {{"result", reply.text}});
}

// Where a job stands, in words.
std::string standing_of(Exchange& exchange, const RespValue& job) {
  if (!job.at("position").is_null()) {
    return "number " + std::to_string(job.at("position").integer + 1) + " in the queue";
  }
  if (job.at("not_before").is_null()) return job.at("state").text;
  const int64_t now_ms = exchange.service().server().unix_time_us() / 1000;
  const int64_t left_ms = std::max<int64_t>(0, job.at("not_before").integer - now_ms);
  return "releases in " + std::to_string((left_ms + 999) / 1000) + " seconds";
}

// Those that wait, as they come up: by position, then what is delayed by its time, then what waits
// for others. A cursor is the number of a part, and where the part goes on.
const std::vector<Words>& waiting_parts() {
  static const std::vector<Words> parts = {
      {"BY", "RANK"}, {"WHERE", "STATE", "delayed", "BY", "AGE"}, {"WHERE", "STATE", "blocked"}};
  return parts;
}

constexpr size_t kMaxGradingJobs = 1000;

struct WaitingPage {
  size_t part = 0;
  std::string cursor = "0";  // within the part
  json jobs = json::array();
  size_t text_bytes = 0;

  bool is_full() const { return jobs.size() >= kMaxGradingJobs || text_bytes >= kMaxPageBytes; }
};

// Adds what one step of the part finds. False, with the problem responded: the cursor is none.
bool add_waiting(Exchange& exchange, WaitingPage& page) {
  Words words = {"Q.LIST", exchange.service().aliases().grading};
  const Words& part = waiting_parts()[page.part];
  words.insert(words.end(), part.begin(), part.end());
  words.insert(words.end(),
               {"CURSOR", page.cursor, "COUNT", std::to_string(kMaxGradingJobs - page.jobs.size()),
                "WITH", "payload"});
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return false;
  for (const RespValue& each : reply.items[1].items) {
    json job = object_of(each.find("payload"));
    put_bytes(job, "key", each.at("id").text);
    job["position"] = resp_to_json(each.at("position"));
    job["status"] = standing_of(exchange, each);
    page.jobs.push_back(std::move(job));
    page.text_bytes += each.at("payload").text.size();
  }
  page.cursor = reply.items[0].text;
  return true;
}

// The waiting jobs, each with what it was given and where it stands.
void get_grading_queue(Exchange& exchange) {
  QueryReader query(exchange);
  WaitingPage page;
  if (const auto cursor = query.text("cursor")) {
    const size_t part = cursor->empty() ? SIZE_MAX : static_cast<size_t>(cursor->front() - '0');
    if (part >= waiting_parts().size()) {
      query.fail("cursor", "is none of this list");
    } else {
      page.part = part;
      page.cursor = cursor->substr(1);
    }
  }
  if (query.failed()) return;
  while (page.part < waiting_parts().size() && !page.is_full()) {
    if (!add_waiting(exchange, page)) return;
    if (page.cursor != "0") break;
    ++page.part;
  }
  json next = nullptr;
  if (page.part < waiting_parts().size()) next = std::to_string(page.part) + page.cursor;
  respond_json(exchange, {{"jobs", std::move(page.jobs)}, {"cursor", std::move(next)}});
}

void get_grading_status(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed()) return;
  const RespValue job =
      exchange.run({"Q.GET", exchange.service().aliases().grading, exchange.path("id")});
  if (respond_error(exchange, job)) return;
  if (job.is_null()) return exchange.respond(problem(404, "NOJOB", "There is no such job."));
  respond_json(exchange, {{"status", standing_of(exchange, job)}});
}

}  // namespace

std::vector<Route> alias_routes() {
  constexpr const char* kGrading = "/api/v1/grading_queue";
  const auto change = [](HttpMethod method, const char* pattern, void (*handler)(Exchange&),
                         const char* summary, const char* body, const char* answer,
                         const std::vector<unsigned>& problems = {}) {
    return Route{.method = method,
                 .pattern = pattern,
                 .access = Access::kOperate,
                 .handler = handler,
                 .summary = summary,
                 .body = body,
                 .answer = answer,
                 .problems = problems};
  };
  return {
      {.pattern = "/api/v1/admin/executions/",
       .handler = list_executions,
       .summary = "Executions, newest first.",
       .parameters = {{"status", "string",
                       "queued, running, completed, failed, cancelled or timeout"},
                      {"priority", "string", "a band"},
                      {"user_id", "string", "what is shown as such, exactly"},
                      {"limit", "integer", "1 to 200, 50"},
                      {"skip", "integer", "so many are passed over"}},
       .answer = "Executions"},
      {.pattern = "/api/v1/admin/executions/queue",
       .handler = get_executions_queue,
       .summary = "Depth, active ones, cap, and what waits by priority.",
       .answer = "ExecutionsQueue"},
      change(HttpMethod::put, "/api/v1/admin/executions/{id}/priority", put_priority,
             "Gives an execution another priority.", "Priority", "Execution"),
      {.pattern = "/api/queue-stats",
       .handler = get_queue_stats,
       .summary = "The figures of the in-process queue.",
       .answer = "QueueStats"},
      {.pattern = kGrading,
       .handler = get_grading_queue,
       .summary =
           "The grading jobs that wait: in their order, then delayed ones, then blocked ones.",
       .parameters = {{"cursor", "string", "where the page before ended"}},
       .answer = "GradingQueue"},
      change(HttpMethod::put, kGrading, put_grading_job, "Creates or updates a grading job.",
             "GradingJob", "Added", {429}),
      change(HttpMethod::put, "/api/v1/grading_queue/immediate", put_immediate_job,
             "The same, to be graded at once.", "GradingJob", "Added", {429}),
      change(HttpMethod::put, "/api/v1/grading_queue/move", move_grading_job,
             "Moves a grading job to the front or the back.", "GradingMove", "Position", {404}),
      change(HttpMethod::delete_, "/api/v1/grading_queue/{id}", delete_grading_job,
             "Takes a grading job out of the queue.", nullptr, "Cancelled"),
      {.pattern = "/api/v1/grading_queue/{id}/status",
       .handler = get_grading_status,
       .summary = "Where a grading job stands, in words.",
       .answer = "GradingStatus"},
  };
}

}  // namespace sluice
