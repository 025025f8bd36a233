#include "tools/cli/job_view.h"

#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/queue/field_help.h"
#include "engine/queue/job_texts.h"
#include "net/http/message.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using Kind = RespValue::Kind;

// What a screen shows of a payload, a result or a progress, which may have megabytes.
constexpr size_t kShownValueBytes = 4096;

std::string optional_count(const RespValue& job, Bytes name) {
  const RespValue* value = job.find(name);
  return value != nullptr && value->kind == Kind::kInteger ? count_text(value->integer) : "";
}

// How long the job has been running, or did run.
std::string run_text(const RespValue& job, int64_t now_ms) {
  const int64_t run_ms = integer_of(job, "run_ms", -1);
  if (run_ms >= 0) return duration_text(run_ms);
  const int64_t started = integer_of(job, "started", -1);
  return started < 0 ? "" : duration_text(std::max<int64_t>(0, now_ms - started));
}

std::string list_text(const RespValue& list) {
  std::string text;
  for (const RespValue& item : list.items) {
    if (!text.empty()) text += ' ';
    text += printable(item.text);
  }
  return text;
}

// "retry=3 backoff=10:20": those that a job has of its own.
std::string options_text(const RespValue& options) {
  std::string text;
  for (size_t i = 0; i + 1 < options.items.size(); i += 2) {
    const std::string& name = options.items[i].text;
    const RespValue& value = options.items[i + 1];
    // No boost and no TTL are what a job has that was given none.
    const bool is_usual = value.integer == 0 && (name == "boost_ms" || name == "ttl_ms");
    if (value.is_null() || is_usual) continue;
    if (!text.empty()) text += ' ';
    text += printable(name) + "=";
    text += value.kind == Kind::kArray ? std::to_string(value.items.at(0).integer) + ":" +
                                             std::to_string(value.items.at(1).integer)
                                       : std::to_string(value.integer);
  }
  return text;
}

// At most so many bytes of the text; then how many it has, and where they are.
std::string beginning(Bytes text, size_t most) {
  const Bytes shown = cut_text(text, most);
  if (shown.size() == text.size()) return printable(text);
  return printable(shown) + "… (" + count_text(static_cast<int64_t>(shown.size())) + " of " +
         count_text(static_cast<int64_t>(text.size())) + " bytes; all with --json or in a pipe)";
}

std::string value_text(const std::string& name, const RespValue& value, int64_t now_ms,
                       size_t most_bytes) {
  switch (value.kind) {
    case Kind::kText:
      return beginning(value.text, most_bytes);
    case Kind::kArray:
      return list_text(value);
    case Kind::kMap:
      return name == "options" ? options_text(value) : pairs_text(value);
    case Kind::kBoolean:
      return value.integer != 0 ? "yes" : "";
    case Kind::kInteger:
      break;
    default:
      return "";
  }
  for (const char* moment : {"enqueued", "not_before", "deadline", "started", "finished"}) {
    if (name != moment) continue;
    const int64_t away_ms = value.integer - now_ms;
    return moment_text(value.integer, now_ms) + (away_ms < 0 ? ", " : ", in ") +
           duration_text(std::abs(away_ms)) + (away_ms < 0 ? " ago" : "");
  }
  if (name.ends_with("_ms")) return duration_text(value.integer);
  // A token is an identifier, not a quantity.
  return name == "lease" ? std::to_string(value.integer) : count_text(value.integer);
}

// The words of a `why`: its code and what follows it, as QUEUE.md has them.
using Parts = std::vector<std::string>;

std::string name_part(const Parts& parts, size_t at) {
  return at < parts.size() ? printable(percent_decode(parts[at]).value_or(parts[at])) : "";
}

int64_t number_part(const Parts& parts, size_t at) {
  return at < parts.size() ? parse_i64(parts[at]).value_or(0) : 0;
}

// "6/6" as "6 of 6 in use". A job may need several of those that are left.
std::string use_part(const Parts& parts, size_t at) {
  std::string use = name_part(parts, at);
  if (const size_t slash = use.find('/'); slash != std::string::npos) {
    use.replace(slash, 1, " of ");
  }
  return " (" + use + " in use)";
}

