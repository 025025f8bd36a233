// Routes about queues: the list, one queue with statistics and configuration, its bands, groups,
// keys and tags.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "engine/execution/engine.h"
#include "engine/execution/queue_names.h"
#include "engine/queue/field_help.h"
#include "engine/queue/queue_config_fields.h"
#include "engine/queue/queue_stats.h"
#include "net/admin/api.h"
#include "net/admin/queue_list.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/io/turns.h"
#include "net/process/wall_clock.h"

namespace sluice {

namespace {

using nlohmann::json;

constexpr int64_t kMaxQueues = 1000;
constexpr int64_t kUsualQueues = 100;

json queue_line(const Exchange& exchange, const std::string& name, const RespValue& stats) {
  json line = json::object();
  put_bytes(line, "name", name);
  line["db"] = exchange.database();
  line["stats"] = resp_to_json(stats);
  return line;
}

void get_queues(Exchange& exchange) {
  QueryReader query(exchange);
  QueueListRequest request;
  request.after = read_queue_cursor(query);
  request.limit = static_cast<size_t>(query.integer("limit", 1, kMaxQueues).value_or(kUsualQueues));
  if (query.failed()) return;
  request.members["now"] = wall_ms();
  // The exchange lives as long as its list.
  request.line = [raw = &exchange](const std::string& name) -> std::optional<json> {
    const RespValue stats = raw->run({"Q.STATS", name});
    // On an error the queue is gone, or not readable for this user.
    if (stats.is_error()) return std::nullopt;
    json line = queue_line(*raw, name, stats);
    const RespValue limits =
        raw->run({"Q.CONFIG", name, "GET", "paused", "max_waiting", "max_total"});
    if (!limits.is_error()) line.update(config_to_json(limits));
    return line;
  };
  list_queues(exchange, std::move(request));
}

const std::vector<OptionRow>& rule_options() {
  static const std::vector<OptionRow> rows = {
      {"group", "GROUP", OptionRow::Type::kName},   {"group_glob", "GROUP"},
      {"key", "KEY", OptionRow::Type::kName},       {"key_glob", "KEY"},
      {"worker", "WORKER", OptionRow::Type::kName}, {"worker_glob", "WORKER"}};
  return rows;
}

// For the description of the API.
std::vector<RouteParameter> rule_parameters(std::vector<RouteParameter> others = {}) {
  const std::vector<RouteParameter> rule = {
      {"group", "string", "the rule of exactly this group"},
      {"group_glob", "string", "the rule of groups that match this glob"},
      {"key", "string", "the rule of exactly this key"},
      {"key_glob", "string", "the rule of keys that match this glob"},
      {"worker", "string", "the rule of exactly this worker"},
      {"worker_glob", "string", "the rule of workers that match this glob"}};
  others.insert(others.begin(), rule.begin(), rule.end());
  return others;
}

// Words before the verb: Q.CONFIG queue [GROUP glob | KEY glob | WORKER glob].
Words config_words(Exchange& exchange, QueryReader& query) {
  Words words = {"Q.CONFIG", exchange.path("queue")};
  query.options(rule_options(), words);
  if (words.size() > 4) {
    query.fail("key",
               "only one of group, group_glob, key, key_glob, worker and worker_glob may be given");
  }
  return words;
}

void respond_config(Exchange& exchange, Words words) {
  words.emplace_back("GET");
  const RespValue reply = exchange.run(words);
  if (!respond_error(exchange, reply)) respond_json(exchange, config_to_json(reply));
}

// The values of `with`, which may be repeated, of a route that knows these.
Words read_with(QueryReader& query, const Words& known) {
  Words words;
  query.options({{"with", ""}}, words);
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end()) query.fail("with", word, known);
  }
  return words;
}

// What each field is while nobody sets it, at the levels that have it.
json defaults_beside(const RespValue& config) {
  QueueValues values;
  values.descending = config.at("priority_order").text == "desc";
  RespValue defaults;
  defaults.kind = RespValue::Kind::kMap;
  for (const ConfigRow& field : config_fields()) {
    for (const Bytes text : {field.name, default_text(field, values)}) {
      RespValue& item = defaults.items.emplace_back();
      item.kind = RespValue::Kind::kText;
      item.text = text;
    }
  }
  return config_to_json(defaults);
}

