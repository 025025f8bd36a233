// The worker protocol, for programs without a Redis client.
#include <algorithm>
#include <optional>
#include <utility>

#include "net/admin/api.h"
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
  Words words = {"Q.POP", "1", exchange.path("queue")};
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

// "Q.X queue id lease", from the path and the body. REQUIRES: !respond_where().
Words lease_words(Exchange& exchange, const char* command, BodyReader& body) {
  const auto lease = body.bytes("lease");
  if (!lease) body.fail("lease", "is required");
  return {command, exchange.path("queue"), exchange.path("id"), lease.value_or("")};
}

void ack(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words = lease_words(exchange, "Q.ACK", body);
  body.options({{"result", "RESULT"}}, words);
  if (query.failed() || body.failed()) return;
  const RespValue reply = exchange.run(words);
  if (!respond_error(exchange, reply)) respond_json(exchange, {{"state", "completed"}});
}

// How a run ends that is given back, as one of these words.
void read_mode(BodyReader& body, std::vector<std::string> modes, Words& words) {
  const auto mode = body.bytes("mode");
  if (!mode) return;
  words.push_back(*mode);
  if (std::find(modes.begin(), modes.end(), *mode) != modes.end()) return;
  body.fail("mode", *mode, std::move(modes));
}

void nack(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words = lease_words(exchange, "Q.NACK", body);
  read_mode(body, {"silent", "fail", "fatal"}, words);
  body.options({{"delay_ms", "DELAY", OptionType::kDuration}, {"error", "ERROR"}}, words);
  if (query.failed() || body.failed()) return;
  const RespValue reply = exchange.run(words);
  if (!respond_error(exchange, reply)) respond_json(exchange, resp_to_json(reply));
}

void touch(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words = lease_words(exchange, "Q.TOUCH", body);
  body.options(
      {{"lease_ms", "LEASE", OptionType::kDuration}, {"progress", "PROGRESS"}, {"log", "LOG"}},
      words);
  if (query.failed() || body.failed()) return;
  const RespValue reply = exchange.run(words);
  if (!respond_error(exchange, reply)) respond_json(exchange, resp_to_json(reply));
}

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

void nack_jobs(Exchange& exchange) {
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

}  // namespace

std::vector<Route> worker_routes() {
  return {
      operate_route("/api/v1/queues/{queue}:pop", pop,
                    "Pops the next jobs, each with a lease; waits for jobs with wait_ms.", "Pop",
                    "Popped"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:ack", ack, "Completes a job.", "Ack",
                    "State"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:nack", nack,
                    "Returns a job: as failed, or as if never popped.", "Nack", "Nacked"),
      operate_route("/api/v1/queues/{queue}/jobs:nack", nack_jobs,
                    "Ends all runs of a worker: as if their leases had expired, or as asked.",
                    "NackMany", "Count"),
      operate_route("/api/v1/queues/{queue}/jobs/{id}:touch", touch,
                    "Extends a lease, and returns whether the job should stop.", "Touch",
                    "Touched"),
  };
}

}  // namespace sluice
