// Routes about the group: for load balancers, as Patroni has them, and for people.
#include "engine/base/durations.h"
#include "net/admin/api.h"
#include "net/admin/group_state.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"

namespace sluice {

namespace {

GroupPort* group_of(Exchange& exchange) { return exchange.service().server().group(); }

void respond_role(Exchange& exchange, const char* role, const std::string& refusal) {
  if (refusal.empty()) return respond_json(exchange, {{"status", role}});
  exchange.respond(problem(503, "OTHERROLE", refusal));
}

void get_primary(Exchange& exchange) {
  respond_role(exchange, "primary", why_no_primary(group_of(exchange)));
}

void get_standby(Exchange& exchange) {
  // No QueryReader: there is no database to choose.
  const std::string* const given = exchange.request().parameter("max_lag_ms");
  std::optional<int64_t> max_lag_ms;
  if (given != nullptr) {
    max_lag_ms = parse_duration_ms(*given);
    if (max_lag_ms.value_or(-1) < 0) {
      return respond_bad_field(exchange, {"max_lag_ms", "must be a duration, such as 500 or 2s"});
    }
  }
  respond_role(exchange, "standby", why_no_standby(group_of(exchange), max_lag_ms));
}

void get_group(Exchange& exchange) {
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
       .while_loading = true},
  };
}

}  // namespace sluice
