// The history of queues: of one as its charts show it, of many as sparklines.
#include <memory>
#include <optional>
#include <utility>

#include "net/admin/api.h"
#include "net/admin/history.h"
#include "net/admin/queue_list.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/io/io_thread.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;

constexpr std::array<const char*, kHistoryColumns> kNames = {
    "added", "ended", "failed", "waiting", "active", "wait_p50_ms", "wait_p95_ms"};
constexpr std::array<const char*, kHistoryBandColumns> kBandNames = {"waiting", "wait_p50_ms",
                                                                     "wait_p95_ms"};

int64_t now_ms(Exchange& exchange) { return exchange.engine().thread().clock().times().wall_ms; }

// Texts, because a JSON value for each number would take long.
void append_values(const std::vector<HistoryValue>& values, std::string& to) {
  to += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) to += ',';
    if (values[i] == kNoValue) {
      to += "null";
    } else {
      to += std::to_string(unpack_value(values[i]));
    }
  }
  to += ']';
}

template <size_t kColumns>
void append_columns(const std::array<const char*, kColumns>& names,
                    const HistoryColumns<kColumns>& columns, std::string& to) {
  to += '{';
  for (size_t i = 0; i < kColumns; ++i) {
    to.append(i == 0 ? "\"" : ",\"").append(names[i]).append("\":");
    append_values(columns[i], to);
  }
  to += '}';
}

std::string text_of(const HistoryView& view, const std::string& queue, HistoryRange range) {
  const bool hour = range == HistoryRange::kHour;
  const HistorySteps steps = steps_of(range);
  json head = {{"range", hour ? "hour" : "day"},
               {"step_ms", steps.step_ms},
               {"start_ms", view.start_ms},
               {"end_ms", view.start_ms + steps.count * steps.step_ms},
               {"reduced", view.reduced}};
  put_bytes(head, "queue", queue);
  std::string text = dump_json(head);
  text.back() = ',';
  text += "\"series\":";
  append_columns(kNames, view.queue, text);
  if (hour) {
    text += ",\"bands\":{";
    for (size_t i = 0; i < view.bands.size(); ++i) {
      if (i != 0) text += ',';
      text += dump_json(name_to_json(view.bands[i].first)) + ":";
      append_columns(kBandNames, view.bands[i].second, text);
    }
    text += '}';
  }
  return text + '}';
}

void get_history(Exchange& exchange) {
  QueryReader query(exchange);
  const std::string word = query.text("range").value_or("hour");
  if (word != "hour" && word != "day") query.fail("range", word, {"hour", "day"});
  if (query.failed()) return;
  const HistoryRange range = word == "hour" ? HistoryRange::kHour : HistoryRange::kDay;
  // The command checks the user's rights and the type of the key.
  const RespValue stats = exchange.run({"Q.STATS", exchange.path("queue")});
  if (respond_error(exchange, stats)) return;
  const QueueName queue = {exchange.database(), exchange.path("queue")};
  HttpResponse response;
  response.body = text_of(exchange.service().state().history->view(queue, range, now_ms(exchange)),
                          queue.name, range);
  exchange.respond(std::move(response));
}

// The values of some intervals as one: the sum of counts, the last level.
json joined(const std::vector<HistoryValue>& values, int64_t size, HistoryKind kind) {
  json all = json::array();
  for (size_t begin = 0; begin < values.size(); begin += static_cast<size_t>(size)) {
    std::optional<uint64_t> value;
    for (size_t i = begin; i < begin + static_cast<size_t>(size); ++i) {
      if (values[i] == kNoValue) continue;
      const uint64_t sum = kind == HistoryKind::kCount ? value.value_or(0) : 0;
      value = sum + unpack_value(values[i]);
    }
    all.push_back(value ? json(*value) : json(nullptr));
  }
  return all;
}

struct Sparklines {
  int database = 0;
  int64_t size = 0;  // intervals in one
};

// Nothing if the requester may not read the queue.
std::optional<json> sparkline(Exchange& exchange, const Sparklines& lines,
                              const std::string& queue) {
  if (exchange.run({"Q.STATS", queue}).is_error()) return std::nullopt;
  const HistoryView view = exchange.service().state().history->view(
      {lines.database, queue}, HistoryRange::kHour, now_ms(exchange));
  json line = {{"reduced", view.reduced},
               {"failed_total", view.failed_total ? json(*view.failed_total) : json(nullptr)},
               {"waiting", joined(view.queue[kWaiting], lines.size, HistoryKind::kLevel)},
               {"ended", joined(view.queue[kEnded], lines.size, HistoryKind::kCount)},
               {"failed", joined(view.queue[kFailed], lines.size, HistoryKind::kCount)}};
  put_bytes(line, "queue", queue);
  return line;
}

void list_named(Exchange& exchange, const Words& names, const QueueListRequest& request) {
  const auto list = std::make_shared<JsonList>("queues");
  const auto next = std::make_shared<Words>(names.rbegin(), names.rend());
  list->put(request.members);
  work_in_turns(exchange.engine().thread(),
                [shared = exchange.shared_from_this(), list, next, line = request.line] {
                  if (shared->cut_off() || respond_busy(*shared)) return false;
                  if (next->empty()) {
                    list->respond(*shared, nullptr);
                    return false;
                  }
                  if (const auto element = line(next->back())) list->add(*element);
                  next->pop_back();
                  return true;
                });
}

void get_histories(Exchange& exchange) {
  constexpr int64_t kMostQueues = 1000;
  constexpr int64_t kUsualQueues = 100;
  constexpr int64_t kUsualPoints = 60;
  QueryReader query(exchange);
  QueueListRequest request;
  request.after = read_queue_cursor(query);
  request.limit =
      static_cast<size_t>(query.integer("count", 1, kMostQueues).value_or(kUsualQueues));
  const int64_t points = query.integer("points", 1, kHourSteps.count).value_or(kUsualPoints);
  if (kHourSteps.count % points != 0) query.fail("points", "must divide 720");
  Words names;
  query.options({{"queue", ""}}, names);
  if (names.size() > kMostQueues) query.fail("queue", "may be given 1,000 times");
  if (query.failed() || respond_busy(exchange)) return;
  const Sparklines lines = {exchange.database(), kHourSteps.count / points};
  // The first one of the range, whatever the queue.
  const HistoryView any =
      exchange.service().state().history->view({0, ""}, HistoryRange::kHour, now_ms(exchange));
  request.members = {{"step_ms", lines.size * kHourSteps.step_ms}, {"start_ms", any.start_ms}};
  // The exchange lives as long as its list.
  request.line = [raw = &exchange, lines](const std::string& queue) {
    return sparkline(*raw, lines, queue);
  };
  if (names.empty()) return list_queues(exchange, std::move(request));
  list_named(exchange, names, request);
}

}  // namespace

std::vector<Route> history_routes() {
  return {{.pattern = "/api/v1/queues/{queue}/history",
           .handler = get_history,
           .summary = "What happened in the last hour or day; of a missing queue, nothing.",
           .parameters = {{"range", "string", "hour or day"}},
           .answer = "History"},
          {.pattern = "/api/v1/history",
           .handler = get_histories,
           .summary = "The last hour of many queues, by name, in a few values each.",
           .parameters = {{"points", "integer", "values of each line; must divide 720"},
                          {"queue", "string", "only this queue; may be repeated"},
                          {"count", "integer", "at most this many queues, 1 to 1000"},
                          kCursorParameter},
           .answer = "Histories"}};
}

}  // namespace sluice
