// Routes about workers: those of a queue with their leases, and those of all queues.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/base/limits.h"
#include "net/admin/api.h"
#include "net/admin/queue_list.h"
#include "net/admin/routes.h"

namespace sluice {

namespace {

using nlohmann::json;

// A job's lease, as shown in its worker's line.
json lease_of(const RespValue& job) {
  json lease = json::object();
  for (const char* name :
       {"id", "lease", "deadline", "started", "attempts", "cancel", "progress"}) {
    put_value(lease, name, job.at(name));
  }
  return lease;
}

// Which workers are shown besides those of the leases.
enum class Others : uint8_t { kNone, kIdle, kAll };

// The workers of a page, by name.
class WorkerPage {
 public:
  // A job's lease. The worker of a pop without a name is null; no worker's name is empty.
  void add_lease(const RespValue& job) {
    const RespValue& name = job.at("worker");
    worker(name.text, name)["leases"].push_back(lease_of(job));
  }
  // A line of Q.STATS ... BY WORKER.
  void add_line(const RespValue& name, const RespValue& line, Others others) {
    const bool is_idle = line.at("active").integer == 0;
    const bool is_shown = others == Others::kAll || (others == Others::kIdle && is_idle);
    if (!places_.contains(name.text) && !is_shown) return;
    worker(name.text, name).update(resp_to_json(line));
  }
  json take() { return std::move(workers_); }

 private:
  json& worker(const std::string& key, const RespValue& name) {
    const auto [place, is_new] = places_.try_emplace(key, workers_.size());
    if (is_new) {
      json made = {{"leases", json::array()}};
      put_value(made, "name", name);
      workers_.push_back(std::move(made));
    }
    return workers_[place->second];
  }

  json workers_ = json::array();
  std::unordered_map<std::string, size_t> places_;
};

struct WorkersOfQueue {
  json workers = json::array();
  std::string cursor;      // of the next leases; "0": these are all
  bool more = false;       // there are workers without a line
  RespValue refused = {};  // an error: nothing was read
};

WorkersOfQueue read_workers(Exchange& exchange, const std::string& queue, const std::string& cursor,
                            int64_t limit, Others others) {
  WorkersOfQueue found;
  RespValue leases = exchange.run({"Q.LIST", queue, "WHERE", "STATE", "active", "BY", "DEADLINE",
                                   "CURSOR", cursor, "COUNT", std::to_string(limit)});
  if (leases.is_error()) {
    found.refused = std::move(leases);
    return found;
  }
  WorkerPage page;
  for (const RespValue& job : leases.items[1].items) page.add_lease(job);
  RespValue lines = exchange.run({"Q.STATS", queue, "BY", "WORKER"});
  if (lines.is_error()) {
    found.refused = std::move(lines);
    return found;
  }
  // A line behind these is for the others.
  const size_t end = std::min(lines.items.size() / 2, size_t{kMaxPageCount});
  found.more = lines.items.size() / 2 > end;
  for (size_t i = 0; i < end; ++i) {
    page.add_line(lines.items[2 * i], lines.items[2 * i + 1], others);
  }
  found.workers = page.take();
  found.cursor = leases.items[0].text;
  return found;
}

// Workers with their leases, ordered by deadline, then those without any.
void get_workers(Exchange& exchange) {
  QueryReader query(exchange);
  const std::string cursor = query.text("cursor").value_or("0");
  const int64_t limit = query.integer("limit", 1, 1000).value_or(1000);
  if (query.failed()) return;
  WorkersOfQueue found = read_workers(exchange, exchange.path("queue"), cursor, limit,
                                      cursor == "0" ? Others::kIdle : Others::kNone);
  if (respond_error(exchange, found.refused)) return;
  respond_json(exchange,
               {{"workers", std::move(found.workers)}, {"cursor", cursor_json(found.cursor)}});
}

// The queues that have workers, each with all of them and the leases that end first.
void get_all_workers(Exchange& exchange) {
  // A queue is read in one piece.
  constexpr int64_t kMostLeases = 20;
  QueryReader query(exchange);
  QueueListRequest request;
  request.after = read_queue_cursor(query);
  request.limit = static_cast<size_t>(query.integer("limit", 1, 1000).value_or(100));
  if (query.failed()) return;
  // The exchange lives as long as its list.
  request.line = [raw = &exchange](const std::string& name) -> std::optional<json> {
    WorkersOfQueue found = read_workers(*raw, name, "0", kMostLeases, Others::kAll);
    // On an error the queue is gone, or not readable for this user.
    if (found.refused.is_error() || found.workers.empty()) return std::nullopt;
    json line = {{"workers", std::move(found.workers)}, {"more", found.more}};
    put_bytes(line, "name", name);
    return line;
  };
  list_queues(exchange, std::move(request));
}

}  // namespace

std::vector<Route> worker_list_routes() {
  return {
      {.pattern = "/api/v1/queues/{queue}/workers",
       .handler = get_workers,
       .summary = "Workers and their leases; those without one are on the first page.",
       .parameters = {kCursorParameter,
                      {"limit", "integer", "at most this many leases, 1 to 1000"}},
       .answer = "Workers"},
      {.pattern = "/api/v1/workers",
       .handler = get_all_workers,
       .summary = "The queues of a database that have workers, by name, each with its workers and "
                  "the 20 leases that end first.",
       .parameters = {kCursorParameter,
                      {"limit", "integer", "at most this many queues, 1 to 1000"}},
       .answer = "AllWorkers"},
  };
}

}  // namespace sluice
