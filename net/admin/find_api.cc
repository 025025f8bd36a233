// GET /api/v1/find: queues, groups, jobs and tags by a text, in all queues of a database that the
// user may read.
#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/limits.h"
#include "engine/execution/engine.h"
#include "engine/execution/queue_names.h"
#include "engine/queue/job_texts.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;

// The most that are shown of each kind.
constexpr size_t kMostFound = 20;

// Visits the queues one by one, then looks further in those with more groups; in several turns.
class Finder {
 public:
  Finder(Exchange& exchange, std::string text)
      : exchange_(exchange.shared_from_this()), text_(std::move(text)) {}

  // Does one piece. Returns false after the last one.
  bool go_on();

 private:
  // Groups that are looked at in one hold of a shard's lock.
  static constexpr size_t kGroupsAtOnce = 500;
  // The best fit first.
  enum class Fit : uint8_t { kWhole, kBegin, kPart };
  struct Unfinished {
    std::string queue;
    uint64_t cursor = 0;
  };

  Engine& engine() const { return *exchange_->service().state().engine; }
  // Whether another one is shown; if not, the answer is not complete.
  bool has_room(const json& found);
  // The next queue; false after the last one.
  bool visit_next();
  void visit(const std::string& queue);
  void find_job(const std::string& queue);
  void find_groups(const std::string& queue, uint64_t cursor);
  void add_group(const std::string& queue, const std::string& group);
  void add_tag(const std::string& queue, const FoundTag& tag);
  json best_queues();
  void respond();

  const std::shared_ptr<Exchange> exchange_;
  const std::string text_;
  std::optional<std::string> last_;     // the last name that was read
  std::vector<std::string> names_;      // the next names, from the back
  std::vector<Unfinished> unfinished_;  // whose groups have not all been looked at
  std::vector<std::pair<Fit, std::string>> queues_;
  json groups_ = json::array();
  json jobs_ = json::array();
  json tags_ = json::array();
  size_t looked_at_ = 0;
  bool complete_ = true;
};

bool Finder::go_on() {
  if (exchange_->cut_off() || respond_busy(*exchange_)) return false;
  if (visit_next()) return true;
  const bool further = looked_at_ < kMaxExamined && groups_.size() < kMostFound;
  if (further && !unfinished_.empty()) {
    const Unfinished next = std::move(unfinished_.back());
    unfinished_.pop_back();
    find_groups(next.queue, next.cursor);
    return true;
  }
  respond();
  return false;
}

bool Finder::visit_next() {
  constexpr size_t kNamesAtOnce = 64;
  if (names_.empty()) {
    names_ = queue_names(engine(), exchange_->database(), last_ ? &*last_ : nullptr, kNamesAtOnce);
    std::reverse(names_.begin(), names_.end());
  }
  if (names_.empty()) return false;
  last_ = std::move(names_.back());
  names_.pop_back();
  visit(*last_);
  return true;
}

void Finder::visit(const std::string& queue) {
  // On an error the queue is gone, or not readable for this user.
  const RespValue group = exchange_->run({"Q.STATS", queue, "GROUP", text_});
  if (group.is_error()) return;
  if (contains_ignore_case(queue, text_)) {
    const bool begins = queue.starts_with(text_);
    queues_.emplace_back(queue == text_ ? Fit::kWhole : begins ? Fit::kBegin : Fit::kPart, queue);
  }
  const FoundInQueue found = find_in_queue(engine(), {exchange_->database(), queue}, text_);
  exchange_->engine().raise_gate(found.gate);
  if (found.has_job) find_job(queue);
  if (found.tag) add_tag(queue, *found.tag);
  if (found.has_group) add_group(queue, text_);
  if (looked_at_ < kMaxExamined && groups_.size() < kMostFound) {
    find_groups(queue, 0);
  } else if (found.has_groups) {
    complete_ = false;
  }
}

bool Finder::has_room(const json& found) {
  if (found.size() < kMostFound) return true;
  complete_ = false;
  return false;
}

void Finder::add_tag(const std::string& queue, const FoundTag& tag) {
  if (!has_room(tags_)) return;
  json line = {{"count", tag.jobs}, {"added", tag.added}};
  put_bytes(line, "queue", queue);
  put_bytes(line, "tag", text_);
  tags_.push_back(std::move(line));
}

void Finder::find_job(const std::string& queue) {
  if (!has_room(jobs_)) return;
  const RespValue job = exchange_->run({"Q.GET", queue, text_});
  if (!job.is_map()) return;
  json line = json::object();
  put_bytes(line, "queue", queue);
  put_value(line, "id", job.at("id"));
  put_value(line, "state", job.at("state"));
  jobs_.push_back(std::move(line));
}

void Finder::find_groups(const std::string& queue, uint64_t cursor) {
  const FoundGroups found =
      find_groups_of(engine(), {exchange_->database(), queue}, text_, cursor, kGroupsAtOnce);
  exchange_->engine().raise_gate(found.gate);
  looked_at_ += found.looked_at;
  for (const std::string& group : found.names) {
    // That one was found by its whole name.
    if (group != text_) add_group(queue, group);
  }
  if (found.cursor != 0) unfinished_.push_back({queue, found.cursor});
}

void Finder::add_group(const std::string& queue, const std::string& group) {
  if (!has_room(groups_)) return;
  const RespValue stats = exchange_->run({"Q.STATS", queue, "GROUP", group});
  if (stats.is_error()) return;
  json line = {{"waiting", stats.at("waiting").integer}, {"active", stats.at("active").integer}};
  put_bytes(line, "queue", queue);
  put_bytes(line, "group", group);
  groups_.push_back(std::move(line));
}

json Finder::best_queues() {
  // They come in the order of their names.
  std::stable_sort(queues_.begin(), queues_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  json lines = json::array();
  for (const auto& [fit, queue] : queues_) {
    if (!has_room(lines)) break;
    const RespValue stats = exchange_->run({"Q.STATS", queue});
    if (stats.is_error()) continue;
    json line = json::object();
    for (const char* name : {"waiting", "active", "failed"}) line[name] = stats.at(name).integer;
    put_bytes(line, "queue", queue);
    lines.push_back(std::move(line));
  }
  return lines;
}

void Finder::respond() {
  complete_ = complete_ && unfinished_.empty();
  json queues = best_queues();
  respond_json(*exchange_, {{"queues", std::move(queues)},
                            {"groups", std::move(groups_)},
                            {"jobs", std::move(jobs_)},
                            {"tags", std::move(tags_)},
                            {"looked_at", looked_at_},
                            {"complete", complete_}});
}

void find(Exchange& exchange) {
  QueryReader query(exchange);
  const std::string text = query.text("q").value_or("");
  if (text.empty() || text.size() > kMaxNameBytes) query.fail("q", "must have 1 to 512 bytes");
  if (query.failed()) return;
  const auto finder = std::make_shared<Finder>(exchange, text);
  work_in_turns(exchange.engine().thread(), [finder] { return finder->go_on(); });
}

}  // namespace

std::vector<Route> find_routes() {
  return {{.pattern = "/api/v1/find",
           .handler = find,
           .summary = "Queues by a part of their name, groups by its beginning, jobs by their id, "
                      "tags as name=value; at most 20 of each.",
           .parameters = {{"q", "string", "the text, 1 to 512 bytes"}},
           .answer = "Found"}};
}

}  // namespace sluice
