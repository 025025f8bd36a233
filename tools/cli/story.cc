#include "tools/cli/story.h"

#include <algorithm>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "tools/cli/failure.h"
#include "tools/cli/job_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

// The log has no index by job. This limits how much is read from the job's beginning on.
constexpr int kMostPages = 200;
// Events and jobs use one clock; a few events from before the beginning do no harm.
constexpr int64_t kMarginMs = 5;

RespValue read_page(Connection& connection, const std::string& queue, int64_t after,
                    int64_t count) {
  return connection.try_call(
      {"Q.EVENTS", queue, std::to_string(after), "COUNT", std::to_string(count)});
}

[[noreturn]] void fail(const RespValue& error) { throw failure_of(error.text); }

// The number and time of the first event after `after`; nothing at the end of the log.
struct Place {
  int64_t seq = 0;
  int64_t time_ms = 0;
};

std::optional<Place> first_event(Connection& connection, const std::string& queue, int64_t after) {
  RespValue page = read_page(connection, queue, after, 1);
  if (const auto oldest = trimmed_oldest(page); oldest && *oldest > after) {
    // The log no longer holds it; what it keeps begins at `oldest`.
    page = read_page(connection, queue, *oldest - 1, 1);
  }
  if (page.is_error()) fail(page);
  if (page.items.empty()) return std::nullopt;
  const RespValue& event = page.items[0];
  return Place{event.items[0].integer, event.items[1].integer};
}

std::optional<Place> oldest_event(Connection& connection, const std::string& queue) {
  const RespValue page = connection.call({"Q.EVENTS", queue, "-", "COUNT", "1"});
  if (page.items.empty()) return std::nullopt;
  return Place{page.items[0].items[0].integer, page.items[0].items[1].integer};
}

}  // namespace

std::optional<int64_t> trimmed_oldest(const RespValue& error) {
  constexpr Bytes kBegin = "TRIMMED oldest=";
  if (!error.is_error() || !error.text.starts_with(kBegin)) return std::nullopt;
  return parse_i64(Bytes(error.text).substr(kBegin.size()));
}

int64_t last_event(Connection& connection, const std::string& queue) {
  constexpr int64_t kAboveAll = (int64_t{1} << 53) - 1;
  const auto oldest = oldest_event(connection, queue);
  if (!oldest) {
    // No event is kept; the error says what the next number would be.
    const RespValue page = read_page(connection, queue, kAboveAll, 1);
    return std::max<int64_t>(0, trimmed_oldest(page).value_or(1) - 1);
  }
  // Numbers above the last answer TRIMMED, so the last is found by doubling, then by bisection.
  int64_t low = oldest->seq;  // this event exists
  int64_t high = -1;          // this one does not; -1: not known
  for (int64_t step = kMaxPageCount; high < 0 || high - low > 1;) {
    const int64_t at = high < 0 ? low + step : low + (high - low) / 2;
    const RespValue page = read_page(connection, queue, at, 1);
    if (const auto first = trimmed_oldest(page)) {
      if (*first > at) {
        low = std::max(low, *first);
      } else {
        high = at;
      }
    } else if (page.is_error()) {
      fail(page);
    } else if (page.items.empty()) {
      return at;
    } else {
      low = page.items[0].items[0].integer;
    }
    if (high < 0) step *= 2;
  }
  return low;
}

Story read_story(Connection& connection, const std::string& queue, const std::string& id,
                 int64_t since_ms) {
  Story story;
  story.events.kind = RespValue::Kind::kArray;
  const auto oldest = oldest_event(connection, queue);
  if (!oldest) {
    story.note = "the queue keeps no events";
    return story;
  }
  int64_t low = oldest->seq;
  if (oldest->time_ms > since_ms && oldest->seq > 1) {
    story.note = "the event log does not go back to the job's beginning";
  } else {
    // The last event before the job's time, or one near it.
    int64_t high = last_event(connection, queue);
    while (high - low > kMaxPageCount / 2) {
      const int64_t middle = low + (high - low) / 2;
      const auto event = first_event(connection, queue, middle);
      const bool before = event && event->time_ms < since_ms - kMarginMs;
      before ? low = middle : high = middle;
    }
  }
  int64_t after = low - 1;
  for (int pages = 0; pages < kMostPages; ++pages) {
    RespValue page = read_page(connection, queue, after, kMaxPageCount);
    if (const auto first = trimmed_oldest(page); first && *first > after) {
      story.note = "the event log does not go back to the job's beginning";
      after = *first - 1;
      continue;
    }
    if (page.is_error()) fail(page);
    page = as_events(std::move(page));
    const bool end = page.items.size() < static_cast<size_t>(kMaxPageCount);
    if (!page.items.empty()) after = integer_of(page.items.back(), "seq");
    for (RespValue& event : page.items) {
      if (text_of(event, "id") == id) story.events.items.push_back(std::move(event));
    }
    if (end) return story;
  }
  story.note =
      "the event log is longer than the part that was read, up to event " + count_text(after);
  return story;
}

Table events_table(const RespValue& events, int64_t now_ms) {
  Table table({{"EVENT", true}, {"TIME"}, {"TYPE"}, {"ID", false, true}, {"FIELDS", false, true}});
  for (const RespValue& event : events.items) {
    const RespValue* fields = event.find("fields");
    const std::string type = text_of(event, "type");
    table.add({std::to_string(integer_of(event, "seq")),
               moment_text(integer_of(event, "time"), now_ms),
               {type, state_style(type)},
               printable(text_of(event, "id")),
               fields == nullptr ? "" : pairs_text(*fields)});
  }
  return table;
}

}  // namespace sluice::cli
