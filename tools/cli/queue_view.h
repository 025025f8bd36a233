// Shows queues as tables with a line of statistics each, for status and top.
//
// Pure functions; `stats` is a map as Q.STATS returns it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

using QueueStats = std::pair<std::string, RespValue>;

// A column of queues_table.
struct QueueColumn {
  Table::Column column;
  Cell (*cell)(const QueueStats& queue);
  double (*number)(const RespValue& stats);  // to sort by; null: by the name
};
std::span<const QueueColumn> queue_columns();

Table queues_table(const std::vector<QueueStats>& queues);
// A table of the lines of Q.STATS with BY: bands, groups, tags or workers. `what` is the title of
// the first column.
Table lines_table(const char* what, const RespValue& lines);
// A table of the lines of Q.STATS with BY WORKER. `what` is the title of the first column.
Table workers_table(const char* what, const RespValue& lines, int64_t now_ms);
// Further lines about one queue: slots, bands, totals, times.
std::vector<std::string> summary_lines(const RespValue& stats, const Screen& screen);

}  // namespace sluice::cli
