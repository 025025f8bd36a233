// The failed jobs of a queue, grouped by the pattern of their error.
#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "engine/base/limits.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;

struct FailureGroup {
  std::string pattern;
  int64_t count = 0;
  int64_t first_ms = 0;
  int64_t last_ms = 0;
  std::string id;  // of the newest job
  std::string error;
};

json group_to_json(const FailureGroup& group) {
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

  void add(std::string pattern, const RespValue& line);
  void respond();

  const std::shared_ptr<Exchange> exchange_;
  std::string cursor_;
  std::vector<FailureGroup> groups_;
  std::unordered_map<std::string, size_t> places_;  // in groups_, by pattern
  int pages_ = 0;
  int64_t looked_at_ = 0;
};

bool Failures::go_on() {
  if (exchange_->cut_off()) return false;
  const RespValue reply = exchange_->run(
      {"Q.STATS", exchange_->path("queue"), "BY", "ERROR", "CURSOR", cursor_, "COUNT", "100"});
  if (respond_error(*exchange_, reply)) return false;
  const std::vector<RespValue>& lines = reply.items[1].items;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) add(lines[i].text, lines[i + 1]);
  cursor_ = reply.items[0].text;
  if (cursor_ != "0" && ++pages_ < kMostPages) return true;
  respond();
  return false;
}

// Pages come from the newest job to the oldest.
void Failures::add(std::string pattern, const RespValue& line) {
  const auto [place, is_new] = places_.try_emplace(pattern, groups_.size());
  if (is_new) {
    groups_.push_back({std::move(pattern), 0, 0, line.at("last").integer, line.at("id").text,
                       line.at("error").text});
  }
  FailureGroup& group = groups_[place->second];
  group.count += line.at("count").integer;
  group.first_ms = line.at("first").integer;
  looked_at_ += line.at("count").integer;
}

void Failures::respond() {
  std::vector<size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t shown = std::min(order.size(), kMostGroups);
  // The newest job decides between groups of one size.
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](size_t a, size_t b) {
                      const int64_t counts[] = {groups_[a].count, groups_[b].count};
                      return counts[0] != counts[1] ? counts[0] > counts[1] : a < b;
                    });
  order.resize(shown);
  json lines = json::array();
  int64_t others = looked_at_;
  for (const size_t place : order) {
    others -= groups_[place].count;
    lines.push_back(group_to_json(groups_[place]));
  }
  respond_json(*exchange_, {{"looked_at", looked_at_},
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
           .parameters = {{"cursor", "string", "the cursor of the previous page"}},
           .answer = "Failures"}};
}

}  // namespace sluice
