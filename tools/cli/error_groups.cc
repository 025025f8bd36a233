#include "tools/cli/error_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr const char* kPage = "1000";

RespValue* member(RespValue& map, Bytes name) {
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}

// Keeps id and error of the newer page.
void add_line(const RespValue& older, RespValue& line) {
  if (RespValue* count = member(line, "count")) count->integer += integer_of(older, "count");
  if (RespValue* first = member(line, "first")) {
    first->integer = std::min(first->integer, integer_of(older, "first", first->integer));
  }
  if (RespValue* last = member(line, "last")) {
    last->integer = std::max(last->integer, integer_of(older, "last", last->integer));
  }
}

void sort_by_count(RespValue& groups) {
  std::vector<std::pair<RespValue, RespValue>> lines;
  for (size_t i = 0; i + 1 < groups.items.size(); i += 2) {
    lines.emplace_back(std::move(groups.items[i]), std::move(groups.items[i + 1]));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return integer_of(a.second, "count") > integer_of(b.second, "count");
  });
  groups.items.clear();
  for (auto& [pattern, line] : lines) {
    groups.items.push_back(std::move(pattern));
    groups.items.push_back(std::move(line));
  }
}

std::string ago_text(const RespValue& line, Bytes moment, int64_t now_ms) {
  const int64_t then = integer_of(line, moment, -1);
  return then < 0 ? "" : duration_text(std::max<int64_t>(0, now_ms - then)) + " ago";
}

}  // namespace

void add_error_groups(const RespValue& page, RespValue& groups) {
  groups.kind = RespValue::Kind::kMap;
  for (size_t i = 0; i + 1 < page.items.size(); i += 2) {
    if (RespValue* known = member(groups, page.items[i].text)) {
      add_line(page.items[i + 1], *known);
      continue;
    }
    groups.items.push_back(page.items[i]);
    groups.items.push_back(page.items[i + 1]);
  }
}

RespValue error_groups(Connection& connection, const std::string& queue) {
  RespValue groups;
  groups.kind = RespValue::Kind::kMap;
  std::string cursor = "0";
  do {
    RespValue page =
        connection.call({"Q.STATS", queue, "BY", "ERROR", "CURSOR", cursor, "COUNT", kPage});
    cursor = page.items.at(0).text;
    add_error_groups(as_map_of_maps(std::move(page.items.at(1))), groups);
  } while (cursor != "0");
  sort_by_count(groups);
  return groups;
}

Table error_groups_table(const RespValue& groups, int64_t now_ms) {
  Table table({{"JOBS", true},
               {"LAST", true},
               {"FIRST", true},
               {"NEWEST ID", false, true},
               {"ERROR", false, true}});
  for (size_t i = 0; i + 1 < groups.items.size(); i += 2) {
    const RespValue& line = groups.items[i + 1];
    const std::string pattern = printable(groups.items[i].text);
    table.add({count_text(integer_of(line, "count")),
               ago_text(line, "last", now_ms),
               ago_text(line, "first", now_ms),
               printable(text_of(line, "id")),
               {pattern.empty() ? "(none)" : pattern, Style::kBad}});
  }
  return table;
}

}  // namespace sluice::cli
