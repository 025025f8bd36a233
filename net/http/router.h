// Router: selects the handler for a method and a path from a table of routes.
//
// A pattern consists of segments divided by '/'. `{name}` matches one whole segment, which is
// decoded after the match, so that it may contain any byte; `{name}:verb` matches one with this
// ending. The first matching row is used. Rows are constant; any thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/http/message.h"
#include "net/http/tokens.h"

namespace sluice {

class Exchange;

// A query parameter, for the description of the API.
struct RouteParameter {
  const char* name = "";
  const char* type = "string";
  const char* summary = "";
};

struct Route {
  HttpMethod method = HttpMethod::get;
  const char* pattern = "";
  Access access = Access::kRead;
  // Calls Exchange::respond, at once or later.
  void (*handler)(Exchange& exchange) = nullptr;
  const char* summary = "";
  std::vector<RouteParameter> parameters = {};
  // Names of schemas (net/admin/openapi.cc): of the body, null if none is accepted; and of the
  // response, null if the row is not part of the API (the page's files).
  const char* body = nullptr;
  const char* answer = nullptr;
  unsigned status = 200;
  // May be answered before the data is loaded.
  bool while_loading = false;
  const char* content_type = "application/json";
  // More for the description: 200 instead of 201 if the thing existed already; a stream of events
  // if the client accepts that; problems besides those usual for the route.
  bool may_be_there = false;
  bool streams = false;
  std::vector<unsigned> problems = {};
};

using PathParameters = std::vector<std::pair<std::string, std::string>>;

struct RouteMatch {
  const Route* route = nullptr;
  PathParameters parameters;
  // If no row has the method: the methods of rows with this path, "GET, POST". Empty: no such path.
  std::string allowed;
};

// HEAD is handled as GET.
RouteMatch match_route(std::span<const Route> routes, HttpMethod method, Bytes path);

}  // namespace sluice
