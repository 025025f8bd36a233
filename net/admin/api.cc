#include "net/admin/api.h"

#include <algorithm>
#include <chrono>

#include "engine/base/durations.h"
#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "engine/execution/engine.h"
#include "engine/queue/field_help.h"
#include "engine/queue/job_id.h"
#include "engine/queue/queue_error.h"
#include "net/admin/group_state.h"
#include "net/http/http_service.h"
#include "net/http/stream_budget.h"

namespace sluice {

namespace {

using nlohmann::json;
using OptionType = OptionRow::Type;

constexpr const char* kBase64Suffix = "_base64";

void begin_option(Exchange& exchange, const OptionRow& row, Words& words) {
  if (*row.word == '\0') return;
  exchange.name_option(row.word, row.name);
  words.emplace_back(row.word);
}

void put_word(Exchange& exchange, const OptionRow& row, std::string value, Words& words) {
  begin_option(exchange, row, words);
  words.push_back(row.type == OptionType::kName ? glob_escape(value) : std::move(value));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The duration in milliseconds, for a text with units.
std::string plain_duration(const std::string& text) {
  const auto ms = parse_duration_ms(text);
  return ms ? std::to_string(*ms) : text;
}

std::string range_text(const char* what, int64_t low, int64_t high) {
  const std::string text = "must be " + std::string(what);
  // The command has limits of its own.
  if (low == INT64_MIN) return text;
  return text + " from " + std::to_string(low) + " to " + std::to_string(high);
}

constexpr const char* kIntegerForm = "an integer";
constexpr const char* kDurationForm = "milliseconds, or a text with units (250ms, 5s, 1h30m)";

std::optional<int64_t> integer_of(const json& value) {
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
  return fits ? std::optional(value.get<int64_t>()) : std::nullopt;
}

BadField wrong_word(Bytes field, Bytes given, std::vector<std::string> allowed) {
  BadField bad{std::string(field), "must be " + listed(allowed)};
  bad.nearest = nearest_word(given, allowed);
  bad.why += suggestion(bad.nearest);
  bad.allowed = std::move(allowed);
  return bad;
}

// Describes a member or parameter that is not supported.
BadField unknown_name(const std::string& name, const std::vector<std::string>& asked_for) {
  BadField bad{name, "is not supported"};
  for (const std::string& each : asked_for) {
    if (!each.ends_with(kBase64Suffix) && !contains(bad.allowed, each)) bad.allowed.push_back(each);
  }
  bad.nearest = nearest_word(name, bad.allowed);
  bad.why += suggestion(bad.nearest);
  return bad;
}

HttpResponse problem_of_field(const BadField& bad) {
  json members = {{"type", "urn:sluice:problem:badfield"},
                  {"title", std::string(reason_phrase(422))},
                  {"status", 422},
                  {"code", "BADFIELD"},
                  {"field", text_to_json(bad.field)},
                  {"detail", bad.why}};
  for (const std::string& word : bad.allowed) members["allowed"].push_back(text_to_json(word));
  if (!bad.nearest.empty()) members["nearest"] = text_to_json(bad.nearest);
  HttpResponse response;
  response.status = 422;
  response.content_type = "application/problem+json";
  response.body = dump_json(members);
  return response;
}

// Explains a command's error like sluice does.
BadField explain(Exchange& exchange, Bytes error) {
  constexpr Bytes kHint = "field=";
  const size_t at = error.find(kHint);
  const Bytes rest = error.substr(std::min(at, error.size() - kHint.size()) + kHint.size());
  const std::string field = percent_decode(rest.substr(0, rest.find(' '))).value_or("");
  const Words command = exchange.refused();
  std::vector<std::string> bands;
  if (takes_band(field) && command.size() > 1) {
    const RespValue reply = exchange.run({"Q.CONFIG", command[1], "GET", "bands"});
    if (reply.is_map()) bands = band_names(reply.at("bands").text);
  }
  FieldAdvice advice = advise(field, command, bands, exchange.option_names());
  std::string why = advice_text(advice);
  return {std::move(advice.field), std::move(why), std::move(advice.allowed),
          std::move(advice.nearest)};
}

}  // namespace

void append_words(std::initializer_list<const Words*> parts, Words& words) {
  for (const Words* part : parts) words.insert(words.end(), part->begin(), part->end());
}

void respond_json(Exchange& exchange, const json& value, unsigned status) {
  HttpResponse response;
  response.status = status;
  response.body = dump_json(value);
  exchange.respond(std::move(response));
}

void PieceSize::note(size_t jobs, size_t bytes) {
  constexpr size_t kBytesAtOnce = 64 << 10;
  if (jobs == 0) return;
  const size_t fitting = std::max<size_t>(1, kBytesAtOnce * jobs / bytes);
  next_ = std::min({2 * next_, fitting, most_});
}

size_t text_bytes(const RespValue& value) {
  size_t bytes = value.text.size();
  for (const RespValue& item : value.items) bytes += text_bytes(item);
  return bytes;
}

json cursor_json(const std::string& cursor) { return cursor == "0" ? json(nullptr) : json(cursor); }

void respond_count(Exchange& exchange, int64_t count, const std::string& cursor, bool dry_run) {
  respond_json(exchange, {{"count", count}, {"cursor", cursor_json(cursor)}, {"dry_run", dry_run}});
}

HttpResponse changed_problem(Bytes field, Bytes value) {
  return problem_of_error(QueueError("CHANGED").with("field", field).with("value", value).text());
}

void JsonList::put(const json& members) {
  for (const auto& [name, value] : members.items()) {
    others_ += dump_json(name) + ":" + dump_json(value) + ",";
  }
}

void JsonList::add(const json& element) { add_text(dump_json(element)); }

void JsonList::add(const RespValue& element) {
  if (size_++ != 0) elements_ += ',';
  append_json(element, elements_);
}

void JsonList::add_text(Bytes element) {
  if (size_++ != 0) elements_ += ',';
  elements_ += element;
}

void JsonList::respond(Exchange& exchange, const json& cursor) {
  respond_behind(exchange, "{\"cursor\":" + dump_json(cursor) + ",");
}

void JsonList::respond(Exchange& exchange) { respond_behind(exchange, "{"); }

void JsonList::respond_behind(Exchange& exchange, const std::string& begin) {
  HttpResponse response;
  response.body.reserve(begin.size() + others_.size() + elements_.size() + 64);
  response.body.append(begin).append(others_).append("\"").append(member_).append("\":[");
  response.body.append(elements_).append("]}");
  exchange.respond(std::move(response));
}

std::optional<HttpResponse> problem_of_reply(Exchange& exchange, const RespValue& reply) {
  if (!reply.is_error()) return std::nullopt;
  if (Bytes(reply.text).starts_with("READONLY ")) {
    return not_primary(primary_url(exchange.service().server().group()));
  }
  if (!Bytes(reply.text).starts_with("BADFIELD field=")) return problem_of_error(reply.text);
  return problem_of_field(explain(exchange, reply.text));
}

bool respond_error(Exchange& exchange, const RespValue& reply) {
  auto refused = problem_of_reply(exchange, reply);
  if (refused) exchange.respond(std::move(*refused));
  return refused.has_value();
}

bool respond_where(Exchange& exchange) {
  if (!equals_ignore_case(exchange.path("id"), kWhereWord)) return false;
  respond_bad_field(exchange, {"id", kNoJobId});
  return true;
}

bool respond_busy(Exchange& exchange) {
  if (const auto refusal = exchange.engine().refusal_of_data()) {
    return respond_error(exchange, *refusal);
  }
  const Engine& engine = *exchange.service().state().engine;
  if (!engine.script_busy.load(std::memory_order_relaxed)) return false;
  exchange.respond(problem_of_error("BUSY"));
  return true;
}

HttpResponse queue_gone() { return problem(409, "QUEUEGONE", "The queue was deleted."); }

void when_in_budget(Exchange& exchange, SteadyTimer& timer, std::function<void()> next) {
  constexpr auto kRetry = std::chrono::milliseconds(10);
  if (exchange.cut_off()) return;
  if (exchange.budget().allows()) return next();
  timer.expires_after(kRetry);
  timer.async_wait([&exchange, &timer, next = std::move(next)](const error_code& error) {
    if (!error) when_in_budget(exchange, timer, next);
  });
}

void respond_bad_field(Exchange& exchange, const BadField& bad) {
  exchange.respond(problem_of_field(bad));
}

// --- Bodies and queries ---

void FieldReader::fail(Bytes field, Bytes why) {
  if (!bad_) bad_ = {std::string(field), std::string(why)};
}

void FieldReader::fail(Bytes field, Bytes given, std::vector<std::string> allowed) {
  if (!bad_) bad_ = wrong_word(field, given, std::move(allowed));
}

std::optional<int64_t> FieldReader::in_range(const std::string& name, const char* form,
                                             std::optional<int64_t> number, int64_t low,
                                             int64_t high) {
  if (number && *number >= low && *number <= high) return number;
  fail(name, range_text(form, low, high));
  return std::nullopt;
}

// --- Bodies ---

json body_of(const Exchange& exchange) {
  const std::string& body = exchange.request().body;
  return body.empty() ? json::object() : parse_json(body);
}

BodyReader::BodyReader(Exchange& exchange, json members)
    : FieldReader(exchange), members_(std::move(members)), malformed_(!members_.is_object()) {
  if (malformed_) members_ = json::object();
}

const json* BodyReader::take(const std::string& name) {
  taken_.push_back(name);
  const auto found = members_.find(name);
  if (found == members_.end()) return nullptr;
  return found->is_null() ? nullptr : &*found;
}

std::optional<std::string> BodyReader::text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  const bool wrapped = value.is_object() && value.size() == 1 && value.contains("base64");
  if (!wrapped || !value["base64"].is_string()) return std::nullopt;
  return from_base64(value["base64"].get<std::string>());
}

std::optional<std::string> BodyReader::bytes(const std::string& name) {
  const json* plain = take(name);
  const json* coded = take(name + kBase64Suffix);
  std::optional<std::string> value;
  if (coded != nullptr) {
    if (coded->is_string()) value = from_base64(coded->get<std::string>());
    if (!value || plain != nullptr)
      fail(name + kBase64Suffix, "must be base64, without the plain member beside it");
  } else if (plain != nullptr) {
    value = text_of(*plain);
    if (!value) fail(name, "must be a string");
  }
  return value;
}

std::optional<std::string> BodyReader::text(const std::string& name) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail(name, "must be a string");
  return std::nullopt;
}

