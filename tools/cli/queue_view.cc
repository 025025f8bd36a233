#include "tools/cli/queue_view.h"

#include <algorithm>

#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using Kind = RespValue::Kind;

// A number of a line; nothing if it is missing or 0.
std::string filled(const RespValue& line, Bytes name) {
  const int64_t value = integer_of(line, name);
  return value == 0 ? "" : count_text(value);
}

std::string shown(const RespValue& line, Bytes name) {
  return line.find(name) == nullptr ? "" : count_text(integer_of(line, name));
}

std::string slots_text(const RespValue& line) {
  if (line.find("slots") == nullptr) return shown(line, "active");
  const int64_t most = integer_of(line, "max_active");
  const std::string used = count_text(integer_of(line, "slots"));
  return most == 0 ? used : used + "/" + count_text(most);
}

std::string quantile_text(const RespValue& line, Bytes name, Bytes quantile) {
  if (number_of(line, name, "count") == 0) return "";
  return duration_text(static_cast<int64_t>(number_of(line, name, quantile)));
}

std::string age_text(const RespValue& line, Bytes name) {
  const int64_t age_ms = integer_of(line, name, -1);
  return age_ms < 0 ? "" : duration_text(age_ms);
}

Cell bad(std::string text) { return {std::move(text), Style::kBad}; }

std::string bands_text(const RespValue& stats) {
  const RespValue* bands = stats.find("by_priority");
  std::string text;
  for (size_t i = 0; bands != nullptr && i + 1 < bands->items.size(); i += 2) {
    if (!text.empty()) text += "  ";
    text += printable(bands->items[i].text) + " " + count_text(bands->items[i + 1].integer);
  }
  return text;
}

std::string durations_text(const RespValue& stats, Bytes name) {
  if (number_of(stats, name, "count") == 0) return "none yet";
  std::string text;
  for (const char* part : {"p50", "p95", "p99", "max"}) {
    if (!text.empty()) text += "  ";
    text += std::string(part) + " " + quantile_text(stats, name, part);
  }
  return text;
}

std::string totals_text(const RespValue& stats) {
  std::string text;
  for (const char* name :
       {"added", "started", "completed", "failed", "expired", "cancelled", "reclaimed"}) {
    const int64_t total = integer_of(stats, name);
    if (total == 0 && name != std::string("added")) continue;
    if (!text.empty()) text += "  ";
    text += std::string(name) + " " + count_text(total);
  }
  return text;
}

std::string rejected_text(const RespValue& stats) {
  const RespValue* reasons = stats.find("rejected");
  std::string text;
  for (size_t i = 0; reasons != nullptr && i + 1 < reasons->items.size(); i += 2) {
    if (reasons->items[i + 1].integer == 0) continue;
    if (!text.empty()) text += "  ";
    text += reasons->items[i].text + " " + count_text(reasons->items[i + 1].integer);
  }
  return text;
}

std::string paused_text(const RespValue& stats) {
  const std::string paused = text_of(stats, "paused");
  return paused == "none" ? "" : paused;
}

}  // namespace

void put_paused(const RespValue& config, RespValue& stats) {
  const RespValue* paused = config.find("paused");
  if (paused == nullptr || !stats.is_map()) return;
  RespValue name;
  name.kind = Kind::kText;
  name.text = "paused";
  stats.items.push_back(std::move(name));
  stats.items.push_back(*paused);
}

bool is_paused(const RespValue& stats) { return !paused_text(stats).empty(); }

