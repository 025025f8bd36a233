#include "tools/cli/stats_lines.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/replies.h"

namespace sluice::cli {

namespace {

using Line = std::pair<RespValue, RespValue>;  // name and map

constexpr size_t kShownLines = 1000;
// Lines are sorted and the small ones summed whenever there are this many more.
constexpr size_t kMoreLines = 10'000;
constexpr const char* kRestName = "*";

// The size: jobs of a group; slots of a key, whose jobs are not counted.
int64_t size_of(const RespValue& line) {
  const bool counts_jobs = line.find("waiting") != nullptr;
  return counts_jobs ? integer_of(line, "waiting") + integer_of(line, "active")
                     : integer_of(line, "slots");
}

void add_line(const RespValue& line, RespValue& sum) {
  if (sum.items.empty()) {
    sum = line;
    for (size_t i = 1; i < sum.items.size(); i += 2) {
      const std::string& field = sum.items[i - 1].text;
      if (field == "utilization") sum.items[i] = {};
      if (field == "max_active") sum.items[i].integer = 0;
    }
    return;
  }
  for (size_t i = 1; i < sum.items.size() && i < line.items.size(); i += 2) {
    if (sum.items[i - 1].text != "max_active") sum.items[i].integer += line.items[i].integer;
  }
}

// Keeps the largest lines in descending order and adds the others to `rest`.
void keep_largest(std::vector<Line>& lines, RespValue& rest) {
  const size_t kept = std::min(lines.size(), kShownLines);
  std::partial_sort(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(kept), lines.end(),
                    [](const Line& a, const Line& b) {
                      const int64_t size_a = size_of(a.second);
                      const int64_t size_b = size_of(b.second);
                      return size_a != size_b ? size_a > size_b : a.first.text < b.first.text;
                    });
  for (size_t i = kept; i < lines.size(); ++i) add_line(lines[i].second, rest);
  lines.resize(kept);
}

}  // namespace

RespValue stats_lines(Connection& connection, const std::string& queue, const Words& by) {
  Words words = {"Q.STATS", queue, "COUNT", "1000", "CURSOR", "0", "BY"};
  words.insert(words.end(), by.begin(), by.end());
  std::string& cursor = words[5];
  // Bands, tags and workers keep their own order, and are few.
  const bool by_size = equals_ignore_case(by[0], "GROUP") || equals_ignore_case(by[0], "KEY");
  std::vector<Line> lines;
  RespValue rest;
  do {
    RespValue page = connection.call(words);
    RespValue map = as_map_of_maps(std::move(page.items[1]));
    for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
      lines.emplace_back(std::move(map.items[i]), std::move(map.items[i + 1]));
    }
    if (by_size && lines.size() > kShownLines + kMoreLines) keep_largest(lines, rest);
    cursor = std::move(page.items[0].text);
  } while (cursor != "0");
  if (by_size) keep_largest(lines, rest);
  if (!rest.items.empty()) {
    RespValue name;
    name.kind = RespValue::Kind::kText;
    name.text = kRestName;
    lines.emplace_back(std::move(name), std::move(rest));
  }
  RespValue all;
  all.kind = RespValue::Kind::kMap;
  for (Line& line : lines) {
    all.items.push_back(std::move(line.first));
    all.items.push_back(std::move(line.second));
  }
  return all;
}

}  // namespace sluice::cli