struct Reason {
  const char* code;
  std::string (*text)(const Parts& parts, int64_t now_ms);
};

// In the order of QUEUE.md's table. Short, since a list has one column for it.
constexpr Reason kReasons[] = {
    {"not_before",
     [](const Parts& parts, int64_t now_ms) {
       return "for another " + duration_text(std::max<int64_t>(0, number_part(parts, 1) - now_ms));
     }},
    {"releasing", [](const Parts&, int64_t) -> std::string { return "about to be released"; }},
    {"blocked_by",
     [](const Parts& parts, int64_t) {
       std::string ids;
       for (size_t i = 1; i < parts.size(); ++i) ids += (i == 1 ? "" : ", ") + name_part(parts, i);
       return "waits for " + ids;
     }},
    {"paused", [](const Parts&, int64_t) -> std::string { return "its queue or group is paused"; }},
    {"too_large", [](const Parts&, int64_t) -> std::string { return "its cost is above a cap"; }},
    {"group_cap",
     [](const Parts& parts, int64_t) { return "no room in its group" + use_part(parts, 1); }},
    {"key_cap",
     [](const Parts& parts, int64_t) {
       return "no room for its key " + name_part(parts, 1) + use_part(parts, 2);
     }},
    {"rate",
     [](const Parts& parts, int64_t) {
       return "held by the rate limit for " + duration_text(number_part(parts, 1));
     }},
    {"reserved", [](const Parts&, int64_t) -> std::string { return "free slots are reserved"; }},
    {"queue_cap",
     [](const Parts& parts, int64_t) { return "no room in the queue" + use_part(parts, 1); }},
    {"no_worker", [](const Parts&, int64_t) -> std::string { return "no worker asks for jobs"; }},
    {"next",
     [](const Parts&, int64_t) -> std::string { return "next for a worker that accepts it"; }},
    {"fair_share",
     [](const Parts&, int64_t) -> std::string { return "another group is owed more"; }},
    {"behind",
     [](const Parts& parts, int64_t) {
       const int64_t jobs = number_part(parts, 1);
       return count_text(jobs) + (jobs == 1 ? " job" : " jobs") + " before it";
     }},
};

// Why the job waits, in words; what an older program does not know as the server has it.
std::string why_text(const std::string& why, int64_t now_ms) {
  const Parts parts = split_words(why);
  for (const Reason& reason : kReasons) {
    if (!parts.empty() && parts[0] == reason.code) return reason.text(parts, now_ms);
  }
  return printable(why);
}

std::string start_text(int64_t eta_ms) {
  return eta_ms < 1000 ? "starts at once" : "starts in about " + duration_text(eta_ms);
}

}  // namespace

std::string error_text(const RespValue& job) {
  const std::string error = text_of(job, "error");
  const RespValue* needs = job.find("needs");
  if (needs == nullptr || text_of(job, "state") != "cancelled") return error;
  // A reason that somebody gave may begin with the same word.
  const bool is_of_need = std::any_of(needs->items.begin(), needs->items.end(),
                                      [&](const auto& id) { return error == "need " + id.text; });
  return is_of_need ? "the job " + error.substr(5) + ", which it needed, did not complete" : error;
}