void get_queue(Exchange& exchange) {
  QueryReader query(exchange);
  const int64_t window_ms = query.duration("window_ms", 1000, 60'000).value_or(60'000);
  const bool with_defaults = !read_with(query, {"defaults"}).empty();
  if (query.failed()) return;
  const std::string& name = exchange.path("queue");
  const RespValue stats = exchange.run({"Q.STATS", name, "WINDOW", std::to_string(window_ms)});
  if (respond_error(exchange, stats)) return;
  json line = queue_line(exchange, name, stats);
  line["now"] = wall_ms();
  const RespValue config = exchange.run_if_queue(name, {"Q.CONFIG", name, "GET"});
  const bool is_shown = !config.is_error() && !config.is_null();
  line["config"] = is_shown ? config_to_json(config) : json(nullptr);
  if (with_defaults) line["defaults"] = is_shown ? defaults_beside(config) : json(nullptr);
  respond_json(exchange, line);
}

void get_config(Exchange& exchange) {
  QueryReader query(exchange);
  const Words words = config_words(exchange, query);
  if (!query.failed()) respond_config(exchange, words);
}

// The rules of groups, keys and workers.
void get_rules(Exchange& exchange) {
  QueryReader query(exchange);
  // It has the bytes of a name.
  const auto cursor = percent_decode(query.text("cursor").value_or("0"));
  if (!cursor) query.fail("cursor", "is invalid");
  const int64_t limit = query.integer("limit", 1, 1000).value_or(100);
  if (query.failed()) return;
  const RespValue reply = exchange.run({"Q.CONFIG", exchange.path("queue"), "RULES", "CURSOR",
                                        *cursor, "COUNT", std::to_string(limit)});
  if (respond_error(exchange, reply)) return;
  json rules = json::array();
  for (const RespValue& rule : reply.items[1].items) {
    const std::string& glob = rule.items[1].text;
    json line = {{"scope", rule.items[0].text}, {"settings", config_to_json(rule.items[2])}};
    put_bytes(line, "glob", glob);
    line["name"] = nullptr;
    if (const auto name = glob_literal(glob)) put_bytes(line, "name", *name);
    rules.push_back(std::move(line));
  }
  respond_json(exchange, {{"rules", std::move(rules)},
                          {"cursor", cursor_json(percent_encode(reply.items[0].text))}});
}

// The key does not hold a queue: another type, nothing, or nothing that the user may know about.
void respond_no_queue(Exchange& exchange, const char* otherwise) {
  const RespValue config = exchange.run({"Q.CONFIG", exchange.path("queue"), "GET"});
  if (respond_error(exchange, config)) return;
  exchange.respond(problem(404, "NOQUEUE", "No such queue" + std::string(otherwise)));
}

// A mistyped name must not create a queue.
void patch_config(Exchange& exchange) {
  QueryReader query(exchange);
  const Words words = config_words(exchange, query);
  const bool create = query.boolean("create").value_or(false);
  const bool dry_run = query.boolean("dry_run").value_or(false);
  Words expected;
  query.options({{"was", "", OptionRow::Type::kTextPairs}}, expected);
  if (query.failed()) return;
  BodyReader body(exchange);
  Words fields = body.fields();
  if (body.failed()) return;
  if (fields.empty()) return respond_bad_field(exchange, {"", "no field to set"});
  isolate_if(fields);
  Words set = words;
  set.emplace_back(dry_run ? "TRY" : "SET");
  set.insert(set.end(), fields.begin(), fields.end());
  if (!expected.empty()) set.emplace_back("IF");
  set.insert(set.end(), expected.begin(), expected.end());
  const RespValue reply =
      create ? exchange.run(set) : exchange.run_if_queue(exchange.path("queue"), set);
  if (respond_error(exchange, reply)) return;
  if (reply.is_null()) return respond_no_queue(exchange, "; use create=true to create it.");
  if (dry_run) return respond_json(exchange, resp_to_json(reply));
  respond_config(exchange, words);
}

// Whether GET shows the value so: a weight has fewer digits there.
bool is_shown_as(const std::string& value, const std::string& shown) {
  if (value == shown) return true;
  const auto number = parse_double(value);
  return number && number == parse_double(shown);
}

// The problem if `shown`, a reply of Q.CONFIG … GET, is not what `was` says: fields and values. A
// rule may set nothing else.
std::optional<HttpResponse> changed_since(const RespValue& shown, const Words& was, bool is_rule) {
  std::set<std::string> named;
  for (size_t i = 0; i < was.size(); i += 2) {
    const RespValue* now = shown.find(was[i]);
    const std::string value = now == nullptr ? "" : now->text;
    if (!is_shown_as(value, was[i + 1])) return changed_problem(was[i], value);
    named.insert(was[i]);
  }
  for (size_t i = 0; is_rule && i < shown.items.size(); i += 2) {
    const std::string& field = shown.items[i].text;
    if (!named.contains(field)) return changed_problem(field, shown.items[i + 1].text);
  }
  return std::nullopt;
}

