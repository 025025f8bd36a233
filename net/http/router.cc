#include "net/http/router.h"

#include <algorithm>

namespace sluice {

namespace {

Bytes take_segment(Bytes& path) {
  path.remove_prefix(1);  // the slash
  const Bytes segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool match_segment(Bytes pattern, Bytes segment, PathParameters& parameters) {
  if (!pattern.starts_with('{')) return pattern == segment;
  const size_t end = pattern.find('}');
  const Bytes suffix = pattern.substr(end + 1);
  if (segment.size() <= suffix.size() || !segment.ends_with(suffix)) return false;
  segment.remove_suffix(suffix.size());
  const auto decoded = percent_decode(segment);
  if (!decoded) return false;
  parameters.emplace_back(std::string(pattern.substr(1, end - 1)), *decoded);
  return true;
}

bool match_path(Bytes pattern, Bytes path, PathParameters& parameters) {
  parameters.clear();
  while (!pattern.empty() && !path.empty()) {
    if (!match_segment(take_segment(pattern), take_segment(path), parameters)) return false;
  }
  return pattern.empty() && path.empty();
}

}  // namespace

RouteMatch match_route(std::span<const Route> routes, HttpMethod method, Bytes path) {
  RouteMatch match;
  if (method == HttpMethod::head) method = HttpMethod::get;
  std::vector<Bytes> allowed;
  for (const Route& route : routes) {
    PathParameters parameters;
    if (!match_path(route.pattern, path, parameters)) continue;
    if (route.method == method) {
      match.route = &route;
      match.parameters = std::move(parameters);
      match.allowed.clear();
      return match;
    }
    const Bytes name = method_name(route.method);
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    allowed.push_back(name);
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += route.method == HttpMethod::get ? "GET, HEAD" : std::string(name);
  }
  return match;
}

}  // namespace sluice
