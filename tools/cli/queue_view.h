// Shows queues as tables with a line of statistics each, for status and top.
//
// Pure functions; `stats` is a map as Q.STATS returns it, with the queue's pause (put_paused).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

using QueueStats = std::pair<std::string, RespValue>;

// Adds `paused` of a map that Q.CONFIG returned to the statistics, which lack it; without it the
// queue is shown as one that is not paused.
void put_paused(const RespValue& config, RespValue& stats);
// Whether it is paused in any direction.
bool is_paused(const RespValue& stats);

// A column of queues_table.
struct QueueColumn {
  Table::Column column;
  Cell (*cell)(const QueueStats& queue);
  double (*number)(const RespValue& stats);  // to sort by; null: by the name
};
std::span<const QueueColumn> queue_columns();

// `sorted_by`: a column that is never left out.
Table queues_table(const std::vector<QueueStats>& queues,
                   std::optional<size_t> sorted_by = std::nullopt);
// A table of the lines of Q.STATS with BY: bands, groups, tags or workers. `what` is the title of
// the first column.
Table lines_table(const char* what, const RespValue& lines);
// A table of the lines of Q.STATS with BY WORKER. `what` is the title of the first column.
Table workers_table(const char* what, const RespValue& lines, int64_t now_ms);
// Further lines about one queue: slots, bands, totals, times.
std::vector<std::string> summary_lines(const RespValue& stats, const Screen& screen);

}  // namespace sluice::cli