Cell note_of(const RespValue& job, int64_t now_ms, bool is_for_people) {
  const std::string state = text_of(job, "state");
  const std::string error = printable(telling_line(error_text(job)));
  if (state == "active") {
    const std::string cancel = text_of(job, "cancel");
    if (job.find("cancel") != nullptr && !job.at("cancel").is_null()) {
      return {"asked to stop: " + printable(cancel), Style::kBad};
    }
    const int64_t deadline = integer_of(job, "deadline", -1);
    const int64_t left_ms = std::max<int64_t>(0, deadline - now_ms);
    const std::string lease = deadline < 0 ? "" : "lease " + duration_text(left_ms);
    const std::string progress = printable(text_of(job, "progress"));
    return lease + (lease.empty() || progress.empty() ? "" : ", ") + progress;
  }
  if (state == "delayed") {
    const int64_t left_ms = std::max<int64_t>(0, integer_of(job, "not_before") - now_ms);
    return {"in " + duration_text(left_ms) + (error.empty() ? "" : ", after: " + error)};
  }
  const std::string why = text_of(job, "why");
  if (why.empty()) return error;
  const int64_t eta_ms = integer_of(job, "eta_ms", -1);
  // Without a worker it starts when one comes.
  const std::string start = eta_ms < 0 || why == "no_worker" ? "" : start_text(eta_ms);
  if (!is_for_people) return printable(why) + (start.empty() ? "" : ", " + start);
  // Its position stands beside it. At 0 an aged job of another band goes first.
  const int64_t position = integer_of(job, "position", -1);
  const bool is_told = why.starts_with("behind ") && position >= 0;
  const std::string words = !is_told       ? why_text(why, now_ms)
                            : position > 0 ? ""
                                           : "an aged job goes first";
  return words + (words.empty() || start.empty() ? "" : ", ") + start;
}

std::string place_text(const RespValue& reply, bool with_start) {
  std::string text = text_of(reply, "state");
  const int64_t position = integer_of(reply, "position", -1);
  if (position >= 0) text += ", " + count_text(position) + " before it";
  const int64_t eta_ms = integer_of(reply, "eta_ms", -1);
  if (with_start && eta_ms >= 0) text += ", " + start_text(eta_ms);
  return text;
}

std::string pairs_text(const RespValue& map) {
  std::string text;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const RespValue& value = map.items[i + 1];
    if (!text.empty()) text += ' ';
    text += printable(map.items[i].text) + "=";
    text += value.kind == Kind::kInteger ? std::to_string(value.integer) : printable(value.text);
  }
  return text;
}

