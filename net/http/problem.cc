#include "net/http/problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/numbers.h"
#include "net/http/json_text.h"

namespace sluice {

namespace {

using nlohmann::json;

struct ErrorStatus {
  Bytes code;
  unsigned status;
  Bytes detail;
};

// The engine's errors by their first word. Others are invalid requests: 422.
constexpr ErrorStatus kStatuses[] = {
    {"ADOPTED", 409, "The queue consists of adopted Redis keys and has no jobs of its own."},
    {"BADFIELD", 422, "Invalid value of a field."},
    {"BUSY", 503, "The server is busy running a script."},
    {"CHANGED", 412, "The field has another value now. Nothing was changed."},
    {"DUPLICATE", 409, "The id is already in use."},
    {"GONE", 409, "The job is held by another lease, has ended, or does not exist."},
    {"GROUPFULL", 429, "The group is full."},
    {"LOADING", 503, "The data is being loaded."},
    {"MASTERDOWN", 503, "This standby does not know how old its data is."},
    {"MISCONF", 503, ""},  // the disk or the log has failed or is full: the error says which
    {"NEEDFAILED", 409, "A required job did not complete."},
    {"NOAUTH", 401, "A token is required."},
    {"NOJOB", 404, "No such job."},
    {"NOPERM", 403, "The token's user does not have this permission."},
    {"NOREPLICAS", 503, "The primary cannot reach etcd. Nothing was changed."},
    {"OOM", 503, "The memory limit has been reached."},
    {"PAUSED", 409, "The queue or the group is paused and accepts no new jobs."},
    {"QFULL", 429, "The queue is full."},
    {"STALELEASE", 409, "The lease is not the job's current one."},
    {"TOOBIG", 413, "The payload, result or progress is too large."},
    {"TOOLATE", 409, "The job would wait longer than its limit."},
    {"TOOMANYTRIES", 429, "Too many wrong passwords."},
    {"TRIMMED", 409, "Events after this number are no longer kept."},
    {"WRONGPASS", 401, "Wrong user name or password, or the user is disabled."},
    {"WRONGTYPE", 409, "The key holds another type than a queue."},
};

struct BusyReason {
  Bytes reason;
  Bytes detail;
};

// Of BUSY by EngineClient. Without one it is about a script.
constexpr BusyReason kBusyReasons[] = {
    {"client_pause", "Clients are paused (CLIENT PAUSE)."},
    {"hand_over", "The primary is handing over to another node."},
    {"journal", "The primary waits for its journal in etcd."},
};

constexpr int64_t kUsualRetryS = 1;

HttpResponse response_of(unsigned status, const json& members) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.body = dump_json(members);
  return response;
}

json members_of(unsigned status, Bytes code, Bytes detail) {
  return {{"type", "urn:sluice:problem:" + to_lower(code)},
          {"title", std::string(reason_phrase(status))},
          {"status", status},
          {"code", std::string(code)},
          {"detail", std::string(detail)}};
}

// The hints that are numbers. An id or a group may look like one.
constexpr Bytes kNumericHints[] = {"eta_ms",  "limit",          "max",  "maxwait_ms", "oldest",
                                   "pending", "retry_after_ms", "value"};

// Hints are percent-encoded.
json hint_value(Bytes name, Bytes text) {
  const auto* numeric = std::find(std::begin(kNumericHints), std::end(kNumericHints), name);
  if (numeric != std::end(kNumericHints)) {
    // The `limit` of a group is the name of a field.
    if (const auto number = parse_i64(text)) return *number;
  }
  const auto decoded = percent_decode(text);
  return text_to_json(decoded.value_or(std::string(text)));
}

void add_retry_after(HttpResponse& response, const json& members) {
  int64_t seconds = kUsualRetryS;
  const auto hint = members.find("retry_after_ms");
  if (hint != members.end() && hint->is_number_integer()) {
    seconds = std::max<int64_t>(1, (hint->get<int64_t>() + 999) / 1000);
  }
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
}

struct SplitError {
  Bytes code;
  Bytes rest;
};

SplitError split_error(Bytes error) {
  const size_t end = std::min(error.find(' '), error.size());
  return {error.substr(0, end), error.substr(std::min(end + 1, error.size()))};
}

// Null: another code.
const ErrorStatus* find_status(Bytes code) {
  const auto* row = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                 [&](const ErrorStatus& each) { return each.code == code; });
  return row == std::end(kStatuses) ? nullptr : row;
}

}  // namespace

HttpResponse problem(unsigned status, Bytes code, Bytes detail) {
  const json members = members_of(status, code, detail);
  HttpResponse response = response_of(status, members);
  if (status == 429 || status == 503) add_retry_after(response, members);
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse not_primary(const json& primary) {
  json members = members_of(503, "NOTPRIMARY", "This node is a standby: it changes nothing.");
  members["primary"] = primary;
  HttpResponse response = response_of(503, members);
  add_retry_after(response, members);
  return response;
}

HttpResponse loopback_only() {
  return problem(403, "LOOPBACKONLY",
                 "No tokens are configured, so only local clients are served (see http-token).");
}

json hints_of_error(Bytes error) {
  auto [code, rest] = split_error(error);
  json hints = json::object();
  const ErrorStatus* row = find_status(code);
  if (row == nullptr || row->detail.empty()) return hints;
  while (rest.find('=') != Bytes::npos) {
    const size_t word_end = std::min(rest.find(' '), rest.size());
    const Bytes word = rest.substr(0, word_end);
    rest.remove_prefix(std::min(word_end + 1, rest.size()));
    const size_t equals = word.find('=');
    if (equals == Bytes::npos) break;
    const Bytes name = word.substr(0, equals);
    hints[std::string(name)] = hint_value(name, word.substr(equals + 1));
  }
  return hints;
}

HttpResponse problem_of_error(Bytes error) {
  const auto [code, rest] = split_error(error);
  const ErrorStatus* row = find_status(code);
  if (row == nullptr) return problem(422, "INVALID", rest);
  if (row->detail.empty()) return problem(row->status, code, rest);
  json members = members_of(row->status, code, row->detail);
  members.update(hints_of_error(error));
  for (const BusyReason& busy : kBusyReasons) {
    if (members.value("reason", json()) == busy.reason) members["detail"] = busy.detail;
  }
  HttpResponse response = response_of(row->status, members);
  if (row->status == 429 || row->status == 503) add_retry_after(response, members);
  if (row->status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sluice
