// Reads the lines of Q.STATS … BY page by page, so that a queue with many groups blocks no one
// else.
#pragma once

#include "net/resp/resp_value.h"
#include "tools/cli/connection.h"

namespace sluice::cli {

// Returns a map from name to line. For groups and keys: the 1,000 largest in descending order, and
// `*` for the sum of the others. `by` are the words after BY.
RespValue stats_lines(Connection& connection, const std::string& queue, const Words& by);

}  // namespace sluice::cli