std::optional<int64_t> BodyReader::integer(const std::string& name, int64_t low, int64_t high) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  return in_range(name, kIntegerForm, integer_of(*value), low, high);
}

std::optional<int64_t> BodyReader::duration(const std::string& name, int64_t low, int64_t high) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  const auto ms =
      value->is_string() ? parse_duration_ms(value->get<std::string>()) : integer_of(*value);
  return in_range(name, kDurationForm, ms, low, high);
}

std::optional<bool> BodyReader::boolean(const std::string& name) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "must be true or false");
  return std::nullopt;
}

std::optional<json> BodyReader::array(const std::string& name) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_array()) return *value;
  fail(name, "must be an array");
  return std::nullopt;
}

std::optional<BodyReader> BodyReader::object(const std::string& name) {
  const json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return BodyReader(exchange_, *value);
  fail(name, "must be an object");
  return std::nullopt;
}

void BodyReader::option(const OptionRow& row, Words& words) {
  if (row.type == OptionType::kInteger) {
    const auto value = integer(row.name, INT64_MIN, INT64_MAX);
    if (value) put_word(exchange_, row, std::to_string(*value), words);
    return;
  }
  if (row.type == OptionType::kDuration) {
    const auto value = duration(row.name, INT64_MIN, INT64_MAX);
    if (value) put_word(exchange_, row, std::to_string(*value), words);
    return;
  }
  if (row.type == OptionType::kText || row.type == OptionType::kName) {
    const auto value = bytes(row.name);
    if (value) put_word(exchange_, row, *value, words);
    return;
  }
  const json* value = take(row.name);
  if (value == nullptr) return;
  const bool pairs = row.type == OptionType::kTextPairs;
  const bool fits = pairs ? value->is_object() : value->is_array();
  if (!fits || (row.type == OptionType::kPair && value->size() != 2)) {
    return fail(row.name, pairs ? "must be an object of strings" : "must be an array");
  }
  if (row.type == OptionType::kPair) begin_option(exchange_, row, words);
  for (const auto& [name, item] : value->items()) {
    const auto text = text_of(item);
    if (!text) return fail(row.name, "must hold strings");
    if (pairs) {
      put_word(exchange_, row, name, words);
      words.push_back(*text);
    } else if (row.type == OptionType::kPair) {
      words.push_back(plain_duration(*text));
    } else {
      put_word(exchange_, row, *text, words);
    }
  }
}

