// Routes about the group: for load balancers, as Patroni has them, and for people.
#include "net/admin/api.h"
#include "net/admin/group_state.h"
#include "net/admin/routes.h"
#include "net/group/serving_gate.h"
#include "net/http/http_service.h"
#include "net/process/clocks.h"

namespace sluice {

namespace {

constexpr int64_t kMaxLagMs = 86'400'000;

GroupPort* group_of(Exchange& exchange) { return exchange.service().server().group(); }

void respond_role(Exchange& exchange, const char* role, const std::string& refusal) {
  if (refusal.empty()) return respond_json(exchange, {{"status", role}});
  exchange.respond(problem(503, "OTHERROLE", refusal));
}

void get_primary(Exchange& exchange) {
  respond_role(exchange, "primary", why_no_primary(group_of(exchange)));
}

void get_standby(Exchange& exchange) {
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  const auto max_lag_ms = query.duration("max_lag_ms", 0, kMaxLagMs);
  if (query.failed()) return;
  const ServingGate* const gate = exchange.service().state().gate;
  const bool answers = gate == nullptr || gate->is_open(Clocks::boot_ms());
  respond_role(exchange, "standby", why_no_standby(group_of(exchange), answers, max_lag_ms));
}

void get_group(Exchange& exchange) {
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  respond_json(exchange, {{"group", group_json(group_of(exchange))}});
}

}  // namespace

std::vector<Route> group_routes() {
  return {
      {.pattern = "/primary",
       .access = Access::kOpen,
       .handler = get_primary,
       .summary = "This node is the primary of its group, or has no group; otherwise 503.",
       .answer = "Status"},
      {.pattern = "/standby",
       .access = Access::kOpen,
       .handler = get_standby,
       .summary = "This node is a standby that answers reads; otherwise 503.",
       .parameters = {{"max_lag_ms", "integer", "503 also if it is further behind"}},
       .answer = "Status",
       .problems = {422}},
      {.pattern = "/api/v1/group",
       .handler = get_group,
       .summary = "The group as this node sees it.",
       .answer = "GroupAnswer",
       .while_loading = true,
       .problems = {422}},
  };
}

}  // namespace sluice
