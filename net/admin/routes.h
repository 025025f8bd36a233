// The routes of the HTTP side, one row each. Their handlers run the same commands as RESP clients,
// with the rights of the requester, and convert the replies to JSON.
//
// Pure functions over an Exchange; threads like Exchange.
#pragma once

#include <vector>

#include "net/http/router.h"

namespace sluice {

// All rows, file by file.
std::vector<Route> admin_routes();

// The rows of each file.
std::vector<Route> server_routes();       // net/admin/server_api.cc
std::vector<Route> group_routes();        // net/admin/group_api.cc
std::vector<Route> session_routes();      // net/admin/session_api.cc
std::vector<Route> token_routes();        // net/admin/token_api.cc
std::vector<Route> change_routes();       // net/admin/change_api.cc
std::vector<Route> queue_routes();        // net/admin/queue_api.cc
std::vector<Route> job_routes();          // net/admin/job_api.cc
std::vector<Route> job_change_routes();   // net/admin/job_change_api.cc
std::vector<Route> failure_routes();      // net/admin/failure_api.cc
std::vector<Route> find_routes();         // net/admin/find_api.cc
std::vector<Route> worker_routes();       // net/admin/worker_api.cc
std::vector<Route> worker_list_routes();  // net/admin/worker_list.cc
std::vector<Route> event_routes();        // net/admin/event_api.cc
std::vector<Route> stream_routes();       // net/admin/job_stream_api.cc
std::vector<Route> history_routes();      // net/admin/history_api.cc
std::vector<Route> copy_routes();         // net/admin/copy_api.cc
std::vector<Route> alias_routes();        // net/admin/alias_api.cc
std::vector<Route> openapi_routes();      // net/admin/openapi.cc
std::vector<Route> metric_routes();       // net/admin/metrics_api.cc
std::vector<Route> page_routes();         // net/admin/page.cc

}  // namespace sluice