void BodyReader::options(const std::vector<OptionRow>& rows, Words& words) {
  for (const OptionRow& row : rows) option(row, words);
}

Words BodyReader::fields() {
  Words words;
  for (const auto& [name, value] : members_.items()) {
    taken_.push_back(name);
    if (value.is_null()) continue;
    words.push_back(name);
    if (value.is_number_float()) {
      words.push_back(format_double(value.get<double>()));
    } else if (value.is_boolean()) {
      words.push_back(value.get<bool>() ? "on" : "off");
    } else if (const auto text = text_of(value)) {
      words.push_back(plain_value(name, *text));
    } else {
      fail(name, "must be a plain value");
    }
  }
  return words;
}

void BodyReader::at_most_one(std::initializer_list<const char*> names) {
  const char* other = nullptr;
  for (const char* name : names) {
    if (take(name) == nullptr) continue;
    if (other != nullptr) return fail(name, "cannot be combined with " + std::string(other));
    other = name;
  }
}

bool BodyReader::knows_all() const {
  return std::all_of(members_.items().begin(), members_.items().end(),
                     [&](const auto& member) { return contains(taken_, member.key()); });
}

std::optional<HttpResponse> BodyReader::problem() {
  if (malformed_) {
    return sluice::problem(400, "BADJSON",
                           "The body is not a JSON object, or is nested too deeply.");
  }
  for (const auto& [name, value] : members_.items()) {
    if (!bad_ && !others_allowed_ && !contains(taken_, name)) bad_ = unknown_name(name, taken_);
  }
  return bad_ ? std::optional(problem_of_field(*bad_)) : std::nullopt;
}

