// The request parser. The expected texts were compared with redis-server 7.0.15.
#include "net/resp/resp_parser.h"

#include "engine/base/quoting.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "tests/support/resp_transcript.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

using namespace std::string_literals;
using test::parse_in_pieces;
using test::parse_whole;

std::string whole_and_split(const std::string& input, const RespLimits& limits = {}) {
  const std::string whole = parse_whole(input, limits);
  const std::vector<size_t> single_bytes(input.size(), 1);
  CHECK_EQ(parse_in_pieces(input, single_bytes, limits), whole);
  for (size_t cut = 1; cut < input.size() && cut < 300; ++cut) {
    CHECK_EQ(parse_in_pieces(input, std::vector<size_t>{cut}, limits), whole);
  }
  return whole;
}

std::string error_of(const std::string& input, const RespLimits& limits = {}) {
  const std::string transcript = whole_and_split(input, limits);
  if (transcript.rfind("error Protocol error: ", 0) != 0) return "no error but " + transcript;
  return transcript.substr(22, transcript.size() - 23);
}

RespLimits unauthenticated() {
  RespLimits limits;
  limits.authenticated = false;
  return limits;
}

TEST_CASE("a multibulk request gives its arguments, whatever bytes they hold") {
  CHECK_EQ(whole_and_split("*1\r\n$4\r\nPING\r\n"), "request 4:PING\npending 0\n");
  CHECK_EQ(whole_and_split("*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$4\r\n\r\n\r\n\r\n"s),
           "request 3:SET 3:a\0b 4:\r\n\r\n\npending 0\n"s);
  CHECK_EQ(whole_and_split("*1\r\n$0\r\n\r\n"), "request 0:\npending 0\n");
  CHECK_EQ(whole_and_split("*2\r\n$4\r\nECHO\r\n$12\r\nhello world!\r\n"),
           "request 4:ECHO 12:hello world!\npending 0\n");
}

TEST_CASE("multibulk and inline requests mix on one connection, and empty ones are skipped") {
  CHECK_EQ(
      whole_and_split("PING\r\n*1\r\n$4\r\nPING\r\nGET k\n\r\n  \r\n*0\r\n*-1\r\n*-5\r\nA\r\n*"),
      "request 4:PING\nrequest 4:PING\nrequest 3:GET 1:k\nrequest 1:A\npending 1\n");
}

TEST_CASE("the bytes behind a bulk and behind a carriage return are not looked at, as in Redis") {
  CHECK_EQ(whole_and_split("*1\r\n$4\r\nPINGxxPING\r\n"),
           "request 4:PING\nrequest 4:PING\npending 0\n");
  CHECK_EQ(whole_and_split("*1\rx$4\rxPINGxxPING\r\n"),
           "request 4:PING\nrequest 4:PING\npending 0\n");
  CHECK_EQ(whole_and_split("*1\n$4\nPING\n"), "pending 11\n");
}

TEST_CASE("a bad argument count is refused with Redis's text") {
  for (const char* count :
       {"abc", "", "-0", "+1", "01", " 1", "1 ", "2147483648", "9223372036854775807",
        "9223372036854775808", "-9223372036854775809", "111111111111111111111111111111"}) {
    CAPTURE(count);
    CHECK_EQ(error_of("*"s + count + "\r\n$4\r\nPING\r\n"), "invalid multibulk length");
  }
  CHECK_EQ(whole_and_split("*2147483647\r\n"), "pending 13\n");
  CHECK_EQ(error_of("*\0001\r\n"s), "invalid multibulk length");
}

TEST_CASE("a bad bulk length is refused with Redis's text") {
  for (const char* length :
       {"", "-1", "-2", " 4", "+4", "04", "-0", "x", "536870913", "2147483648",
        "9223372036854775807", "9223372036854775808", "18446744073709551616"}) {
    CAPTURE(length);
    CHECK_EQ(error_of("*1\r\n$"s + length + "\r\nPING\r\n"), "invalid bulk length");
  }
  CHECK_EQ(whole_and_split("*1\r\n$536870912\r\n"), "pending 16\n");
}

