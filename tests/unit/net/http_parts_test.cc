// The parts of the HTTP side that need no socket: targets, heads, chunks, routes, tokens, JSON.
#include <nlohmann/json.hpp>

#include "engine/access/acl.h"
#include "engine/access/passwords.h"
#include "net/admin/metrics_otlp.h"
#include "net/admin/routes.h"
#include "net/config/config.h"
#include "net/config/config_special.h"
#include "net/config/endpoint.h"
#include "net/http/change_log.h"
#include "net/http/head_check.h"
#include "net/http/json_text.h"
#include "net/http/message.h"
#include "net/http/problem.h"
#include "net/http/router.h"
#include "net/http/tokens.h"

#include <set>
#include <utility>

#include "tests/support/storage_support.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

using nlohmann::json;

HttpRequest request_of(std::string target) {
  HttpRequest request;
  request.target = std::move(target);
  return request;
}

TEST_CASE("a target is split into its path and decoded parameters") {
  HttpRequest request = request_of("/a%2Fb/c?x=1&y=a+b%26&x=2&&z");
  REQUIRE(split_target(request));
  CHECK_EQ(request.path, "/a%2Fb/c");
  CHECK_EQ(request.query.size(), 4);
  CHECK_EQ(*request.parameter("x"), "1");
  CHECK_EQ(*request.parameter("y"), "a b&");
  CHECK_EQ(*request.parameter("z"), "");
  CHECK(request.parameter("w") == nullptr);
  for (const char* bad :
       {"", "a", "http://a/", "/%", "/%4", "/%zz", "/a b", "/a?x=%", "/\x80", "/a\\b", "/<", "*"}) {
    HttpRequest other = request_of(bad);
    CAPTURE(bad);
    CHECK_FALSE(split_target(other));
  }
}

TEST_CASE("percent-encoding gives every byte back") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto decoded = percent_decode(percent_encode(all));
  REQUIRE(decoded.has_value());
  CHECK(*decoded == all);
}

