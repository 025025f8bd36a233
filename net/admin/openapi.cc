// The description of the API, OpenAPI 3.1: paths out of the rows of routes, schemas as they are
// here. tests/http/openapi_test.py holds answers against it.
#include "net/admin/api.h"
#include "net/admin/openapi_schemas.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/version.h"

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
      return "admin";
  }
  return "";
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
  if (pattern.starts_with("/api/v1/queues")) {
    query.push_back({"db", "integer", "the database, 0 to 15"});
  }
  for (const RouteParameter& parameter : query) {
    parameters.push_back({{"name", parameter.name},
                          {"in", "query"},
                          {"description", parameter.summary},
                          {"schema", {{"type", parameter.type}}}});
  }
  return parameters;
}

json operation_of(const Route& route) {
  json operation = {{"summary", route.summary},
                    {"x-role", role_of(route.access)},
                    {"parameters", parameters_of(route)}};
  if (route.access == Access::kOpen) operation["security"] = json::array();
  if (route.body != nullptr) {
    operation["requestBody"] = {{"content", content("application/json", route.body)}};
  }
  json& responses = operation["responses"];
  responses[std::to_string(route.status)] = {
      {"description", "Done."}, {"content", content(route.content_type, route.answer)}};
  if (route.status == 201) {
    responses["200"] = {{"description", "There was one already."},
                        {"content", content(route.content_type, route.answer)}};
  }
  responses["default"] = {{"description", "An error."},
                          {"content", content("application/problem+json", "Problem")}};
  return operation;
}

void get_description(Exchange& exchange) {
  json paths = json::object();
  for (const Route& route : exchange.service().routes()) {
    if (route.answer == nullptr) continue;  // the page is no part of the API
    paths[route.pattern][to_lower(method_name(route.method))] = operation_of(route);
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
