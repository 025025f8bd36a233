// The worker protocol, for programs without a Redis client.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/queue/job_id.h"
#include "net/admin/api.h"
#include "net/admin/job_answer.h"
#include "net/admin/routes.h"

namespace sluice {

namespace {

using nlohmann::json;
using OptionType = OptionRow::Type;

void respond_popped(Exchange& exchange, const RespValue& reply) {
  if (respond_error(exchange, reply)) return;
  respond_json(exchange, {{"jobs", reply.is_null() ? json::array() : resp_to_json(reply)}});
}

void pop(Exchange& exchange) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words queues = {exchange.path("queue")};
  body.options({{"more_queues", "", OptionType::kTexts}}, queues);
  Words words = {"Q.POP", std::to_string(queues.size())};
  words.insert(words.end(), queues.begin(), queues.end());
  body.options({{"worker", "WORKER"},
                {"count", "COUNT", OptionType::kInteger},
                {"lease_ms", "LEASE", OptionType::kDuration},
                {"cap", "CAP", OptionType::kInteger},
                {"id", "ID"},
                {"match", "MATCH", OptionType::kTexts},
                {"reqid", "REQID"},
                {"with", "WITH", OptionType::kTexts}},
               words);
  const int64_t wait_ms = body.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (query.failed() || body.failed()) return;
  // Even without BLOCK it may have to wait for its turn.
  if (wait_ms != 0) words.insert(words.end(), {"BLOCK", std::to_string(wait_ms)});
  exchange.run_waiting(words, [self = exchange.shared_from_this()](const RespValue& reply) {
    respond_popped(*self, reply);
  });
}

// --- Runs, by their leases ---

// How a run ends that is given back, as one of these words.
void read_mode(BodyReader& body, std::vector<std::string> modes, Words& words) {
  const auto mode = body.bytes("mode");
  if (!mode) return;
  words.push_back(*mode);
  if (std::find(modes.begin(), modes.end(), *mode) != modes.end()) return;
  body.fail("mode", *mode, std::move(modes));
}

// A command about the run of a job: Q.X queue id lease, and the options that a body has.
struct LeaseCommand {
  const char* name;
  void (*read)(BodyReader& body, Words& words);
};

constexpr LeaseCommand kAck = {"Q.ACK", [](BodyReader& body, Words& words) {
                                 body.options({{"result", "RESULT"}}, words);
                               }};

constexpr LeaseCommand kNack = {
    "Q.NACK", [](BodyReader& body, Words& words) {
      read_mode(body, {"silent", "fail", "fatal"}, words);
      body.options({{"delay_ms", "DELAY", OptionType::kDuration}, {"error", "ERROR"}}, words);
    }};

constexpr LeaseCommand kTouch = {"Q.TOUCH", [](BodyReader& body, Words& words) {
                                   body.options({{"lease_ms", "LEASE", OptionType::kDuration},
                                                 {"progress", "PROGRESS"},
                                                 {"log", "LOG"},
                                                 {"worker", "WORKER"}},
                                                words);
                                 }};

JobAnswer run_on_lease(Exchange& exchange, const LeaseCommand& command, const std::string& id,
                       BodyReader& body) {
  // Q.NACK would read it as the beginning of a selector.
  if (equals_ignore_case(id, kWhereWord)) body.fail("id", kNoJobId);
  const auto lease = body.bytes("lease");
  if (!lease) body.fail("lease", "is required");
  Words words = {command.name, exchange.path("queue"), id, lease.value_or("")};
  command.read(body, words);
  if (auto refused = body.problem()) return refused_answer(std::move(*refused));
  const RespValue reply = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  if (reply.is_map()) return {200, resp_to_json(reply)};
  return {200, {{"state", "completed"}}};
}

void of_one(Exchange& exchange, const LeaseCommand& command) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  if (query.failed()) return;
  respond_answer(exchange, run_on_lease(exchange, command, exchange.path("id"), body));
}

void ack(Exchange& exchange) { of_one(exchange, kAck); }
void nack(Exchange& exchange) { of_one(exchange, kNack); }
void touch(Exchange& exchange) { of_one(exchange, kTouch); }

