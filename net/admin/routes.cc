#include "net/admin/routes.h"

namespace sluice {

std::vector<Route> admin_routes() {
  std::vector<Route> all;
  for (const auto group :
       {server_routes, group_routes,       session_routes,    token_routes,   change_routes,
        queue_routes,  job_routes,         job_change_routes, failure_routes, find_routes,
        worker_routes, worker_list_routes, event_routes,      stream_routes,  history_routes,
        metric_routes, copy_routes,        alias_routes,      openapi_routes, page_routes}) {
    for (Route& route : group()) all.push_back(std::move(route));
  }
  return all;
}

}  // namespace sluice