namespace {

// For whom a table is, and when.
struct View {
  int64_t now_ms;
  bool is_for_people;
};

struct JobColumn {
  Table::Column column;
  Cell (*cell)(const RespValue& job, const View& view);
  bool usual = true;  // shown in a list of any jobs
};

std::string pri_text(const RespValue& job) {
  const RespValue* pri = job.find("pri");
  const bool numbered = pri != nullptr && pri->kind == Kind::kInteger;
  return numbered ? std::to_string(pri->integer) : printable(text_of(job, "pri"));
}

std::string since_text(const RespValue& job, Bytes moment, int64_t now_ms) {
  const int64_t then = integer_of(job, moment, -1);
  return then < 0 ? "" : duration_text(std::max<int64_t>(0, now_ms - then));
}

std::span<const JobColumn> job_columns() {
  using Job = RespValue;
  static const JobColumn kColumns[] = {
      {{"ID", false, true},
       [](const Job& job, const View&) -> Cell { return printable(text_of(job, "id")); }},
      {{"STATE"},
       [](const Job& job, const View&) -> Cell {
         const std::string state = text_of(job, "state");
         return {state, state_style(state)};
       }},
      {{"PRI"}, [](const Job& job, const View&) -> Cell { return pri_text(job); }},
      {{"GROUP", false, true},
       [](const Job& job, const View&) -> Cell { return printable(text_of(job, "group")); }},
      {{"POS", true},
       [](const Job& job, const View&) -> Cell { return optional_count(job, "position"); }},
      {{"AGE", true},
       [](const Job& job, const View& view) -> Cell {
         return since_text(job, "enqueued", view.now_ms);
       }},
      {{"RUN", true},
       [](const Job& job, const View& view) -> Cell { return run_text(job, view.now_ms); }},
      {{"RUNS", true},
       [](const Job& job, const View&) -> Cell {
         const int64_t attempts = integer_of(job, "attempts");
         return attempts == 0 ? "" : std::to_string(attempts);
       }},
      {{"WORKER", false, true},
       [](const Job& job, const View&) -> Cell { return printable(text_of(job, "worker")); }},
      {{"ENDED", true},
       [](const Job& job, const View& view) -> Cell {
         const std::string since = since_text(job, "finished", view.now_ms);
         return since.empty() ? "" : since + " ago";
       },
       false},
      {{"NOTE", false, true},
       [](const Job& job, const View& view) {
         return note_of(job, view.now_ms, view.is_for_people);
       }},
      {{"OPTIONS", false, true},
       [](const Job& job, const View&) -> Cell {
         const RespValue* options = job.find("options");
         return options == nullptr ? "" : options_text(*options);
       },
       false},
      {{"PAYLOAD", false, true},
       [](const Job& job, const View&) -> Cell { return printable(text_of(job, "payload")); },
       false},
      {{"RESULT", false, true},
       [](const Job& job, const View&) -> Cell { return printable(text_of(job, "result")); },
       false}};
  return kColumns;
}

Table table_of(std::span<const JobColumn* const> chosen, const RespValue& jobs, const View& view,
               const char* what) {
  std::vector<Table::Column> columns;
  // For people the notes leave a position out: it stays in its column, however narrow the screen.
  const bool tells_position =
      std::any_of(jobs.items.begin(), jobs.items.end(),
                  [](const auto& job) { return integer_of(job, "position", -1) > 0; });
  for (const JobColumn* column : chosen) {
    columns.push_back(column->column);
    if (columns.back().title == "POS") columns.back().stays = tells_position;
  }
  columns[0].title = what;
  Table table(std::move(columns));
  for (const RespValue& job : jobs.items) {
    std::vector<Cell> row;
    for (const JobColumn* column : chosen) row.push_back(column->cell(job, view));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

Table jobs_table(const RespValue& jobs, int64_t now_ms, bool is_for_people,
                 std::span<const std::string> with) {
  std::vector<const JobColumn*> chosen;
  for (const JobColumn& column : job_columns()) {
    const auto names_it = [&](const std::string& one) {
      return equals_ignore_case(one, column.column.title);
    };
    if (column.usual || std::any_of(with.begin(), with.end(), names_it)) chosen.push_back(&column);
  }
  return table_of(chosen, jobs, {now_ms, is_for_people}, "ID");
}

Table short_jobs_table(const char* what, const RespValue& jobs, int64_t now_ms,
                       std::span<const char* const> columns) {
  std::vector<const JobColumn*> chosen = {&job_columns()[0]};
  for (const JobColumn& column : job_columns()) {
    const auto names_it = [&](const char* one) { return column.column.title == one; };
    if (std::any_of(columns.begin(), columns.end(), names_it)) chosen.push_back(&column);
  }
  return table_of(chosen, jobs, {now_ms, true}, what);
}

Table leases_table(const RespValue& jobs, int64_t now_ms) {
  Table table({{"QUEUE"},
               {"ID", false, true},
               {"LEASE"},  // a number is left out if there is no room
               {"UNTIL"},
               {"PRI"},
               {"GROUP", false, true},
               {"ATTEMPT", true},
               {"PAYLOAD", false, true}});
  for (const RespValue& job : jobs.items) {
    table.add({printable(text_of(job, "queue")), printable(text_of(job, "id")),
               std::to_string(integer_of(job, "lease")),
               moment_text(integer_of(job, "deadline"), now_ms), printable(text_of(job, "pri")),
               printable(text_of(job, "group")), std::to_string(integer_of(job, "attempt")),
               printable(text_of(job, "payload"))});
  }
  return table;
}

Table fields_table(const RespValue& job, int64_t now_ms, bool is_for_people) {
  const size_t most_bytes = is_for_people ? kShownValueBytes : Bytes::npos;
  Table table({{"FIELD"}, {"VALUE"}});
  for (size_t i = 0; i + 1 < job.items.size(); i += 2) {
    const std::string& name = job.items[i].text;
    const RespValue& value = job.items[i + 1];
    std::string text = name == "error" ? printable(error_text(job))
                       : name == "why" && is_for_people
                           ? why_text(value.text, now_ms)
                           : value_text(name, value, now_ms, most_bytes);
    const bool may_be_none = name == "max_run_ms" || name == "dependents_count";
    if (text.empty() || (may_be_none && value.integer == 0)) continue;
    const Style style = name == "state" ? state_style(text) : Style::kPlain;
    table.add({name, {std::move(text), style}});
  }
  return table;
}

}  // namespace sluice::cli
