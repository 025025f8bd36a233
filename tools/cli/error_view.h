// The failed jobs of a queue, grouped by their errors: Q.STATS … BY ERROR.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "net/resp/error_groups.h"
#include "tools/cli/connection.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// Reads page by page, so that a queue with many failed jobs blocks no one else.
ErrorGroups read_error_groups(Connection& connection, const std::string& queue);

nlohmann::json to_json(const ErrorGroup& group);
Table error_groups_table(std::span<const ErrorGroup* const> groups, int64_t now_ms);

}  // namespace sluice::cli
