// GET /api/v1/changes: who changed what over HTTP (net/http/change_log.h).
#include <map>
#include <utility>

#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"

namespace sluice {

namespace {

using nlohmann::json;

// Whether the requester may know of a change, which is one of a queue or of the server.
class ChangeRights {
 public:
  explicit ChangeRights(Exchange& exchange) : exchange_(exchange) {}

  bool may_read(const Change& change) {
    const Bytes name = change.words[0];
    if (!name.starts_with("Q.") && name != "DEL") return true;
    const auto [known, is_new] =
        queues_.try_emplace(std::pair(change.database, change.words.at(1)));
    if (is_new) {
      exchange_.select(change.database);
      const RespValue stats = exchange_.run({"Q.STATS", change.words[1]});
      known->second = !stats.is_error() || stats.text.starts_with("WRONGTYPE");
    }
    return known->second;
  }

 private:
  Exchange& exchange_;
  std::map<std::pair<int, std::string>, bool> queues_;
};

json change_line(const Change& change) {
  json words = json::array();
  for (const std::string& word : change.words) words.push_back(text_to_json(word));
  json line = {{"at", change.at_ms},
               {"token", nullptr},
               {"db", change.database},
               {"words", std::move(words)},
               {"count", change.count}};
  put_bytes(line, "user", change.user);
  if (!change.token.empty()) line["token"] = change.token;
  return line;
}

void get_changes(Exchange& exchange) {
  constexpr auto kMost = static_cast<int64_t>(ChangeLog::kMost);
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  const int64_t limit = query.integer("limit", 1, kMost).value_or(kMost);
  if (query.failed()) return;
  ChangeRights rights(exchange);
  JsonList list("changes");
  for (const Change& change : exchange.service().changes().newest()) {
    if (static_cast<int64_t>(list.size()) == limit) break;
    if (rights.may_read(change)) list.add(change_line(change));
  }
  list.respond(exchange);
}

}  // namespace

std::vector<Route> change_routes() {
  return {{.pattern = "/api/v1/changes",
           .handler = get_changes,
           .summary = "What was changed over HTTP since the server's start, and by whom; the "
                      "newest first.",
           .parameters = {{"limit", "integer", "at most this many, 1 to 200"}},
           .answer = "Changes",
           .problems = {422}}};
}

}  // namespace sluice