bool BodyReader::failed() {
  auto refused = problem();
  if (refused) exchange_.respond(std::move(*refused));
  return refused.has_value();
}

// --- Queries ---

QueryReader::QueryReader(Exchange& exchange, Selects selects) : FieldReader(exchange) {
  if (selects == Selects::kNothing) return;
  exchange.select(static_cast<int>(integer("db", 0, kDatabases - 1).value_or(0)));
}

std::optional<std::string> QueryReader::text(const std::string& name) {
  taken_.push_back(name);
  const std::string* value = exchange_.request().parameter(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<int64_t> QueryReader::integer(const std::string& name, int64_t low, int64_t high) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return in_range(name, kIntegerForm, parse_i64(*value), low, high);
}

std::optional<int64_t> QueryReader::duration(const std::string& name, int64_t low, int64_t high) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  return in_range(name, kDurationForm, parse_duration_ms(*value), low, high);
}

std::optional<bool> QueryReader::boolean(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  if (*value != "true" && *value != "false") fail(name, "must be true or false");
  return *value == "true";
}

void QueryReader::options(const std::vector<OptionRow>& rows, Words& words) {
  for (const OptionRow& row : rows) {
    taken_.emplace_back(row.name);
    for (const auto& [name, value] : exchange_.request().query) {
      if (name != row.name) continue;
      if (row.type == OptionType::kTextPairs) {
        const size_t equals = value.find('=');
        if (equals == std::string::npos) fail(name, "must be name=value");
        put_word(exchange_, row, value.substr(0, equals), words);
        words.push_back(equals == std::string::npos ? "" : value.substr(equals + 1));
      } else {
        put_word(exchange_, row, row.type == OptionType::kDuration ? plain_duration(value) : value,
                 words);
      }
    }
  }
}

