// Router: which handler a method and a path lead to, by one row a route.
//
// A pattern is segments divided by '/'. `{name}` stands for one whole segment, decoded after the
// match, so that any byte may be in it; `{name}:verb` for one that ends so. The first row that fits
// counts. Rows are constant; any thread.
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
  // Answers by Exchange::respond, at once or later.
  void (*handler)(Exchange& exchange) = nullptr;
  const char* summary = "";
  std::vector<RouteParameter> parameters = {};
  // Names of the description's schemas (net/admin/openapi.cc): of the body, null: none is taken;
  // and of the answer, null: the row is no part of the API (the page's files).
  const char* body = nullptr;
  const char* answer = nullptr;
  unsigned status = 200;
  // The answer may come before the data is loaded.
  bool while_loading = false;
  const char* content_type = "application/json";
  // More for the description: 200 where there was one already instead of 201; a stream of events
  // where that is accepted; problems besides those of its kind of route.
  bool may_be_there = false;
  bool streams = false;
  std::vector<unsigned> problems = {};
};

using PathParameters = std::vector<std::pair<std::string, std::string>>;

struct RouteMatch {
  const Route* route = nullptr;
  PathParameters parameters;
  // Where no row has the method, the methods that some have: "GET, POST". Empty: no such path.
  std::string allowed;
};

// HEAD is GET.
RouteMatch match_route(std::span<const Route> routes, HttpMethod method, Bytes path);

}  // namespace sluice
