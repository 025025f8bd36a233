#include "tools/cli/error_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/limits.h"
#include "net/http/json_text.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using nlohmann::json;

std::string ago_text(int64_t then_ms, int64_t now_ms) {
  return duration_text(std::max<int64_t>(0, now_ms - then_ms)) + " ago";
}

json to_json(const ErrorGroup& group) {
  json line = {{"count", group.count}, {"first", group.first_ms}, {"last", group.last_ms}};
  put_bytes(line, "id", group.id);
  put_bytes(line, "error", group.error);
  return line;
}

}  // namespace

ErrorGroups read_error_groups(Connection& connection, const std::string& queue) {
  ErrorGroups groups;
  std::string cursor = "0";
  do {
    RespValue page = connection.call({"Q.STATS", queue, "BY", "ERROR", "CURSOR", cursor, "COUNT",
                                      std::to_string(kMaxPageCount)});
    cursor = page.items.at(0).text;
    groups.add(as_map_of_maps(std::move(page.items.at(1))));
  } while (cursor != "0");
  return groups;
}

std::vector<ErrorLine> largest_errors(std::span<const QueueErrors> queues, size_t most) {
  std::vector<ErrorLine> lines;
  for (const QueueErrors& errors : queues) {
    for (const ErrorGroup& group : errors.groups) lines.push_back({&errors.queue, &group});
  }
  // Those of one queue are in their order.
  std::stable_sort(lines.begin(), lines.end(), [](const ErrorLine& a, const ErrorLine& b) {
    return a.group->count != b.group->count ? a.group->count > b.group->count
                                            : a.group->last_ms > b.group->last_ms;
  });
  lines.resize(std::min(lines.size(), most));
  return lines;
}

json errors_by_pattern(std::span<const ErrorLine> lines) {
  json all = json::object();
  for (const ErrorLine& line : lines) {
    all[name_to_json(line.group->pattern)] = to_json(*line.group);
  }
  return all;
}

json errors_of_queues(std::span<const ErrorLine> lines) {
  json all = json::array();
  for (const ErrorLine& line : lines) {
    json object = to_json(*line.group);
    put_bytes(object, "queue", *line.queue);
    put_bytes(object, "pattern", line.group->pattern);
    all.push_back(std::move(object));
  }
  return all;
}

Table errors_table(std::span<const ErrorLine> lines, bool with_queue, int64_t now_ms) {
  std::vector<Table::Column> columns = {{"JOBS", true},
                                        {"LAST", true},
                                        {"FIRST", true},
                                        {"NEWEST ID", false, true},
                                        {"ERROR", false, true}};
  if (with_queue) columns.insert(columns.begin(), {"QUEUE", false, true});
  Table table(std::move(columns));
  for (const ErrorLine& line : lines) {
    const ErrorGroup& group = *line.group;
    const std::string pattern = printable(group.pattern);
    std::vector<Cell> row = {count_text(group.count),
                             ago_text(group.last_ms, now_ms),
                             ago_text(group.first_ms, now_ms),
                             printable(group.id),
                             {pattern.empty() ? "(none)" : pattern, Style::kBad}};
    if (with_queue) row.insert(row.begin(), printable(*line.queue));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace sluice::cli