void reset_config(Exchange& exchange) {
  QueryReader query(exchange);
  Words words = config_words(exchange, query);
  Words was;
  query.options({{"was", "", OptionRow::Type::kTextPairs}}, was);
  if (query.failed()) return;
  for (size_t i = 0; i < was.size(); i += 2) {
    const ConfigRow* const row = find_config_row(was[i]);
    if (row == nullptr) return respond_bad_field(exchange, {"was", "must name fields"});
    was[i] = std::string(row->name);
    was[i + 1] = plain_value(was[i], was[i + 1]);
  }
  const bool is_rule = words.size() > 2;
  const std::string& queue = exchange.path("queue");
  const auto run = [&](const char* verb) {
    Words command = words;
    command.emplace_back(verb);
    return exchange.run_if_queue(queue, command);
  };
  RespValue reply;
  std::optional<HttpResponse> changed;
  if (was.empty()) {
    reply = run("RESET");
  } else {
    exchange.run_together([&] {
      reply = run("GET");
      if (reply.is_map()) changed = changed_since(reply, was, is_rule);
      if (reply.is_map() && !changed) reply = run("RESET");
    });
  }
  if (changed) return exchange.respond(std::move(*changed));
  if (respond_error(exchange, reply)) return;
  if (reply.is_null()) return respond_no_queue(exchange, ".");
  respond_config(exchange, words);
}

void delete_queue(Exchange& exchange) {
  QueryReader query(exchange);
  const bool dry_run = query.boolean("dry_run").value_or(false);
  const bool confirmed = query.boolean("confirm").value_or(false);
  if (query.failed()) return;
  const std::string& name = exchange.path("queue");
  const RespValue stats = exchange.run_if_queue(name, {"Q.STATS", name});
  if (respond_error(exchange, stats)) return;
  if (stats.is_null()) return respond_no_queue(exchange, ".");
  if (!dry_run && !confirmed) {
    return respond_bad_field(exchange, {"confirm",
                                        "must be true: jobs, history and configuration are "
                                        "deleted. With dry_run=true jobs are only counted"});
  }
  const RespValue reply = dry_run ? stats : exchange.run_if_queue(name, {"DEL", name});
  if (respond_error(exchange, reply)) return;
  // The queue was deleted in the meantime.
  if (reply.is_null()) return respond_no_queue(exchange, ".");
  respond_json(exchange, {{"deleted", !dry_run},
                          {"waiting", stats.at("waiting").integer},
                          {"active", stats.at("active").integer}});
}

// Q.STATS … BY: a map from name to line, as an array, since a JSON object would lose the order.
json lines_of(const RespValue& reply) {
  json lines = json::array();
  for (size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    json line = resp_to_json(reply.items[i + 1]);
    put_bytes(line, "name", reply.items[i].text);
    lines.push_back(std::move(line));
  }
  return lines;
}

void respond_lines(Exchange& exchange, const char* member, const Words& by) {
  QueryReader query(exchange);
  if (query.failed()) return;
  Words words = {"Q.STATS", exchange.path("queue"), "BY"};
  words.insert(words.end(), by.begin(), by.end());
  // Very many scopes are examined in slices.
  exchange.run_waiting(words, [self = exchange.shared_from_this(), member](const RespValue& reply) {
    if (!respond_error(*self, reply)) respond_json(*self, {{member, lines_of(reply)}});
  });
}

// Bounds of the buckets of distributions. They coincide with Histogram's, so that counts are exact:
// each millisecond up to 31, then sixteen per power of two.
const std::vector<int64_t>& bucket_bounds_ms() {
  constexpr int64_t kSteps = 16;
  constexpr int64_t kExactMs = 2 * kSteps;
  constexpr int64_t kMostMs = int64_t{1} << 40;
  static const std::vector<int64_t> bounds = [] {
    std::vector<int64_t> made;
    for (int64_t ms = 0; ms < kExactMs; ++ms) made.push_back(ms);
    for (int64_t power = kExactMs; power < kMostMs; power *= 2) {
      for (int64_t i = 1; i <= kSteps; ++i) made.push_back(power + i * (power / kSteps) - 1);
    }
    return made;
  }();
  return bounds;
}

// Pairs of a bucket's upper bound and count, without empty buckets.
json buckets_of(const BucketCounts& counts) {
  const std::vector<int64_t>& bounds = bucket_bounds_ms();
  json buckets = json::array();
  uint64_t before = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (counts.up_to[i] == before) continue;
    buckets.push_back(json::array({bounds[i], counts.up_to[i] - before}));
    before = counts.up_to[i];
  }
  return buckets;
}