TEST_CASE("a bulk that does not start with a dollar is refused once its line is complete") {
  CHECK_EQ(error_of("*1\r\nPING\r\n"), "expected '$', got 'P'");
  CHECK_EQ(error_of("*1\r\n\x80\r\n"), "expected '$', got '\x80'");
  CHECK_EQ(whole_and_split("*1\r\nPING"), "pending 8\n");
  CHECK_EQ(whole_and_split("*1\r\nPING\r"), "pending 9\n");
}

TEST_CASE("no byte of a client can end the line of the error reply") {
  CHECK_EQ(error_of("*1\r\n\r\n"), "expected '$', got ' '");
  CHECK_EQ(error_of("*1\r\n\n\r\n"), "expected '$', got ' '");
  CHECK_EQ(error_of("*1\r\n\0\r\n"s), "expected '$', got ' '");
}

TEST_CASE("before AUTH ten arguments of 16384 bytes pass, and one more of either does not") {
  CHECK_EQ(whole_and_split("*10\r\n", unauthenticated()), "pending 5\n");
  CHECK_EQ(error_of("*11\r\n", unauthenticated()), "unauthenticated multibulk length");
  CHECK_EQ(whole_and_split("*1\r\n$16384\r\n", unauthenticated()), "pending 12\n");
  CHECK_EQ(error_of("*1\r\n$16385\r\n", unauthenticated()), "unauthenticated bulk length");
  CHECK_EQ(error_of("*2147483648\r\n", unauthenticated()), "invalid multibulk length");
  CHECK_EQ(error_of("*1\r\n$536870913\r\n", unauthenticated()), "invalid bulk length");
}

TEST_CASE("before AUTH a request that has come whole is refused as one that has not") {
  const auto whole = [](const std::string& input) {
    return parse_in_pieces(input, {}, unauthenticated());
  };
  std::string arguments;
  for (int i = 0; i < 11; ++i) arguments += "$1\r\na\r\n";
  CHECK_EQ(whole("*11\r\n" + arguments),
           "error Protocol error: unauthenticated multibulk length\n");
  const std::string bytes(16385, 'a');
  CHECK_EQ(whole("*1\r\n$16385\r\n" + bytes + "\r\n"),
           "error Protocol error: unauthenticated bulk length\n");
}

TEST_CASE("configured limits hold at the limit and refuse one past it") {
  RespLimits limits;
  limits.max_args = 3;
  limits.max_bulk_bytes = 1024;
  CHECK_EQ(whole_and_split("*3\r\n", limits), "pending 4\n");
  CHECK_EQ(error_of("*4\r\n", limits), "invalid multibulk length");
  CHECK_EQ(whole_and_split("*1\r\n$1024\r\n", limits), "pending 11\n");
  CHECK_EQ(error_of("*1\r\n$1025\r\n", limits), "invalid bulk length");
}

TEST_CASE("a line without an end is refused behind 64 KB") {
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  const std::vector<size_t> reads(40, 16384);
  const auto both = [&](const std::string& input) {
    const std::string transcript = parse_whole(input);
    CHECK_EQ(parse_in_pieces(input, reads), transcript);
    return transcript;
  };
  const std::string a(65536, 'a'), ones(65535, '1');
  CHECK_EQ(both(a), "pending 65536\n");
  CHECK(ends_with(both(a + "\n"), "a\npending 0\n"));
  CHECK_EQ(both(a + "a"), "error Protocol error: too big inline request\n");
  CHECK_EQ(both(a + "a\n"), "error Protocol error: too big inline request\n");
  CHECK_EQ(both("*" + ones), "pending 65536\n");
  CHECK_EQ(both("*" + ones + "1"), "error Protocol error: too big mbulk count string\n");
  CHECK_EQ(both("*1\r\n$" + ones), "pending 65540\n");
  CHECK_EQ(both("*1\r\n$" + ones + "1"), "error Protocol error: too big bulk count string\n");
}

