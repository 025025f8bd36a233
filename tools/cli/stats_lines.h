// The lines of Q.STATS … BY, page by page, so that nobody waits behind a queue of many groups.
#pragma once

#include "net/resp/resp_value.h"
#include "tools/cli/connection.h"

namespace sluice::cli {

// A map from name to line. Of groups and keys the 1,000 largest stand there, the largest first, and
// `*` for the rest together. `by` are the words behind BY.
RespValue stats_lines(Connection& connection, const std::string& queue, const Words& by);

}  // namespace sluice::cli
