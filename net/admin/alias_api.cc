// The endpoints of older systems, with their own formats, on top of the queues named by
// http-executions-queue, http-stats-queue and http-grading-queue.
#include <algorithm>
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
#include "net/process/wall_clock.h"

namespace sluice {

namespace {

using nlohmann::json;

// "2026-02-09T14:30:45.123Z"; null if there is no time.
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
  RespValue ms;
  ms.kind = RespValue::Kind::kInteger;
  ms.integer = wall_ms();
  return iso_time(ms);
}

// The payload or result as a JSON object; empty if it is not one, or is nested too deeply.
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

// The members `names` of the job's result, or of its payload where the result has none.
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

// The same for its user_id alone, of all jobs of a queue.
json user_of(const RespValue& job) {
  std::optional<json> user;
  for (const char* name : {"result", "payload"}) {
    const RespValue* text = job.find(name);
    if (!user && text != nullptr) user = parse_member(text->text, "user_id");
  }
  const std::string& group = job.at("group").text;
  if (user.value_or(nullptr).is_null() && !group.empty()) return text_to_json(group);
  return user.value_or(nullptr);
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

// The states shown as this status; empty for an unknown status.
Words states_of(const std::string& status) {
  if (status == "queued") return {"pending", "delayed", "blocked"};
  for (const char* state : {"active", "completed", "failed", "cancelled", "expired"}) {
    if (status == status_of(state)) return {state};
  }
  return {};
}

// Whether the `user_id` that is shown equals the parameter.
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
    newest.wanted = [user](const RespValue& job) { return is_user(user_of(job), *user); };
  }
  newest.skip = static_cast<size_t>(skip);
  newest.limit = static_cast<size_t>(limit);
  newest.max_text_bytes = kMaxPageBytes;
  newest.take = [executions, user](const RespValue& job) {
    executions->push_back(execution_of(job));
    // For an execution whose payload is no longer read.
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
  const std::string& queue = exchange.service().aliases().executions;
  const std::string& id = exchange.path("id");
  Words words = {"Q.MOVE", queue, id};
  body.options({{"priority", "PRI"}}, words);
  // Elsewhere bands may be numbers; here only names are accepted.
  if (words.size() == 3 || parse_i64(words.back())) {
    body.fail("priority", "must be the name of a priority");
  }
  if (query.failed() || body.failed()) return;
  if (respond_error(exchange, exchange.run(words))) return;
  const RespValue job = exchange.run({"Q.GET", queue, id, "WITH", "payload", "WITH", "result"});
  if (respond_error(exchange, job)) return;
  if (job.is_null()) return exchange.respond(problem(404, "NOJOB", "No such execution."));
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

// For example "team.7". Nothing, with the failure noted, if it is invalid.
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
  Words place;   // its group, and when it is due
  Words urgent;  // the band of an immediate job
};

// Reads the members that are used; the whole body is the payload.
bool read_grading_job(Exchange& exchange, bool immediate, GradingJob& job) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  body.allow_others();
  const auto key = body.bytes("key");
  if (!key) body.fail("key", "is required");
  if (key && !is_job_id(*key)) body.fail("key", kNoJobId);
  const auto group = collation_of(body);
  if (!group) body.fail("collation", "is required");
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

// A waiting job that becomes immediate is due now, as if it had just been added. Puts its position
// into `answer`. If it cannot be moved, responds with the problem and returns false.
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

// Creates the job, or updates the contents of the waiting one, which keeps its place unless it
// becomes immediate.
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
    // An ended job is replaced by a new one, with a new place; a waiting one keeps its place.
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
  // The key alone identifies the job here; the reservation's nonce and collation are not used.
  body.allow_others();
  const auto key = body.bytes("jobKey");
  if (!key) body.fail("jobKey", "is required");
  exchange.name_option("id", "jobKey");
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
  exchange.respond(job.is_null() ? problem(404, "NOJOB", "No such job.")
                                 : problem(409, "NOTWAITING", "The job is not waiting."));
}

void delete_grading_job(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  if (query.failed()) return;
  const RespValue reply =
      exchange.run({"Q.CANCEL", exchange.service().aliases().grading, exchange.path("id")});
  if (respond_error(exchange, reply)) return;
  if (reply.text == "gone") return exchange.respond(problem(404, "NOJOB", "No such waiting job."));
  respond_json(exchange, {{"result", reply.text}});
}

// Describes the job's position.
std::string standing_of(Exchange& exchange, const RespValue& job) {
  if (!job.at("position").is_null()) {
    return "number " + std::to_string(job.at("position").integer + 1) + " in the queue";
  }
  if (job.at("not_before").is_null()) return job.at("state").text;
  const int64_t now_ms = exchange.service().server().unix_time_us() / 1000;
  const int64_t left_ms = std::max<int64_t>(0, job.at("not_before").integer - now_ms);
  return "releases in " + std::to_string((left_ms + 999) / 1000) + " seconds";
}

// The waiting jobs in their order: by position, then delayed ones by time, then blocked ones. A
// cursor is the number of a part and the cursor within it.
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

// Adds the results of one step. If the cursor is invalid, responds with the problem and returns
// false.
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

// The waiting jobs, each with its payload and position.
void get_grading_queue(Exchange& exchange) {
  QueryReader query(exchange);
  WaitingPage page;
  if (const auto cursor = query.text("cursor")) {
    const size_t part = cursor->empty() ? SIZE_MAX : static_cast<size_t>(cursor->front() - '0');
    if (part >= waiting_parts().size()) {
      query.fail("cursor", "is invalid");
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
  if (job.is_null()) return exchange.respond(problem(404, "NOJOB", "No such job."));
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
                      {"user_id", "string", "exact match of the user_id shown"},
                      {"limit", "integer", "1 to 200, 50"},
                      {"skip", "integer", "number of executions to skip"}},
       .answer = "Executions"},
      {.pattern = "/api/v1/admin/executions/queue",
       .handler = get_executions_queue,
       .summary = "Depth, active executions, cap, and waiting executions by priority.",
       .answer = "ExecutionsQueue"},
      change(HttpMethod::put, "/api/v1/admin/executions/{id}/priority", put_priority,
             "Changes the priority of an execution.", "Priority", "Execution"),
      {.pattern = "/api/queue-stats",
       .handler = get_queue_stats,
       .summary = "Statistics in the format of the in-process queue.",
       .answer = "QueueStats"},
      {.pattern = kGrading,
       .handler = get_grading_queue,
       .summary =
           "The waiting grading jobs: pending ones in order, then delayed ones, then blocked ones.",
       .parameters = {kCursorParameter},
       .answer = "GradingQueue"},
      change(HttpMethod::put, kGrading, put_grading_job, "Creates or updates a grading job.",
             "GradingJob", "Added", {429}),
      change(HttpMethod::put, "/api/v1/grading_queue/immediate", put_immediate_job,
             "Creates or updates a grading job that is due immediately.", "GradingJob", "Added",
             {429}),
      change(HttpMethod::put, "/api/v1/grading_queue/move", move_grading_job,
             "Moves a grading job to the front or the back.", "GradingMove", "Position", {404}),
      change(HttpMethod::delete_, "/api/v1/grading_queue/{id}", delete_grading_job,
             "Removes a grading job from the queue.", nullptr, "Cancelled"),
      {.pattern = "/api/v1/grading_queue/{id}/status",
       .handler = get_grading_status,
       .summary = "The position of a grading job, as text.",
       .answer = "GradingStatus"},
  };
}

}  // namespace sluice
