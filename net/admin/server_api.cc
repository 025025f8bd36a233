// Routes about the server as a whole: health, checkpoint, journal.
#include "engine/base/numbers.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"

namespace sluice {

namespace {

using nlohmann::json;

void get_health(Exchange& exchange) { respond_json(exchange, {{"status", "ok"}}); }

void get_ready(Exchange& exchange) {
  ServerState& state = exchange.service().state();
  if (state.stopping.load(std::memory_order_relaxed)) {
    return exchange.respond(problem(503, "STOPPING", "The server is stopping."));
  }
  if (state.loading.load(std::memory_order_acquire)) {
    return exchange.respond(problem(503, "LOADING", "The data is being loaded."));
  }
  respond_json(exchange, {{"status", "ready"}});
}

void post_checkpoint(Exchange& exchange) {
  const RespValue reply = exchange.run({"BGSAVE"});
  if (reply.is_error()) {
    const bool running = reply.text.find("already") != std::string::npos;
    return exchange.respond(running ? problem(409, "RUNNING", "A checkpoint is being written.")
                                    : problem_of_error(reply.text));
  }
  respond_json(exchange, {{"status", "started"}}, 202);
}

// The fields of INFO whose names begin with `prefix`; numeric values become numbers.
json info_fields(Bytes text, Bytes prefix) {
  json fields = json::object();
  while (!text.empty()) {
    const Bytes line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(line.size() + 2, text.size()));
    const size_t colon = line.find(':');
    if (colon == Bytes::npos || !line.starts_with(prefix)) continue;
    const Bytes value = line.substr(colon + 1);
    const auto number = parse_i64(value);
    const std::string name(line.substr(prefix.size(), colon - prefix.size()));
    fields[name] = number ? json(*number) : text_to_json(value);
  }
  return fields;
}

void get_journal(Exchange& exchange) {
  const RespValue reply = exchange.run({"INFO", "persistence"});
  if (respond_error(exchange, reply)) return;
  respond_json(exchange, {{"journal", info_fields(reply.text, "sluice_journal_")},
                          {"checkpoint", info_fields(reply.text, "sluice_checkpoint_")}});
}

}  // namespace

std::vector<Route> server_routes() {
  return {
      {.pattern = "/healthz",
       .access = Access::kOpen,
       .handler = get_health,
       .summary = "The process is running.",
       .answer = "Status",
       .while_loading = true},
      {.pattern = "/readyz",
       .access = Access::kReady,
       .handler = get_ready,
       .summary = "The data is loaded and commands are served; otherwise 503.",
       .answer = "Status",
       .while_loading = true},
      {.method = HttpMethod::post,
       .pattern = "/api/v1/checkpoint",
       .access = Access::kAdmin,
       .handler = post_checkpoint,
       .summary = "Starts a checkpoint.",
       .answer = "Status",
       .status = 202,
       .problems = {409, 422}},
      {.pattern = "/api/v1/journal",
       .handler = get_journal,
       .summary = "The state of the journal and of the last checkpoint.",
       .answer = "Journal"},
  };
}

}  // namespace sluice
