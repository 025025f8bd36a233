// The description of the API in OpenAPI 3.1: paths from the table of routes, schemas from here.
// tests/http/openapi_test.py checks responses against it.
#include <set>

#include "net/admin/api.h"
#include "net/admin/openapi_schemas.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/process/version.h"

namespace sluice {

namespace {

using nlohmann::json;

json reference(const char* schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

json content(const char* type, const char* schema) {
  return {{type, {{"schema", reference(schema)}}}};
}

const char* role_of(Access access) {
  switch (access) {
    case Access::kOpen:
      return "none";
    case Access::kReady:
      return "any";
    case Access::kRead:
      return "read";
    case Access::kOperate:
      return "operate";
    case Access::kAdmin:
    case Access::kReplicate:
      return "admin";
  }
  return "";
}

// Whether its commands run in a database selected by the query.
bool is_of_database(Bytes pattern) {
  for (const Bytes begin : {"/api/v1/queues", "/api/v1/history", "/api/v1/find", "/api/v1/admin/",
                            "/api/v1/workers", "/api/v1/grading_queue", "/api/queue-stats"}) {
    if (pattern.starts_with(begin)) return true;
  }
  return false;
}

// A duration is milliseconds, or a text with units.
json type_of(const RouteParameter& parameter) {
  if (Bytes(parameter.type) == "duration") return {{"type", json::array({"integer", "string"})}};
  return {{"type", parameter.type}};
}

json parameters_of(const Route& route) {
  json parameters = json::array();
  const Bytes pattern = route.pattern;
  for (size_t at = pattern.find('{'); at != Bytes::npos; at = pattern.find('{', at + 1)) {
    parameters.push_back(
        {{"name", std::string(pattern.substr(at + 1, pattern.find('}', at) - at - 1))},
         {"in", "path"},
         {"required", true},
         {"schema", {{"type", "string"}}}});
  }
  std::vector<RouteParameter> query = route.parameters;
  if (is_of_database(pattern)) query.push_back({"db", "integer", "the database, 0 to 15"});
  for (const RouteParameter& parameter : query) {
    parameters.push_back({{"name", parameter.name},
                          {"in", "query"},
                          {"description", parameter.summary},
                          {"schema", type_of(parameter)}});
  }
  if (route.streams) {
    parameters.push_back({{"name", "Last-Event-ID"},
                          {"in", "header"},
                          {"description", "for a stream: the event after which it starts"},
                          {"schema", {{"type", "string"}}}});
  }
  return parameters;
}

// The statuses of problems that a route may respond with, except those of HTTP itself.
std::set<unsigned> problems_of(const Route& route) {
  std::set<unsigned> statuses(route.problems.begin(), route.problems.end());
  statuses.insert({401, 403, 503});
  if (route.body != nullptr) statuses.insert({400, 413, 415});
  const Bytes pattern = route.pattern;
  if (pattern.find("{id}") != Bytes::npos) statuses.insert(404);
  const bool of_database = is_of_database(pattern);
  if (of_database || pattern.starts_with("/api/v1/tokens")) statuses.insert(422);
  // The key may hold a value that is not a queue.
  const bool of_many = pattern == "/api/v1/queues" || pattern == "/api/v1/history";
  if (of_database && !of_many) statuses.insert(409);
  return statuses;
}

json responses_of(const Route& route) {
  const json shown = content(route.content_type, route.answer);
  json responses = {{std::to_string(route.status), {{"description", "Done."}, {"content", shown}}}};
  if (route.streams && !shown.contains("text/event-stream")) {
    responses["200"]["content"]["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  }
  if (route.may_be_there) {
    responses["200"] = {{"description", "It existed already."}, {"content", shown}};
  }
  const json told = content("application/problem+json", "Problem");
  for (const unsigned status : problems_of(route)) {
    responses[std::to_string(status)] = {{"description", std::string(reason_phrase(status))},
                                         {"content", told}};
  }
  responses["default"] = {{"description", "Another error."}, {"content", told}};
  return responses;
}

json operation_of(const Route& route) {
  json operation = {{"summary", route.summary},
                    {"x-role", role_of(route.access)},
                    {"parameters", parameters_of(route)},
                    {"responses", responses_of(route)}};
  if (route.access == Access::kOpen) operation["security"] = json::array();
  if (route.body != nullptr) {
    operation["requestBody"] = {{"content", content("application/json", route.body)}};
  }
  return operation;
}

// HEAD, derived from the description of GET.
json head_of(json operation) {
  for (auto& [status, response] : operation["responses"].items()) response.erase("content");
  return operation;
}

void get_description(Exchange& exchange) {
  json paths = json::object();
  for (const Route& route : exchange.service().routes()) {
    if (route.answer == nullptr) continue;  // the page is not part of the API
    json& path = paths[route.pattern];
    json& operation = path[to_lower(method_name(route.method))] = operation_of(route);
    if (route.method == HttpMethod::get) path["head"] = head_of(operation);
  }
  json components = {{"schemas", json::parse(kOpenApiSchemas)},
                     {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}};
  respond_json(exchange, {{"openapi", "3.1.0"},
                          {"info", {{"title", "Sluice"}, {"version", kSluiceVersion}}},
                          {"security", json::array({{{"token", json::array()}}})},
                          {"paths", std::move(paths)},
                          {"components", std::move(components)}});
}

}  // namespace

std::vector<Route> openapi_routes() {
  return {{.pattern = "/api/v1/openapi.json",
           .handler = get_description,
           .summary = "This description.",
           .answer = "Description"}};
}

}  // namespace sluice
