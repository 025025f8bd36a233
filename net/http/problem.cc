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

// Errors of the engine by their first word. What is not here is a request that makes no sense: 422.
constexpr ErrorStatus kStatuses[] = {
    {"ADOPTED", 409, "The queue shows plain Redis keys and has no jobs of its own."},
    {"BADFIELD", 422, "A field has a bad value."},
    {"BUSY", 503, "A script keeps the server busy."},
    {"DUPLICATE", 409, "The id is in use."},
    {"GONE", 409, "The job is active elsewhere, has ended, or is unknown."},
    {"GROUPFULL", 429, "The group holds as many jobs as it may."},
    {"LOADING", 503, "The data is being loaded."},
    {"MISCONF", 503, "The disk has failed."},
    {"NEEDFAILED", 409, "A job that is needed has ended otherwise than completed."},
    {"NOAUTH", 401, "A token is needed."},
    {"NOJOB", 404, "There is no such job."},
    {"NOPERM", 403, "The user of the token may not do this."},
    {"OOM", 503, "The memory limit is reached."},
    {"PAUSED", 409, "The queue or the group takes no new jobs."},
    {"QFULL", 429, "The queue holds as many jobs as it may."},
    {"STALELEASE", 409, "The lease is not the job's: it has ended, or another has begun."},
    {"TOOBIG", 413, "The payload, result or progress is too large."},
    {"TOOLATE", 409, "The job would wait longer than it may."},
    {"TOOMANYTRIES", 429, "Too many passwords were wrong."},
    {"TRIMMED", 409, "Events after this number are not kept any more."},
    {"WRONGPASS", 401, "The user or the password is wrong, or the user is off."},
    {"WRONGTYPE", 409, "The key holds another type than a queue."},
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

// Hints are percent-encoded; those that are numbers become numbers.
json hint_value(Bytes text) {
  if (const auto number = parse_i64(text)) return *number;
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

}  // namespace

HttpResponse problem(unsigned status, Bytes code, Bytes detail) {
  const json members = members_of(status, code, detail);
  HttpResponse response = response_of(status, members);
  if (status == 429 || status == 503) add_retry_after(response, members);
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse loopback_only() {
  return problem(403, "LOOPBACKONLY",
                 "Without a token only this machine is served: see http-token.");
}

HttpResponse problem_of_error(Bytes error) {
  const size_t end = std::min(error.find(' '), error.size());
  const Bytes code = error.substr(0, end);
  Bytes rest = error.substr(std::min(end + 1, error.size()));
  const auto* row = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                 [&](const ErrorStatus& each) { return each.code == code; });
  if (row == std::end(kStatuses)) return problem(422, "INVALID", rest);
  json members = members_of(row->status, code, row->detail);
  while (rest.find('=') != Bytes::npos) {
    const size_t word_end = std::min(rest.find(' '), rest.size());
    const Bytes word = rest.substr(0, word_end);
    rest.remove_prefix(std::min(word_end + 1, rest.size()));
    const size_t equals = word.find('=');
    if (equals == Bytes::npos) break;
    members[std::string(word.substr(0, equals))] = hint_value(word.substr(equals + 1));
  }
  // Not a script, which BUSY otherwise is about (EngineClient).
  if (members.value("reason", json()) == "client_pause") {
    members["detail"] = "Clients are paused (CLIENT PAUSE).";
  }
  HttpResponse response = response_of(row->status, members);
  if (row->status == 429 || row->status == 503) add_retry_after(response, members);
  if (row->status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace sluice
