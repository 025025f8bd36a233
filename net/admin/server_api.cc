// Routes about the server as a whole: health, facts, checkpoint, journal.
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
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
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
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  const RespValue reply = exchange.run({"INFO", "persistence"});
  if (respond_error(exchange, reply)) return;
  respond_json(exchange, {{"journal", info_fields(reply.text, "sluice_journal_")},
                          {"checkpoint", info_fields(reply.text, "sluice_checkpoint_")}});
}

// What people ask of a server first, out of INFO.
class ServerFacts {
 public:
  ServerFacts(Bytes info, HttpService& http)
      : fields_(info_fields(info, "")),
        has_group_(http.server().group() != nullptr),
        http_(http.counters()),
        most_http_(http.limits().max_connections) {}

  json members() const {
    return {{"version", text("sluice_version")},
            {"now", number("server_time_usec") / 1000},
            {"uptime_s", number("uptime_in_seconds")},
            {"io_threads", number("sluice_io_threads")},
            {"commands_a_second", number("instantaneous_ops_per_sec")},
            {"connections",
             {{"open", number("connected_clients")},
              {"most", number("maxclients")},
              {"waiting", number("blocked_clients")},
              {"rejected", number("rejected_connections")},
              {"http", http()}}},
            {"memory",
             {{"used", number("used_memory")},
              {"resident", number("used_memory_rss")},
              {"peak", number("used_memory_peak")},
              {"most", number("maxmemory")},
              {"system", number("total_system_memory")}}},
            {"journal", journal()},
            {"checkpoint", checkpoint()}};
  }

 private:
  // Without a data directory there is neither.
  bool keeps_data() const { return fields_.contains("sluice_journal_mode"); }
  int64_t number(const char* name) const { return fields_.value(name, int64_t{0}); }
  std::string text(const char* name) const { return fields_.value(name, std::string()); }

  json http() const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    return {{"open", http_.connections.load(kRelaxed)},
            {"most", most_http_},
            {"requests", http_.requests.load(kRelaxed)},
            {"rejected", http_.connections_rejected.load(kRelaxed)}};
  }

  json journal() const {
    if (!keeps_data()) return nullptr;
    return {{"kind", has_group_ ? "etcd" : "local"},
            {"mode", text("sluice_journal_mode")},
            {"units", number("sluice_journal_units")},
            {"unwritten_bytes", number("sluice_journal_unwritten_bytes")},
            {"sync_us_p99", number("sluice_journal_sync_us_p99")},
            {"disk_bytes", number("sluice_data_directory_bytes")},
            {"free_disk_bytes", number("sluice_free_disk_bytes")},
            {"disk_nearly_full", number("sluice_disk_nearly_full") != 0}};
  }

  json checkpoint() const {
    if (!keeps_data()) return nullptr;
    const int64_t completed = number("sluice_checkpoints_completed");
    return {{"running", number("sluice_checkpoint_running") != 0},
            {"completed", completed},
            {"failed", number("sluice_checkpoints_failed")},
            {"bytes", number("sluice_checkpoint_bytes")},
            {"last_s", completed == 0 ? json(nullptr) : json(number("rdb_last_save_time"))}};
  }

  const json fields_;
  const bool has_group_;
  const HttpService::Counters& http_;
  const size_t most_http_;
};

void get_server(Exchange& exchange) {
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  const RespValue reply =
      exchange.run({"INFO", "server", "clients", "memory", "stats", "persistence"});
  if (respond_error(exchange, reply)) return;
  respond_json(exchange, ServerFacts(reply.text, exchange.service()).members());
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
      {.pattern = "/api/v1/server",
       .handler = get_server,
       .summary = "The server's version, uptime, connections, memory, journal and checkpoints.",
       .answer = "ServerFacts",
       .problems = {422}},
      {.pattern = "/api/v1/journal",
       .handler = get_journal,
       .summary = "The state of the journal and of the last checkpoint.",
       .answer = "Journal",
       .problems = {422}},
  };
}

}  // namespace sluice