void read_progress_bytes(QueryReader& query, Words& words) {
  const auto bytes = query.integer("progress_bytes", 0, kMaxExact);
  if (bytes) words.insert(words.end(), {"PROGRESS", std::to_string(*bytes)});
}

bool QueryReader::failed() {
  for (const auto& [name, value] : exchange_.request().query) {
    if (!bad_ && !contains(taken_, name)) bad_ = unknown_name(name, taken_);
  }
  if (!bad_) return false;
  respond_bad_field(exchange_, *bad_);
  return true;
}

// --- Selectors ---

namespace {

template <class Reader>
SelectorWords read_selector_of(Reader& reader) {
  SelectorWords selector;
  reader.options({{"state", "STATE", OptionType::kTexts}}, selector.states);
  Words& others = selector.others;
  reader.options({{"group", "GROUP", OptionType::kName}, {"group_glob", "GROUP"}}, others);
  if (others.size() > 2) reader.fail("group", "must be given once, as group or as group_glob");
  reader.options({{"pri", "PRI"},
                  {"tag", "TAG", OptionType::kTextPairs},
                  {"key", "KEY"},
                  {"worker", "WORKER"},
                  {"older_ms", "OLDER", OptionType::kDuration},
                  {"since_ms", "SINCE", OptionType::kInteger},
                  {"until_ms", "UNTIL", OptionType::kInteger},
                  {"id_part", "IDPART"},
                  {"error", "ERROR"},
                  {"error_pattern", "PATTERN"},
                  {"payload_part", "PAYLOAD"}},
                 others);
  reader.options({{"limit", "LIMIT"}}, selector.limit);
  if (!reader.boolean("all").value_or(false)) return selector;
  if (selector.means_something()) reader.fail("all", "cannot be combined with criteria");
  others = {"ALL"};
  return selector;
}

}  // namespace

SelectorWords read_selector(QueryReader& query) { return read_selector_of(query); }

SelectorWords read_selector(BodyReader& where) { return read_selector_of(where); }

std::vector<RouteParameter> with_selector(std::vector<RouteParameter> others) {
  const std::vector<RouteParameter> selector = {
      {"state", "string", "a state; may be repeated"},
      {"group", "string", "exactly this group"},
      {"group_glob", "string", "groups that match this glob"},
      {"pri", "string", "a band by name or number"},
      {"tag", "string", "name=value"},
      {"key", "string", "a key that the job carries"},
      {"worker", "string", "the worker that holds the lease"},
      {"older_ms", "duration", "older than this"},
      {"since_ms", "integer", "since then, unix milliseconds"},
      {"until_ms", "integer", "before then, unix milliseconds"},
      {"id_part", "string", "a part of the id"},
      {"error", "string", "a part of the error"},
      {"error_pattern", "string", "the pattern of the error, as in /failures"},
      {"payload_part", "string", "a part of the first 64 KB of the payload"},
      {"all", "boolean", "true: all jobs, instead of criteria"},
      kLimitParameter,
  };
  others.insert(others.begin(), selector.begin(), selector.end());
  return others;
}

Route operate_route(const char* pattern, void (*handler)(Exchange&), const char* summary,
                    const char* body, const char* answer) {
  return {.method = HttpMethod::post,
          .pattern = pattern,
          .access = Access::kOperate,
          .handler = handler,
          .summary = summary,
          .body = body,
          .answer = answer};
}

}  // namespace sluice