TEST_CASE("a head is found and judged by its bytes") {
  CHECK_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n\r\nrest"), 24);
  CHECK_EQ(find_head_end("GET / HTTP/1.1\r\nA: b\r\n\r"), 0);
  CHECK_EQ(find_head_end("GET / HTTP/1.1\nA: b\n\n"), 21);
  // Whatever part of it has been examined before.
  const Bytes whole = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  for (size_t seen = 0; seen < whole.size(); ++seen) CHECK_EQ(find_head_end(whole, seen), 24);
  CHECK(check_head("GET / HTTP/1.1\r\nA: b\r\nC:d\r\n\r\n").ok());
  for (const char* bad :
       {"GET / HTTP/1.1\nA: b\n\n", "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n C: d\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n\tC: d\r\n\r\n", "GET / HTTP/1.1\r\nA\t: b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nA: b\r\n\r\n", "GET / HTTP/1.1\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nA\r\n\r\n", "GET / HTTP/1.1\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "GET / HTTP/1.1\r\nA: \x7f\r\n\r\n", "\r\n\r\n",
        "GET / HTTP/1.1\r\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(check_head(bad).ok());
  }
}

// Beast refuses some of these behind it.
TEST_CASE("a request has one host, and one way to say where its body ends") {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const auto status_of = [](Headers headers, bool http_1_1 = true) {
    HttpRequest request;
    request.http_1_1 = http_1_1;
    request.headers = std::move(headers);
    return check_framing(request).status;
  };
  const std::pair<std::string, std::string> host{"host", "h"};
  const std::pair<std::string, std::string> length{"content-length", "4"};
  const std::pair<std::string, std::string> chunked{"transfer-encoding", "Chunked"};
  for (const Headers& good : {Headers{host}, {host, length}, {host, chunked}}) {
    CHECK_EQ(status_of(good), 0);
  }
  for (const Headers& bad : {Headers{},
                             {host, host},
                             {host, length, length},
                             {host, length, chunked},
                             {host, chunked, chunked},
                             {host, {"content-length", ""}},
                             {host, {"content-length", "4x"}}}) {
    CHECK_EQ(status_of(bad), 400);
  }
  CHECK_EQ(status_of({host, {"transfer-encoding", "gzip"}}), 501);
  CHECK_EQ(status_of({host, chunked}, false), 400);
  CHECK_EQ(status_of({host, host}, false), 400);
  CHECK_EQ(status_of({}, false), 0);
}

TEST_CASE("chunks are decoded the same, whole or in any two pieces") {
  const std::string good = "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nnext";
  for (size_t cut = 0; cut <= good.size(); ++cut) {
    ChunkDecoder decoder;
    std::string body;
    std::string left;
    ChunkDecoder::Result result = ChunkDecoder::Result::kMore;
    for (const std::string& piece : {good.substr(0, cut), good.substr(cut)}) {
      Bytes bytes = piece;
      result = decoder.take(bytes, body);
      left += bytes;
    }
    CHECK(result == ChunkDecoder::Result::kDone);
    CHECK_EQ(body, "abc0123456789");
    CHECK_EQ(left, "next");
  }
  for (const std::string bad : {"g\r\n", "\r\n", "1\n", "1\r\nab\r\n", "1;x\r\n", "0\r\nA: b\r\n",
                                "1234567890123\r\n", "-1\r\n"}) {
    ChunkDecoder decoder;
    std::string body;
    Bytes bytes = bad;
    CAPTURE(bad);
    CHECK(decoder.take(bytes, body) == ChunkDecoder::Result::kBad);
  }
}

void nothing(Exchange&) {}

TEST_CASE("a path leads to the first row that fits; ids may hold any byte") {
  const Route routes[] = {
      {.pattern = "/q/{queue}/jobs/{id}", .handler = nothing},
      {.method = HttpMethod::post, .pattern = "/q/{queue}/jobs/{id}:ack", .handler = nothing},
      {.method = HttpMethod::post, .pattern = "/q/{queue}/jobs", .handler = nothing},
      {.pattern = "/list/", .handler = nothing},
  };
  RouteMatch match = match_route(routes, HttpMethod::get, "/q/a%2Fb/jobs/x%3Aack%00");
  REQUIRE(match.route == &routes[0]);
  CHECK_EQ(match.parameters[0].second, "a/b");
  CHECK(match.parameters[1].second == std::string("x:ack\0", 6));
  match = match_route(routes, HttpMethod::post, "/q/a/jobs/x%3Aack:ack");
  REQUIRE(match.route == &routes[1]);
  CHECK_EQ(match.parameters[1].second, "x:ack");
  CHECK(match_route(routes, HttpMethod::head, "/q/a/jobs/x").route == &routes[0]);
  CHECK(match_route(routes, HttpMethod::get, "/list/").route == &routes[3]);
  for (const char* none :
       {"/list", "/q", "/q/a", "/q//jobs/x", "/q/a/jobs/x/", "/q/a/jobs/", "/"}) {
    CAPTURE(none);
    match = match_route(routes, HttpMethod::get, none);
    CHECK(match.route == nullptr);
    CHECK_EQ(match.allowed, "");
  }
  match = match_route(routes, HttpMethod::post, "/q/a/jobs/:ack");
  CHECK(match.route == nullptr);
  match = match_route(routes, HttpMethod::delete_, "/q/a/jobs/x:ack");
  CHECK_EQ(match.allowed, "GET, HEAD, POST");
}

TEST_CASE("every row of the server has what its description needs, and none hides another") {
  const std::vector<Route> routes = admin_routes();
  std::set<std::string> seen;
  for (const Route& route : routes) {
    CAPTURE(route.pattern);
    const bool has_handler = route.handler != nullptr;
    CHECK(has_handler);
    // The page's files are not part of the API; all other routes must be in its description.
    const bool is_api = route.access != Access::kOpen || route.answer != nullptr;
    if (is_api) {
      CHECK_NE(std::string(route.summary), "");
      CHECK(route.answer != nullptr);
    } else {
      CHECK_FALSE(std::string_view(route.pattern).starts_with("/api/"));
    }
    CHECK(seen.insert(std::string(method_name(route.method)) + route.pattern).second);
    // Every changing route requires more than read, except the log-in.
    const bool is_session = std::string_view(route.pattern) == "/api/v1/session";
    if (is_change(route.method) && !is_session) CHECK(route.access >= Access::kOperate);
    std::string path = route.pattern;
    for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{')) {
      path.replace(at, path.find('}') - at + 1, "x");
    }
    CHECK(match_route(routes, route.method, path).route == &route);
  }
}

TEST_CASE("tokens: roles, schemes, users") {
  Acl acl;
  const Bytes on[] = {"on", "~*", "+@all"};
  REQUIRE(acl.set_user("carol", on).ok());
  std::vector<TokenSetting> settings;
  const std::string words[] = {
      "read", ">0123456789abcdef", "OPERATE", "#" + hash_password("secret"), "user", "carol"};
  REQUIRE(add_token_settings(words, settings).ok());
  REQUIRE_EQ(settings.size(), 2);
  CHECK_EQ(settings[0].hash, hash_password("0123456789abcdef"));
  const Tokens tokens(settings);
  const auto verdict = [&](Access access, const char* header) {
    const std::string text = header == nullptr ? "" : header;
    return tokens.check(access, header == nullptr ? nullptr : &text, acl).verdict;
  };
  using Verdict = Tokens::Verdict;
  CHECK(verdict(Access::kRead, "Bearer 0123456789abcdef") == Verdict::kGranted);
  CHECK(verdict(Access::kOperate, "Bearer 0123456789abcdef") == Verdict::kForbidden);
  CHECK(verdict(Access::kOperate, "bearer secret") == Verdict::kGranted);
  CHECK(verdict(Access::kAdmin, "bearer secret") == Verdict::kForbidden);
  CHECK(verdict(Access::kRead, "Bearer secret ") == Verdict::kBadToken);
  CHECK(verdict(Access::kOpen, "Bearer wrong") == Verdict::kBadToken);
  CHECK(verdict(Access::kOpen, nullptr) == Verdict::kGranted);
  CHECK(verdict(Access::kReady, nullptr) == Verdict::kNeedsToken);
  CHECK(verdict(Access::kRead, nullptr) == Verdict::kNeedsToken);
  const Tokens none({});
  CHECK(none.check(Access::kRead, nullptr, acl).verdict == Verdict::kGranted);
  CHECK(none.check(Access::kOperate, nullptr, acl).verdict == Verdict::kNeedsToken);
  CHECK(none.check(Access::kAdmin, nullptr, acl).verdict == Verdict::kNeedsToken);
}

TEST_CASE("tokens: that of the nodes grants replication alone") {
  const Acl acl;
  const Tokens tokens({}, nullptr, hash_password("of-the-nodes"));
  const std::string header = "Bearer of-the-nodes";
  using Verdict = Tokens::Verdict;
  for (const Access access : {Access::kReady, Access::kRead, Access::kOperate, Access::kAdmin}) {
    CHECK(tokens.check(access, &header, acl).verdict == Verdict::kBadToken);
  }
  CHECK(tokens.check(Access::kReplicate, &header, acl).verdict == Verdict::kGranted);
}

TEST_CASE(
    "tokens: the file of the nodes' token may end its line as it likes, and has no short one") {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/token";
  const auto read = [&](const std::string& text) {
    test::write_file(path, text);
    const Result<std::string> token = read_token(path);
    return token.ok() ? *token : token.status().message();
  };
  const std::string token = "a-token-of-16-by";
  for (const char* end : {"", "\n", "\r\n", "\r", "\r\nmore\r\n"})
    CHECK_EQ(read(token + end), token);
  for (const std::string& wrong :
       {token.substr(1), std::string("a token of 16 and more"), token + "\xc3\xa4"}) {
    CHECK_EQ(read(wrong + "\r\n"), "the first line of " + path +
                                       " must be a token of at least 16 characters: letters, "
                                       "digits and signs of ASCII, no blanks");
  }
  CHECK_EQ(read("\r\n"), "cannot read a password or token in the first line of " + path);
}

TEST_CASE("tokens: the last word on each counts, and there are at most so many") {
  std::vector<TokenSetting> settings;
  const std::string hash = "#" + hash_password("a");
  const std::string twice[] = {"read", hash, "user", "carol", "operate", hash};
  REQUIRE(add_token_settings(twice, settings).ok());
  CHECK_EQ(token_settings_text(settings), "operate " + hash);
  const std::string blank[] = {"read", hash, "user", "a b"};
  CHECK_FALSE(add_token_settings(blank, settings).ok());
  settings.clear();
  for (size_t i = 0; i < kMaxTokens; ++i) {
    const std::string one[] = {"read", "#" + hash_password(std::to_string(i)), "user", "u"};
    REQUIRE(add_token_settings(one, settings).ok());
  }
  std::vector<TokenSetting> same;
  const std::string text = token_settings_text(settings);
  REQUIRE(add_token_settings(config_special::split_value(text), same).ok());
  CHECK(same == settings);
  CHECK_EQ(settings[0].id(), hash_password("0").substr(0, 16));
  const std::string more[] = {"read", hash};
  CHECK_EQ(add_token_settings(more, settings).message(), "there may be at most 1000 tokens");
}

TEST_CASE("tokens: what one has let in goes with it") {
  const Acl acl;
  const std::string words[] = {"read", ">0123456789abcdef", "admin", ">fedcba9876543210"};
  std::vector<TokenSetting> settings;
  REQUIRE(add_token_settings(words, settings).ok());
  const Tokens before(settings);
  const std::string header = "Bearer 0123456789abcdef";
  const Principal reader = before.check(Access::kRead, &header, acl).principal;
  CHECK(before.still_grants(Access::kRead, reader, acl));
  settings.erase(settings.begin());
  const Tokens after(settings);
  CHECK_FALSE(after.still_grants(Access::kRead, reader, acl));
  // A client that came without a token when there were none.
  const Tokens none({});
  const Principal guest = none.check(Access::kRead, nullptr, acl).principal;
  CHECK(none.still_grants(Access::kRead, guest, acl));
  CHECK_FALSE(after.still_grants(Access::kRead, guest, acl));
  CHECK(after.still_grants(Access::kOpen, guest, acl));
}

TEST_CASE("changes: the newest ones are kept, and those of a kind within a minute are one") {
  ChangeLog log;
  const Principal principal{Role::kOperate, user_of_role(Role::kOperate), hash_password("a")};
  const auto add = [&](const std::vector<std::string>& words, int64_t now_ms) {
    log.add(principal, 0, words, 1, now_ms);
  };
  for (size_t i = 0; i <= ChangeLog::kMost; ++i) add({"DEL", "q"}, static_cast<int64_t>(i));
  CHECK_EQ(log.newest().size(), ChangeLog::kMost);
  CHECK_EQ(log.newest().back().at_ms, 1);
  int64_t now_ms = 1000;
  add({"Q.CANCEL", "q", "a"}, now_ms);
  add({"Q.CANCEL", "q", "b"}, now_ms += ChangeLog::kTogetherMs - 1);
  add({"Q.CANCEL", "q", "c"}, now_ms += ChangeLog::kTogetherMs);
  const std::vector<Change> changes = log.newest();
  CHECK_EQ(changes[0].count, 1);
  CHECK_EQ(changes[1].count, 2);
  CHECK(changes[1].words == std::vector<std::string>{"Q.CANCEL", "q", "a"});
  CHECK_EQ(changes[2].words[0], "DEL");
}

TEST_CASE("changes: a worker's jobs that are given back are one, a lease that ends is none") {
  const auto number = [](int64_t value) {
    RespValue reply;
    reply.kind = RespValue::Kind::kInteger;
    reply.integer = value;
    return reply;
  };
  RespValue reply;
  reply.kind = RespValue::Kind::kArray;
  reply.items = {RespValue(), number(7)};
  CHECK_EQ(
      ChangeLog::count_of(std::vector<std::string>{"Q.NACK", "q", "WHERE", "WORKER", "w"}, reply),
      7);
  reply = {};
  reply.kind = RespValue::Kind::kMap;
  CHECK_EQ(ChangeLog::count_of(std::vector<std::string>{"Q.NACK", "q", "a", "1"}, reply), 0);
}

TEST_CASE("the log of changes tells users, tokens and databases apart") {
  ChangeLog log;
  const auto operates = user_of_role(Role::kOperate);
  const auto log_in = [](const char* name) {
    return Principal{Role::kOperate, std::make_shared<User>(name, AclRules(false)), "secret", true};
  };
  const std::vector<std::pair<Principal, int>> who = {
      {{Role::kOperate, operates, hash_password("a")}, 0},
      {{Role::kOperate, operates, hash_password("b")}, 0},
      {log_in("ann"), 0},
      {log_in("bob"), 0},
      {log_in("bob"), 1}};
  for (const auto& [principal, database] : who) {
    for (const char* job : {"1", "2"}) {
      log.add(principal, database, std::vector<std::string>{"Q.CANCEL", "q", job}, 1, 0);
    }
  }
  const std::vector<Change> changes = log.newest();
  CHECK_EQ(changes.size(), who.size());
  for (const Change& change : changes) CHECK_EQ(change.count, 2);
}

TEST_CASE("the log of changes tells queues and options apart") {
  ChangeLog log;
  const Principal principal{Role::kOperate, user_of_role(Role::kOperate), hash_password("a")};
  for (const char* queue : {"q", "r"}) {
    for (const char* reason : {"x", "y"}) {
      for (const char* job : {"1", "2"}) {
        log.add(principal, 0, std::vector<std::string>{"Q.CANCEL", queue, job, "REASON", reason}, 1,
                0);
      }
    }
  }
  const std::vector<Change> changes = log.newest();
  CHECK_EQ(changes.size(), 4);
  for (const Change& change : changes) CHECK_EQ(change.count, 2);
}

TEST_CASE("an endpoint: host, port, path, and what it may not be") {
  const auto parsed = [](Bytes url) {
    const Result<HttpEndpoint> endpoint = parse_http_endpoint(url, {"", "4318", "/v1/metrics"});
    if (!endpoint.ok()) return std::string("!");
    const std::string scheme = endpoint->tls ? "tls " : "";
    return scheme + endpoint->authority() + ' ' + endpoint->target;
  };
  CHECK_EQ(parsed("http://collector"), "collector:4318 /v1/metrics");
  CHECK_EQ(parsed("HTTP://collector:80/"), "collector:80 /v1/metrics");
  CHECK_EQ(parsed("http://10.0.0.1:80/in?a=b"), "10.0.0.1:80 /in?a=b");
  CHECK_EQ(parsed("http://[::1]:4318/x"), "[::1]:4318 /x");
  CHECK_EQ(parsed("http://[::1]"), "[::1]:4318 /v1/metrics");
  CHECK_EQ(parsed("https://collector"), "tls collector:4318 /v1/metrics");
  CHECK_EQ(parsed("HTTPS://collector:443/x"), "tls collector:443 /x");
  for (const char* bad : {"",
                          "collector:4318",
                          "https://",
                          "https:/collector",
                          "http://",
                          "http://:80",
                          "http://a:",
                          "http://a:x",
                          "http://a:65536",
                          "http://a:0",
                          "http://u:p@a",
                          "http://[::1",
                          "http://[]",
                          "http://[a]",
                          "http://[[a]",
                          "http://[[::1]",
                          "http://[::1]x",
                          "http://a/ b",
                          "http://a/#b",
                          "http://a?b",
                          "http://a/\n",
                          "http://\xc3\xa4"}) {
    CAPTURE(bad);
    CHECK_EQ(parsed(bad), "!");
  }
  CHECK(check_http_header("Authorization", "Bearer a b").ok());
  for (const auto& [name, value] : {std::pair{"", "x"},
                                    {"a b", "x"},
                                    {"a:", "x"},
                                    {"a", "x\ny"},
                                    {"Host", "x"},
                                    {"content-length", "1"}}) {
    CAPTURE(name);
    CHECK_FALSE(check_http_header(name, value).ok());
  }
}

TEST_CASE("an OTLP header may hold blanks, and is never shown") {
  Config config;
  const Bytes text =
      "otlp-header Authorization \"Bearer a b\"\notlp-header X 1\notlp-endpoint http://c\n";
  CHECK_FALSE(config.load_text(text, "x.conf").has_value());
  const auto settings = config.settings();
  REQUIRE_EQ(settings->otlp.headers.size(), 2);
  CHECK_EQ(settings->otlp.headers[0].second, "Bearer a b");
  CHECK_EQ(settings->otlp.endpoint->authority(), "c:4318");
  CHECK(config.get({"otlp-header"}).empty());
}

TEST_CASE("a collector's answer says what it has not taken") {
  CHECK_EQ(otlp_rejection("{}"), "");
  CHECK_EQ(otlp_rejection("no JSON"), "");
  CHECK_EQ(otlp_rejection("[1]"), "");
  CHECK_EQ(otlp_rejection("{\"partialSuccess\": {}}"), "");
  CHECK_EQ(otlp_rejection("{\"partialSuccess\": 3}"), "");
  CHECK_EQ(otlp_rejection("{\"partialSuccess\": {\"rejectedDataPoints\": \"0\"}}"), "");
  CHECK_EQ(otlp_rejection("{\"partialSuccess\": {\"rejectedDataPoints\": 7, "
                          "\"errorMessage\": \"old\"}}"),
           "it rejected 7 points: old");
}

TEST_CASE("JSON of others is read up to a depth") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK_FALSE(parse_json(nested(kMaxJsonDepth)).is_discarded());
  CHECK(parse_json(nested(kMaxJsonDepth + 1)).is_discarded());
  CHECK(parse_json("{\"a\":" + nested(kMaxJsonDepth) + "}").is_discarded());
  CHECK(parse_json("[").is_discarded());
  CHECK(parse_json("]" + nested(kMaxJsonDepth)).is_discarded());
  // Brackets in strings and in siblings do not count as nesting.
  CHECK_EQ(parse_json("[\"\\\"" + std::string(100, '[') + "\"]").size(), 1);
  std::string siblings = "[[]";
  for (int i = 0; i < 100; ++i) siblings += ",[]";
  CHECK_EQ(parse_json(siblings + "]").size(), 101);
  const std::string deep =
      "{\"partialSuccess\": {\"rejectedDataPoints\": " + nested(100'000) + "}}";
  CHECK_EQ(otlp_rejection(deep), "");
}

TEST_CASE("one member of JSON is read as if all were read") {
  const auto member = [](Bytes text) { return parse_member(text, "a"); };
  for (const char* text : {"null", "true", "-7", "18446744073709551615", "1.5", R"("x\u0041")"}) {
    CHECK_EQ(member(R"({"b": {"a": 1}, "a": )" + std::string(text) + R"(, "c": [{"a": 2}]})"),
             parse_json(text));
  }
  CHECK_EQ(member(R"({"\u0061": 1, "a": 2})"), json(2));
  CHECK_EQ(member(R"({"a": [1, {"a": 2}]})"), json::object());
  CHECK_EQ(member(R"({"a": {"a": 2}})"), json::object());
  for (const char* text : {"", "{}", "1", "[]", R"([{"a": 1}])", R"({"b": {"a": 1}})", R"({"a": 1)",
                           R"({"a": 1} 2)", "{\"a\": 1, \"b\": \"\xff\"}"}) {
    CHECK_FALSE(member(text));
  }
  const auto beside = [](size_t depth) {
    return R"({"a": 1, "b": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(member(beside(kMaxJsonDepth - 1)));
  CHECK_FALSE(member(beside(kMaxJsonDepth)));
}

TEST_CASE("JSON carries any bytes") {
  for (const std::string good : {"", "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                 "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(good));
  }
  for (const std::string bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xff"}) {
    CHECK_FALSE(is_utf8(bad));
    json object = json::object();
    put_bytes(object, "x", bad);
    CHECK(object["x"].is_null());
    CHECK_EQ(from_base64(object["x_base64"].get<std::string>()), bad);
    CHECK_EQ(from_base64(text_to_json(bad)["base64"].get<std::string>()), bad);
  }
  CHECK_EQ(to_base64("a"), "YQ==");
  CHECK_EQ(to_base64("ab"), "YWI=");
  CHECK_EQ(to_base64("abc"), "YWJj");
  CHECK_EQ(from_base64("YWI"), "ab");
  CHECK_EQ(from_base64("_-8"), "\xff\xef");
  for (const char* bad : {"Y", "YQ=", "Y===", "Y Q=", "YQ==YQ=="}) {
    CAPTURE(bad);
    CHECK_FALSE(from_base64(bad).has_value());
  }
}

RespValue value_of(RespValue::Kind kind, std::string text, std::vector<RespValue> items = {}) {
  RespValue value;
  value.kind = kind;
  value.text = std::move(text);
  value.items = std::move(items);
  return value;
}

TEST_CASE("a reply is written as JSON like the tree of its values") {
  using Kind = RespValue::Kind;
  std::string every;
  for (int byte = 0; byte < 0x80; ++byte) every += static_cast<char>(byte);
  RespValue number = value_of(Kind::kInteger, "");
  number.integer = INT64_MIN;
  RespValue share = value_of(Kind::kDouble, "");
  share.number = 0.1;
  RespValue yes = value_of(Kind::kBoolean, "");
  yes.integer = 1;
  std::vector<RespValue> values = {number,
                                   share,
                                   yes,
                                   value_of(Kind::kNull, ""),
                                   value_of(Kind::kError, "ERR"),
                                   value_of(Kind::kArray, ""),
                                   value_of(Kind::kMap, "")};
  std::vector<RespValue> members;
  for (const std::string& text : {std::string(), every, std::string("\xe2\x82\xac \"\\"),
                                  std::string("\xff\0", 2), std::string("base64:x")}) {
    values.push_back(value_of(Kind::kText, text));
    for (const std::string& name : {text, text + "2"}) {
      members.push_back(value_of(Kind::kText, name));
      members.push_back(values[members.size() / 2]);
    }
  }
  values.push_back(value_of(Kind::kMap, "", members));
  const RespValue all = value_of(Kind::kArray, "", values);
  std::string text = "before";
  append_json(all, text);
  CHECK_EQ(parse_json(text.substr(6)), resp_to_json(all));
  for (const RespValue& value : values) {
    if (value.kind == Kind::kMap && !value.items.empty()) continue;  // in another order
    std::string one;
    append_json(value, one);
    CHECK_EQ(one, dump_json(resp_to_json(value)));
  }
}

TEST_CASE("an error of a command becomes a problem with its hints") {
  const HttpResponse full = problem_of_error("QFULL pending=3 max=3 retry_after_ms=2500");
  CHECK_EQ(full.status, 429);
  const json members = json::parse(full.body);
  CHECK_EQ(members["code"], "QFULL");
  CHECK_EQ(members["pending"], 3);
  CHECK_EQ(members["retry_after_ms"], 2500);
  bool told = false;
  for (const auto& [name, value] : full.headers)
    told = told || (name == "Retry-After" && value == "3");
  CHECK(told);
  CHECK_EQ(json::parse(problem_of_error("NOJOB id=a%20b").body)["id"], "a b");
  CHECK_EQ(json::parse(problem_of_error("NOJOB id=7").body)["id"], "7");
  const json group =
      json::parse(problem_of_error("GROUPFULL group=7 limit=max_total value=3").body);
  CHECK_EQ(group["group"], "7");
  CHECK_EQ(group["limit"], "max_total");
  CHECK_EQ(group["value"], 3);
  const auto busy = [](const std::string& reason) {
    const HttpResponse refusal = problem_of_error("BUSY reason=" + reason + " retry_after_ms=1000");
    return json::parse(refusal.body)["detail"].get<std::string>();
  };
  CHECK_EQ(busy("client_pause"), "Clients are paused (CLIENT PAUSE).");
  CHECK_EQ(busy("hand_over"), "The primary is handing over to another node.");
  CHECK_EQ(busy("journal"), "The primary waits for its journal in etcd.");
  CHECK_EQ(problem_of_error("ERR syntax error").status, 422);
  CHECK_EQ(problem_of_error("NOPERM this user has no permissions").status, 403);
  CHECK_EQ(hints_of_error("DUPLICATE id=a%20b state=active"),
           json({{"id", "a b"}, {"state", "active"}}));
  for (const char* none : {"", "QFULL", "ERR no=hint", "NOPERM no keys a=b", "MISCONF disk=full"}) {
    CHECK_EQ(hints_of_error(none), json::object());
  }
}

}  // namespace
}  // namespace sluice
