// Shows queues as tables with a line of statistics each, for status and top.
//
// Pure functions; `stats` is a map as Q.STATS returns it.
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
// A table of the lines of Q.STATS with BY: bands, groups, tags or workers. `what` is the title of
// the first column.
Table lines_table(const char* what, const RespValue& lines);
// Further lines about one queue: slots, bands, totals, times.
std::vector<std::string> summary_lines(const RespValue& stats, const Screen& screen);

}  // namespace sluice::cli
