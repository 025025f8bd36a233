// The state of a group for HTTP: as JSON, and as answers to a load balancer. Pure functions over a
// GroupPort; any thread. A null port: the server has no group.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/ports/group_port.h"

namespace sluice {

// Null without a group.
nlohmann::json group_json(const GroupPort* group);

// Why this node must not get the requests of clients that write, or of clients that only read;
// empty if it may. `answers`: it does not refuse reads now. `max_lag_ms`: how far a standby may be
// behind.
std::string why_no_primary(const GroupPort* group);
std::string why_no_standby(const GroupPort* group, bool answers, std::optional<int64_t> max_lag_ms);

// The address of the primary's HTTP service. Null if nobody leads, or it has none without TLS.
nlohmann::json primary_url(const GroupPort* group);

}  // namespace sluice
