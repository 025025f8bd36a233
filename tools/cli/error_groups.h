// The failed jobs of a queue, grouped by their errors: Q.STATS … BY ERROR.
#pragma once

#include "net/resp/resp_value.h"
#include "tools/cli/connection.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// A map from pattern to line, the largest group first. Reads page by page, so that a queue with
// many failed jobs blocks no one else.
RespValue error_groups(Connection& connection, const std::string& queue);
// Adds the lines of a page to those of earlier, newer pages.
void add_error_groups(const RespValue& page, RespValue& groups);

Table error_groups_table(const RespValue& groups, int64_t now_ms);

}  // namespace sluice::cli