struct WantedBuckets {
  bool wait = false;
  bool run = false;
};

WantedBuckets wanted_buckets(QueryReader& query) {
  const Words words = read_with(query, {"wait_buckets", "run_buckets"});
  const auto wants = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return {wants("wait_buckets"), wants("run_buckets")};
}

// Added to a line of Q.STATS … BY PRI, which only has quantiles over all time: the difference of
// two requests shows what happened in between.
void put_buckets(const QueueBuckets& buckets, Bytes name, WantedBuckets wanted, json& line) {
  const auto found = std::find_if(buckets.bands.begin(), buckets.bands.end(),
                                  [&](const BandBuckets& band) { return band.band == name; });
  const bool none = found == buckets.bands.end();
  if (wanted.wait) line["wait_buckets"] = none ? json::array() : buckets_of(found->wait_ms);
  if (wanted.run) line["run_buckets"] = none ? json::array() : buckets_of(found->run_ms);
}

void get_bands(Exchange& exchange) {
  QueryReader query(exchange);
  const WantedBuckets wanted = wanted_buckets(query);
  const bool any = wanted.wait || wanted.run;
  if (query.failed() || (any && respond_busy(exchange))) return;
  const std::string& queue = exchange.path("queue");
  // Run the command first, because it checks the user's rights.
  const RespValue reply = exchange.run({"Q.STATS", queue, "BY", "PRI"});
  if (respond_error(exchange, reply)) return;
  json lines = lines_of(reply);
  if (any) {
    Engine& engine = *exchange.service().state().engine;
    const QueueBuckets buckets =
        queue_buckets(engine, {exchange.database(), queue}, bucket_bounds_ms());
    exchange.engine().raise_gate(buckets.gate);
    for (size_t i = 0; i < lines.size(); ++i) {
      put_buckets(buckets, reply.items[2 * i].text, wanted, lines[i]);
    }
  }
  respond_json(exchange, {{"bands", std::move(lines)}});
}

// By Paused.
constexpr std::array<const char*, 4> kPausedWords = {"none", "in", "out", "all"};

json group_line(const ScopeCount& group) {
  json line = {{"pending", group.pending},       {"active", group.active},
               {"delayed", group.delayed},       {"blocked", group.blocked},
               {"waiting", group.waiting},       {"slots", group.slots},
               {"max_active", group.max_active}, {"utilization", nullptr}};
  if (group.max_active != 0) {
    line["utilization"] = static_cast<double>(group.slots) / static_cast<double>(group.max_active);
  }
  put_bytes(line, "name", group.name);
  return line;
}

// The groups with the most jobs. A million groups take many turns.
class GroupList {
 public:
  explicit GroupList(Exchange& exchange)
      : exchange_(exchange.shared_from_this()),
        queue_{exchange.database(), exchange.path("queue")} {}

  // Reads one piece. Returns false after the last one.
  bool go_on();

 private:
  static constexpr size_t kMostGroups = 1000;

  const std::shared_ptr<Exchange> exchange_;
  const QueueName queue_;
  LargestScopes largest_{ConfigLevel::kGroup, kMostGroups};
  const std::vector<ScopeCount>* groups_ = nullptr;  // all of them have been read
  size_t told_ = 0;
  JsonList list_{"groups"};
};

bool GroupList::go_on() {
  constexpr size_t kLinesAtOnce = 50;
  if (exchange_->cut_off() || respond_busy(*exchange_)) return false;
  if (groups_ == nullptr) {
    if (!largest_.go_on(*exchange_->service().state().engine, queue_)) {
      groups_ = &largest_.in_order();
    }
    return true;
  }
  const size_t end = std::min(groups_->size(), told_ + kLinesAtOnce);
  for (; told_ < end; ++told_) {
    const ScopeCount& group = (*groups_)[told_];
    json line = group_line(group);
    line["paused"] = kPausedWords.at(static_cast<size_t>(group.paused));
    list_.add(line);
  }
  if (told_ < groups_->size()) return true;
  if (largest_.rest()) {
    ScopeCount rest = *largest_.rest();
    rest.name = QueueStats::kRestName;
    list_.add(group_line(rest));
  }
  exchange_->engine().raise_gate(largest_.gate());
  list_.respond(*exchange_);
  return false;
}

void get_groups(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed()) return;
  // The command reports missing rights and keys of another type.
  const RespValue first =
      exchange.run({"Q.STATS", exchange.path("queue"), "BY", "GROUP", "CURSOR", "0", "COUNT", "1"});
  if (respond_error(exchange, first)) return;
  const auto list = std::make_shared<GroupList>(exchange);
  work_in_turns(exchange.engine().thread(), [list] { return list->go_on(); });
}