TEST_CASE("inline quoting follows Redis") {
  CHECK_EQ(whole_and_split("\n\nPING \"a\\x41\\x4g\\n\\q\\t\\r\\b\\a\"\r\n"),
           "request 4:PING 11:aAx4g\nq\t\r\b\a\npending 0\n");
  CHECK_EQ(whole_and_split("PING 'a\\'b\\n'\r\n"), "request 4:PING 5:a'b\\n\npending 0\n");
  CHECK_EQ(whole_and_split("PING a\"b c\"\r\n"), "request 4:PING 4:ab c\npending 0\n");
  CHECK_EQ(whole_and_split("PING \"\" ''\r\n"), "request 4:PING 0: 0:\npending 0\n");
  CHECK_EQ(whole_and_split("\v\fPING \va a\vb \"a\"\vb\r\r\n"),
           "request 4:PING 1:a 3:a\vb 1:a 1:b\npending 0\n");
  CHECK_EQ(whole_and_split("SET \"\\x00\\xff\" v\n"), "request 3:SET 2:\0\xff 1:v\npending 0\n"s);
  CHECK_EQ(whole_and_split("\"\\x\\x4\" '\\x41'\n"), "request 3:xx4 4:\\x41\npending 0\n");
}

TEST_CASE("a zero byte in an inline line is data like any other") {
  CHECK_EQ(whole_and_split("PING a\0b\r\n"s), "request 4:PING 3:a\0b\npending 0\n"s);
}

TEST_CASE("unbalanced quotes are refused with Redis's text") {
  for (const char* line : {"PING \"a\"b", "PING a\"b c\"'x'", "PING \"a", "PING 'a", "PING \"\"''",
                           "PING \"a\\\"", "PING \"a\\", "\"", "'", "PING 'a\\'"}) {
    CAPTURE(line);
    CHECK_EQ(error_of(line + "\r\n"s), "unbalanced quotes in request");
  }
}

TEST_CASE("a line of HTTP closes the connection") {
  for (const char* line :
       {"POST / HTTP/1.1\r\n", "POST\r\n", "post x\r\n", "Host: x\r\n", "host:x\r\n", "HOST:\n"}) {
    CAPTURE(line);
    CHECK_EQ(whole_and_split(line + "PING\r\n"s), "http\n");
  }
  CHECK_EQ(whole_and_split("GET / HTTP/1.1\r\nHost: x\r\nPING\r\n"),
           "request 3:GET 1:/ 8:HTTP/1.1\nhttp\n");
  CHECK_EQ(whole_and_split("POSTS Host\r\n"), "request 5:POSTS 4:Host\npending 0\n");
}

TEST_CASE("after an error or HTTP nothing is parsed until reset") {
  RespParser parser;
  std::vector<Bytes> args;
  std::string bad = "*x\r\n", good = "PING\r\n";
  CHECK(parser.parse(bad, args).outcome == RespParser::Outcome::kError);
  CHECK(parser.parse(good, args).outcome == RespParser::Outcome::kError);
  CHECK_EQ(parser.error(), "Protocol error: invalid multibulk length");
  parser.reset();
  CHECK(parser.parse(good, args).outcome == RespParser::Outcome::kRequest);
  std::string http = "POST / HTTP/1.1\r\n";
  CHECK(parser.parse(http, args).outcome == RespParser::Outcome::kHttp);
  CHECK(parser.parse(good, args).outcome == RespParser::Outcome::kHttp);
  parser.reset();
  CHECK(parser.parse(good, args).outcome == RespParser::Outcome::kRequest);
}

TEST_CASE("a pending bulk tells how many bytes it still needs") {
  RespParser parser;
  std::vector<Bytes> args;
  std::string buffer = "*2\r\n$3\r\nGET\r\n$1000\r\nabc";
  const RespParser::Result result = parser.parse(buffer, args);
  CHECK(result.outcome == RespParser::Outcome::kNeedMore);
  CHECK_EQ(result.bytes, 999);
  CHECK(parser.mid_request());
}

