// The failed jobs of a queue, grouped by the pattern of their error.
#include <memory>
#include <utility>

#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/io/turns.h"
#include "net/resp/error_groups.h"

namespace sluice {

namespace {

using nlohmann::json;

json group_to_json(const ErrorGroup& group) {
  json example = json::object();
  put_bytes(example, "id", group.id);
  put_bytes(example, "error", group.error);
  json line = {{"count", group.count},
               {"first_ms", group.first_ms},
               {"last_ms", group.last_ms},
               {"example", std::move(example)}};
  put_bytes(line, "pattern", group.pattern);
  return line;
}

// Adds up pages of Q.STATS ... BY ERROR, in several turns.
class Failures {
 public:
  Failures(Exchange& exchange, std::string cursor)
      : exchange_(exchange.shared_from_this()), cursor_(std::move(cursor)) {}

  // Reads one page. Returns false after the last one.
  bool go_on();

 private:
  static constexpr size_t kMostGroups = 100;
  static constexpr int kMostPages = 100;  // of 100 failed jobs each

  void respond();

  const std::shared_ptr<Exchange> exchange_;
  std::string cursor_;
  ErrorGroups groups_;
  int pages_ = 0;
};

bool Failures::go_on() {
  if (exchange_->cut_off()) return false;
  const RespValue reply = exchange_->run(
      {"Q.STATS", exchange_->path("queue"), "BY", "ERROR", "CURSOR", cursor_, "COUNT", "100"});
  if (respond_error(*exchange_, reply)) return false;
  groups_.add(reply.items[1]);
  cursor_ = reply.items[0].text;
  if (cursor_ != "0" && ++pages_ < kMostPages) return true;
  respond();
  return false;
}

void Failures::respond() {
  json lines = json::array();
  int64_t others = groups_.jobs();
  for (const ErrorGroup* group : groups_.largest(kMostGroups)) {
    others -= group->count;
    lines.push_back(group_to_json(*group));
  }
  respond_json(*exchange_, {{"looked_at", groups_.jobs()},
                            {"groups", std::move(lines)},
                            {"others", others},
                            {"cursor", cursor_json(cursor_)}});
}

void list_failures(Exchange& exchange) {
  QueryReader query(exchange);
  const std::string cursor = query.text("cursor").value_or("0");
  if (query.failed()) return;
  const auto failures = std::make_shared<Failures>(exchange, cursor);
  work_in_turns(exchange.engine().thread(), [failures] { return failures->go_on(); });
}

}  // namespace

std::vector<Route> failure_routes() {
  return {{.pattern = "/api/v1/queues/{queue}/failures",
           .handler = list_failures,
           .summary = "The failed jobs in groups of like errors, the largest first; of 10,000 jobs "
                      "a request, the newest first.",
           .parameters = {kCursorParameter},
           .answer = "Failures"}};
}

}  // namespace sluice