JobAnswer run_on_listed(Exchange& exchange, const LeaseCommand& command, json job) {
  BodyReader body(exchange, std::move(job));
  const auto id = body.bytes("id");
  if (!id) body.fail("id", "is required");
  JobAnswer answer = run_on_lease(exchange, command, id.value_or(""), body);
  if (id) put_bytes(answer.members, "id", *id);
  return answer;
}

// The jobs that the body lists: each has an answer of its own.
void of_each(Exchange& exchange, const LeaseCommand& command) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  auto jobs = body.array("jobs");
  if (!jobs) body.fail("jobs", "is required");
  if (jobs && jobs->size() > kMostJobsNamed) body.fail("jobs", kTooManyJobs);
  if (query.failed() || body.failed()) return;
  const size_t count = jobs->size();
  answer_each(exchange, count, [&exchange, command, jobs = std::move(*jobs)](size_t i) mutable {
    return run_on_listed(exchange, command, std::move(jobs[i]));
  });
}

void ack_jobs(Exchange& exchange) { of_each(exchange, kAck); }
void touch_jobs(Exchange& exchange) { of_each(exchange, kTouch); }

// --- All runs of a worker ---

// How many runs the next call would end.
void count_runs(Exchange& exchange, const std::string& worker, const Words& cursor) {
  Words words = {"Q.LIST", exchange.path("queue"), "WHERE", "STATE", "active", "WORKER", worker};
  words.insert(words.end(), {"BRIEF", "COUNT", "1000"});
  words.insert(words.end(), cursor.begin(), cursor.end());
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  respond_count(exchange, static_cast<int64_t>(reply.items[1].items.size()), reply.items[0].text,
                true);
}

void nack_worker(Exchange& exchange) {
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words cursor;
  Words how;
  body.options({{"cursor", "CURSOR"}}, cursor);
  read_mode(body, {"lost", "silent", "fail"}, how);
  body.options({{"error", "ERROR"}}, how);
  const bool dry_run = body.boolean("dry_run").value_or(false);
  auto where = body.object("where");
  if (!where) body.fail("where", "is required");
  std::optional<std::string> worker;
  if (where) {
    worker = where->bytes("worker");
    // A mistyped criterion is reported as such.
    if (!worker && where->knows_all()) where->fail("where", "requires worker, and nothing else");
    if (worker && worker->empty()) where->fail("worker", "must have 1 to 512 bytes");
  }
  if (query.failed() || body.failed() || where->failed()) return;
  if (dry_run) return count_runs(exchange, *worker, cursor);
  Words words = {"Q.NACK", exchange.path("queue"), "WHERE", "WORKER", *worker};
  words.insert(words.end(), cursor.begin(), cursor.end());
  words.insert(words.end(), how.begin(), how.end());
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  respond_count(exchange, reply.items[1].integer, reply.items[0].text, false);
}

void nack_jobs(Exchange& exchange) {
  const json members = body_of(exchange);
  const bool lists = members.is_object() && members.contains("jobs");
  lists ? of_each(exchange, kNack) : nack_worker(exchange);
}

}  // namespace

std::vector<Route> worker_routes() {
  constexpr const char* kOutcomes = "RunOutcomes";
  return {
      operate_route("/api/v1/queues/{queue}:pop", pop,
                    "Pops the next jobs, each with a lease; waits for jobs with wait_ms.", "Pop",
                    "Popped"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:ack", ack, "Completes a job.", "Ack",
                    "State"),
      operate_route("/api/v1/queues/{queue}/jobs:ack", ack_jobs, "Completes jobs.", "AckJobs",
                    kOutcomes),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:nack", nack,
                    "Returns a job: as failed, or as if never popped.", "Nack", "Nacked"),
      operate_route("/api/v1/queues/{queue}/jobs:nack", nack_jobs,
                    "Returns jobs; or ends all runs of a worker: as if their leases had expired, "
                    "or as asked.",
                    "NackManyOrJobs", "CountOrRunOutcomes"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:touch", touch,
                    "Extends a lease, and returns whether the job should stop.", "Touch",
                    "Touched"),
      operate_route("/api/v1/queues/{queue}/jobs:touch", touch_jobs,
                    "Extends leases: the heartbeat of a worker.", "TouchJobs", kOutcomes),
  };
}

}  // namespace sluice