TEST_CASE("parse_append gathers several requests in one vector and leaves it alone otherwise") {
  RespParser parser;
  std::vector<Bytes> args;
  std::string buffer = "*1\r\n$1\r\na\r\nb c\r\n*2\r\n$1\r\nd\r\n";
  size_t at = 0;
  for (int i = 0; i < 2; ++i) {
    const auto result = parser.parse_append({buffer.data() + at, buffer.size() - at}, args);
    REQUIRE(result.outcome == RespParser::Outcome::kRequest);
    at += result.bytes;
  }
  CHECK_EQ(args, std::vector<Bytes>{"a", "b", "c"});
  CHECK(parser.parse_append({buffer.data() + at, buffer.size() - at}, args).outcome ==
        RespParser::Outcome::kNeedMore);
  CHECK_EQ(args.size(), 3);
}

TEST_CASE("limits that change take effect with the next header") {
  RespParser parser(unauthenticated());
  std::vector<Bytes> args;
  std::string buffer = "*11\r\n";
  parser.set_limits(RespLimits{});
  CHECK(parser.parse(buffer, args).outcome == RespParser::Outcome::kNeedMore);
}

// --- against a naive model -----------------------------------------------------------------------

// Parses one request with plain string operations; false when `rest` has no complete request.
bool model_step(std::string& rest, const RespLimits& limits, std::string& transcript) {
  const auto stop = [&](const std::string& text) {
    transcript += "error Protocol error: " + text + "\n";
    rest.clear();
    return false;
  };
  const auto line = [&](const std::string& text, char end) -> std::string::size_type {
    const auto at = text.substr(0, limits.max_inline_bytes + 1).find(end);
    if (at == std::string::npos) {
      return text.size() > limits.max_inline_bytes ? std::string::npos : text.size();
    }
    return end == '\r' && at + 1 == text.size() ? text.size() : at;
  };
  if (rest.empty()) return false;
  std::vector<Bytes> args;
  if (rest[0] != '*') {
    const auto end = line(rest, '\n');
    if (end == std::string::npos) return stop("too big inline request");
    if (end == rest.size()) return false;
    std::string text = rest.substr(0, end);
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (!split_quoted_args(text, args)) return stop("unbalanced quotes in request");
    rest.erase(0, end + 1);
    if (!args.empty()) test::append_request(transcript, args);
    return true;
  }
  size_t at = line(rest, '\r');
  if (at == std::string::npos) return stop("too big mbulk count string");
  if (at == rest.size()) return false;
  const auto count = parse_i64(Bytes(rest).substr(1, at - 1));
  if (!count || *count > limits.max_args) return stop("invalid multibulk length");
  if (*count > 10 && !limits.authenticated) return stop("unauthenticated multibulk length");
  at += 2;
  for (int64_t i = 0; i < *count; ++i) {
    const std::string tail = rest.substr(at);
    const auto end = line(tail, '\r');
    if (end == std::string::npos) return stop("too big bulk count string");
    if (end == tail.size()) return false;
    if (tail[0] != '$') {
      return stop("expected '$', got '"s + (strchr("\r\n", tail[0]) ? ' ' : tail[0]) + "'");
    }
    const auto length = parse_i64(Bytes(tail).substr(1, end - 1));
    if (!length || *length < 0 || *length > limits.max_bulk_bytes) {
      return stop("invalid bulk length");
    }
    if (*length > 16384 && !limits.authenticated) return stop("unauthenticated bulk length");
    at += end + 2 + static_cast<size_t>(*length) + 2;
    if (rest.size() < at) return false;
    args.push_back(Bytes(rest).substr(at - 2 - static_cast<size_t>(*length), *length));
  }
  if (!args.empty()) test::append_request(transcript, args);
  rest.erase(0, at);
  return true;
}

std::string model(const std::string& input, const RespLimits& limits) {
  std::string rest = input, transcript;
  while (model_step(rest, limits, transcript)) {
  }
  if (transcript.rfind("error", 0) == 0 || transcript.find("\nerror ") != std::string::npos) {
    return transcript;
  }
  return transcript + "pending " + std::to_string(rest.size()) + "\n";
}