void get_queue_group(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed()) return;
  const std::string& name = exchange.path("group");
  const RespValue reply = exchange.run({"Q.STATS", exchange.path("queue"), "GROUP", name});
  if (respond_error(exchange, reply)) return;
  json line = resp_to_json(reply);
  put_bytes(line, "name", name);
  respond_json(exchange, line);
}

void get_keys(Exchange& exchange) { respond_lines(exchange, "keys", {"KEY"}); }

void get_tag(Exchange& exchange) {
  respond_lines(exchange, "values", {"TAG", exchange.path("tag")});
}

constexpr const char* kQueue = "/api/v1/queues/{queue}";

}  // namespace

std::vector<Route> queue_routes() {
  return {
      {.pattern = "/api/v1/queues",
       .handler = get_queues,
       .summary = "The queues of a database with their statistics, by name.",
       .parameters = {kCursorParameter, kLimitParameter},
       .answer = "Queues"},
      {.pattern = kQueue,
       .handler = get_queue,
       .summary = "A queue's statistics and configuration; a missing queue is empty, its "
                  "config null.",
       .parameters = {{"window_ms", "duration", "measuring time of rates, 1000 to 60000"},
                      {"with", "string", "defaults: also those of the configuration"}},
       .answer = "Queue"},
      {.pattern = "/api/v1/queues/{queue}/config",
       .handler = get_config,
       .summary = "The configuration of a queue, or of a rule for groups or keys.",
       .parameters = rule_parameters(),
       .answer = "Config"},
      {.pattern = "/api/v1/queues/{queue}/rules",
       .handler = get_rules,
       .summary = "The rules of the configuration: for groups, keys and workers.",
       .parameters = {kCursorParameter, kLimitParameter},
       .answer = "Rules"},
      {.method = HttpMethod::patch,
       .pattern = kQueue,
       .access = Access::kOperate,
       .handler = patch_config,
       .summary = "Sets fields of the configuration, all of them or none.",
       .parameters =
           rule_parameters({{"create", "boolean", "create the queue if it does not exist"},
                            {"dry_run", "boolean",
                             "only tell what is above the new limits, and what is deleted at once"},
                            {"was", "string",
                             "field=value: 412 unless the field has this value now; may be "
                             "repeated"}}),
       .body = "Config",
       .answer = "ConfigOrTrial",
       .problems = {404, 412}},
      {.method = HttpMethod::delete_,
       .pattern = "/api/v1/queues/{queue}/config",
       .access = Access::kOperate,
       .handler = reset_config,
       .summary = "Resets the queue's own fields to their defaults, or removes a rule.",
       .parameters = rule_parameters(
           {{"was", "string",
             "field=value: 412 unless the field has this value now, and a rule no other field; may "
             "be repeated"}}),
       .answer = "Config",
       .problems = {404, 412}},
      {.method = HttpMethod::delete_,
       .pattern = kQueue,
       .access = Access::kOperate,
       .handler = delete_queue,
       .summary = "Deletes a queue: its jobs, its history, its configuration.",
       .parameters = {{"confirm", "boolean", "true; required unless dry_run is given"},
                      {"dry_run", "boolean", "only count the jobs that would be deleted"}},
       .answer = "Deleted",
       .problems = {404}},
      {.pattern = "/api/v1/queues/{queue}/bands",
       .handler = get_bands,
       .summary = "Statistics by band, the most urgent first.",
       .parameters = {{"with", "string", "wait_buckets or run_buckets; may be repeated"}},
       .answer = "Bands"},
      {.pattern = "/api/v1/queues/{queue}/groups",
       .handler = get_groups,
       .summary =
           "The 1,000 groups with the most jobs, in descending order, each with its `paused`; "
           "`*` is the sum of the others.",
       .answer = "Groups"},
      {.pattern = "/api/v1/queues/{queue}/groups/{group}",
       .handler = get_queue_group,
       .summary = "A group's jobs and slots.",
       .answer = "Group"},
      {.pattern = "/api/v1/queues/{queue}/keys",
       .handler = get_keys,
       .summary = "The 1,000 keys with the most slots in use; `*` is the sum of the others.",
       .answer = "Keys"},
      {.pattern = "/api/v1/queues/{queue}/tags/{tag}",
       .handler = get_tag,
       .summary = "Statistics by the values of a tag.",
       .answer = "TagValues"},
  };
}

}  // namespace sluice