std::span<const QueueColumn> queue_columns() {
  using Stats = RespValue;
  static const QueueColumn kColumns[] = {
      {{"QUEUE", false, true},
       [](const QueueStats& queue) -> Cell { return printable(queue.first); },
       nullptr},
      {{"PENDING", true},
       [](const QueueStats& queue) -> Cell { return shown(queue.second, "pending"); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "pending")); }},
      {{"ACTIVE", true},
       [](const QueueStats& queue) -> Cell {
         const bool runs = integer_of(queue.second, "slots") > 0;
         return {slots_text(queue.second), runs ? Style::kBusy : Style::kPlain};
       },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "active")); }},
      {{"DELAYED", true},
       [](const QueueStats& queue) -> Cell { return filled(queue.second, "delayed"); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "delayed")); }},
      {{"BLOCKED", true},
       [](const QueueStats& queue) -> Cell { return filled(queue.second, "blocked"); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "blocked")); }},
      {{"FAILED", true},
       [](const QueueStats& queue) -> Cell { return bad(filled(queue.second, "failed")); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "failed")); }},
      {{"ADDED/S", true},
       [](const QueueStats& queue) -> Cell {
         return rate_text(number_of(queue.second, "rates", "added"));
       },
       [](const Stats& stats) { return number_of(stats, "rates", "added"); }},
      {{"DONE/S", true},
       [](const QueueStats& queue) -> Cell {
         return rate_text(number_of(queue.second, "rates", "completed"));
       },
       [](const Stats& stats) { return number_of(stats, "rates", "completed"); }},
      {{"OLDEST", true},
       [](const QueueStats& queue) -> Cell { return age_text(queue.second, "oldest_ms"); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "oldest_ms", -1)); }},
      {{"WAIT P50", true},
       [](const QueueStats& queue) -> Cell {
         return quantile_text(queue.second, "wait_ms", "p50");
       },
       [](const Stats& stats) { return number_of(stats, "wait_ms", "p50"); }},
      {{"P95", true},
       [](const QueueStats& queue) -> Cell {
         return quantile_text(queue.second, "wait_ms", "p95");
       },
       [](const Stats& stats) { return number_of(stats, "wait_ms", "p95"); }},
      {{"RUN P50", true},
       [](const QueueStats& queue) -> Cell { return quantile_text(queue.second, "run_ms", "p50"); },
       [](const Stats& stats) { return number_of(stats, "run_ms", "p50"); }},
      {{"POPS", true},
       [](const QueueStats& queue) -> Cell { return filled(queue.second, "waiting_pops"); },
       [](const Stats& stats) { return static_cast<double>(integer_of(stats, "waiting_pops")); }},
      // The last one: scripts that count columns find the others where they were.
      {{"PAUSED"},
       [](const QueueStats& queue) -> Cell { return bad(paused_text(queue.second)); },
       [](const Stats& stats) { return is_paused(stats) ? 1.0 : 0.0; }}};
  return kColumns;
}

Table queues_table(const std::vector<QueueStats>& queues, std::optional<size_t> sorted_by) {
  std::vector<Table::Column> columns;
  for (const QueueColumn& column : queue_columns()) columns.push_back(column.column);
  if (sorted_by) columns.at(*sorted_by).stays = true;
  Table table(std::move(columns));
  for (const QueueStats& queue : queues) {
    std::vector<Cell> row;
    for (const QueueColumn& column : queue_columns()) row.push_back(column.cell(queue));
    table.add(std::move(row));
  }
  return table;
}

Table lines_table(const char* what, const RespValue& lines) {
  Table table({{what, false, true},
               {"PENDING", true},
               {"ACTIVE", true},
               {"DELAYED", true},
               {"BLOCKED", true},
               {"OLDEST", true},
               {"WAIT P50", true},
               {"P95", true},
               {"RUN P50", true},
               {"COMPLETED", true},
               {"FAILED", true},
               {"LONGEST RUN", true}});
  for (size_t i = 0; i + 1 < lines.items.size(); i += 2) {
    const RespValue& line = lines.items[i + 1];
    const std::string name = printable(lines.items[i].text);
    table.add({name.empty() ? "(none)" : name, shown(line, "pending"), slots_text(line),
               filled(line, "delayed"), filled(line, "blocked"), age_text(line, "oldest_ms"),
               quantile_text(line, "wait_ms", "p50"), quantile_text(line, "wait_ms", "p95"),
               quantile_text(line, "run_ms", "p50"), filled(line, "completed"),
               bad(filled(line, "failed")), age_text(line, "oldest_run_ms")});
  }
  return table;
}

Table workers_table(const char* what, const RespValue& lines, int64_t now_ms) {
  Table table({{what, false, true},
               {"ACTIVE", true},
               {"LONGEST RUN", true},
               {"POPS", true},
               {"COMPLETED", true},
               {"FAILED", true},
               {"SEEN", true},
               {"QUIET"}});
  for (size_t i = 0; i + 1 < lines.items.size(); i += 2) {
    const RespValue& line = lines.items[i + 1];
    const std::string name = printable(lines.items[i].text);
    const int64_t seen = integer_of(line, "seen", -1);
    table.add({name.empty() ? "(none)" : name, count_text(integer_of(line, "active")),
               age_text(line, "oldest_run_ms"), filled(line, "waiting_pops"),
               filled(line, "completed"), bad(filled(line, "failed")),
               seen < 0 ? "" : duration_text(std::max<int64_t>(0, now_ms - seen)) + " ago",
               integer_of(line, "quiet") != 0 ? "quiet" : ""});
  }
  return table;
}

std::vector<std::string> summary_lines(const RespValue& stats, const Screen& screen) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& title, const std::string& text) {
    if (text.empty()) return;
    const size_t room = screen.width > 10 ? screen.width - 10 : 0;
    const std::string begin = screen.terminal ? padded(title, 10) : title + "\t";
    lines.push_back(styled(begin, Style::kDim, screen) + (room == 0 ? text : fit_text(text, room)));
  };
  add("pending", bands_text(stats));
  add("waited", durations_text(stats, "wait_ms"));
  add("ran", durations_text(stats, "run_ms"));
  add("totals", totals_text(stats));
  add("refused", rejected_text(stats));
  return lines;
}

}  // namespace sluice::cli