std::string random_input(std::mt19937_64& random) {
  const auto below = [&](size_t n) { return random() % n; };
  const auto pick = [&](const std::vector<std::string>& all) { return all[below(all.size())]; };
  std::string input;
  for (size_t requests = below(6); requests > 0; --requests) {
    if (below(4) == 0) {
      for (size_t words = below(4); words > 0; --words) {
        input += pick({"GET ", "'a b' ", "\"\\x41\\n\" ", "\"", "k ", " ", "\\", "a\"b\" ", "\t"});
      }
      input += pick({"\r\n", "\n", "\r\r\n", ""});
      continue;
    }
    const size_t count = below(5);
    input += "*" + std::to_string(count) + "\r\n";
    for (size_t i = 0; i < count; ++i) {
      const std::string bulk(below(below(8) == 0 ? 200 : 12), pick({"a", "\r", "\n", "$"})[0]);
      input += "$" + std::to_string(bulk.size()) + "\r\n" + bulk + "\r\n";
    }
  }
  // Most damaged inputs differ from a good one in a byte or two.
  for (size_t damage = below(8) < 3 ? below(4) : 0; damage > 0 && !input.empty(); --damage) {
    const size_t at = below(input.size());
    switch (below(3)) {
      case 0:
        input.erase(at, 1 + below(3));
        break;
      case 1:
        input.insert(at, pick({"\r", "\n", "-", "0", "9", "*", "$", "\"", "x", "99999"}));
        break;
      default:
        input[at] = pick({"\r", "\n", "-", "0", "9", "*", "$", "'", "x", "1"})[0];
    }
  }
  return input;
}

TEST_CASE("any input in any split gives what a naive parser of the whole input gives") {
  const char* chosen = std::getenv("SLUICE_TEST_SEED");
  const uint64_t seed =
      chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : std::random_device{}();
  INFO("rerun with SLUICE_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  RespLimits strict = unauthenticated();
  strict.max_inline_bytes = 20;
  strict.max_bulk_bytes = 60;
  strict.max_args = 3;
  for (int round = 0; round < 20000; ++round) {
    const std::string input = random_input(random);
    const RespLimits limits = round % 3 == 0 ? strict : RespLimits{};
    std::vector<size_t> pieces;
    const size_t largest = 1 + random() % 40;
    for (size_t sum = 0; sum < input.size(); sum += pieces.back()) {
      pieces.push_back(1 + random() % largest);
    }
    const std::string expected = model(input, limits);
    const std::string whole = parse_whole(input, limits);
    const std::string split = parse_in_pieces(input, pieces, limits);
    if (whole != expected || split != expected) {
      CAPTURE(input);
      CHECK_EQ(whole, expected);
      CHECK_EQ(split, expected);
      break;
    }
  }
}

// --- cost ----------------------------------------------------------------------------------------

TEST_CASE("a request of many small bulks in small reads costs linear time") {
  const int count = 200000;
  std::string input = "*" + std::to_string(count) + "\r\n";
  for (int i = 0; i < count; ++i) input += "$1\r\nx\r\n";
  RespParser parser;
  std::vector<Bytes> args;
  const auto start = std::chrono::steady_clock::now();
  RespParser::Result result{};
  for (size_t have = 16; have < input.size() + 16; have += 16) {
    result = parser.parse({input.data(), std::min(have, input.size())}, args);
  }
  CHECK(result.outcome == RespParser::Outcome::kRequest);
  CHECK_EQ(args.size(), count);
  // Rescanning would take minutes; this takes milliseconds even under sanitizers.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a long line in single bytes costs linear time") {
  std::string input = std::string(65000, 'a') + "\n";
  RespParser parser;
  std::vector<Bytes> args;
  const auto start = std::chrono::steady_clock::now();
  for (size_t have = 1; have < input.size(); ++have) {
    REQUIRE(parser.parse({input.data(), have}, args).outcome == RespParser::Outcome::kNeedMore);
  }
  CHECK(parser.parse(input, args).outcome == RespParser::Outcome::kRequest);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
}  // namespace sluice
