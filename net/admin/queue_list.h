// A page of the queues of a database by name, as the member `queues` of a response, with `cursor`.
//
// A long one is made in several turns of the exchange's I/O thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/admin/api.h"

namespace sluice {

struct QueueListRequest {
  size_t limit = 0;
  // The name after which the page begins (read_queue_cursor); nothing: the first one.
  std::optional<std::string> after;
  // The element of a queue. Nothing: it is gone, or the requester may not read it.
  std::function<std::optional<nlohmann::json>(const std::string& name)> line;
  // Other members of the response.
  nlohmann::json members = nlohmann::json::object();
};

// The parameter `cursor`.
std::optional<std::string> read_queue_cursor(QueryReader& query);
void list_queues(Exchange& exchange, QueueListRequest request);

}  // namespace sluice
