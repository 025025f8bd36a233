// The worker protocol, for programs without a Redis client.
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

void nack(Exchange& exchange) {
  if (respond_where(exchange)) return;
  QueryReader query(exchange);
  BodyReader body(exchange);
  Words words = lease_words(exchange, "Q.NACK", body);
  if (const auto mode = body.bytes("mode")) {
    if (*mode != "silent" && *mode != "fail" && *mode != "fatal") {
      body.fail("mode", *mode, {"silent", "fail", "fatal"});
    }
    words.push_back(*mode);
  }
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
      operate_route("/api/v1/queues/{queue}/jobs/{id}:touch", touch,
                    "Extends a lease, and returns whether the job should stop.", "Touch",
                    "Touched"),
  };
}

}  // namespace sluice
