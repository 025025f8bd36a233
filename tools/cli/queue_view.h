// Queues as tables: a line of statistics each, for status and top.
//
// Pure functions; `stats` is a map of Q.STATS.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

using QueueStats = std::pair<std::string, RespValue>;

Table queues_table(const std::vector<QueueStats>& queues);
// Lines of Q.STATS with BY: of bands, groups, tags, workers. `what` is the first column's title.
Table lines_table(const char* what, const RespValue& lines);
// Further lines about one queue: slots, bands, totals, times.
std::vector<std::string> summary_lines(const RespValue& stats, const Screen& screen);

}  // namespace sluice::cli
