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

std::string ago_text(int64_t then_ms, int64_t now_ms) {
  return duration_text(std::max<int64_t>(0, now_ms - then_ms)) + " ago";
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

nlohmann::json to_json(const ErrorGroup& group) {
  nlohmann::json line = {
      {"count", group.count}, {"first", group.first_ms}, {"last", group.last_ms}};
  put_bytes(line, "id", group.id);
  put_bytes(line, "error", group.error);
  return line;
}

Table error_groups_table(std::span<const ErrorGroup* const> groups, int64_t now_ms) {
  Table table({{"JOBS", true},
               {"LAST", true},
               {"FIRST", true},
               {"NEWEST ID", false, true},
               {"ERROR", false, true}});
  for (const ErrorGroup* group : groups) {
    const std::string pattern = printable(group->pattern);
    table.add({count_text(group->count),
               ago_text(group->last_ms, now_ms),
               ago_text(group->first_ms, now_ms),
               printable(group->id),
               {pattern.empty() ? "(none)" : pattern, Style::kBad}});
  }
  return table;
}

}  // namespace sluice::cli
