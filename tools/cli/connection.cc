#include "tools/cli/connection.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cstdlib>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/queue/field_help.h"
#include "net/http/message.h"
#include "tools/cli/replies.h"

namespace sluice::cli {

namespace {

using Kind = RespValue::Kind;

constexpr int64_t kConnectMs = 5000;
// No server's proto-max-bulk-len is less.
constexpr size_t kLeastBulkLimit = 1 << 20;

timeval to_timeval(int64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
}

struct FreeReply {
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};

RespValue to_value(const redisReply& reply) {
  RespValue value;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      value.kind = Kind::kInteger;
      value.integer = reply.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      value.kind = Kind::kText;
      value.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_ERROR:
      value.kind = Kind::kError;
      value.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_ARRAY:
      value.kind = Kind::kArray;
      value.items.reserve(reply.elements);
      for (size_t i = 0; i < reply.elements; ++i) {
        value.items.push_back(to_value(*reply.element[i]));
      }
      break;
    default:
      break;
  }
  return value;
}

std::string password_of(const Arguments& arguments) {
  if (const auto given = arguments.value("--pass")) return *given;
  for (const char* name : {"SLUICE_AUTH", "REDISCLI_AUTH"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) return value;
  }
  return {};
}

// The option may be meant as one that the command does not have: --key as that of a job.
Failure tls_is_missing(const std::string& option, const CommandRow* command) {
  Failure failure = usage_error(option + " requires --tls");
  if (option != "--key" || command == nullptr) return failure;
  for (const auto& group : command->options) {
    for (const Option& own : group) failure.allowed.emplace_back(own.name);
  }
  if (failure.allowed.empty()) return failure;
  failure.text += ", whose private key it is; " + std::string(command->name) + " takes " +
                  listed(failure.allowed);
  return failure;
}

// Null without --tls.
std::shared_ptr<const TlsClientContext> tls_of(const Arguments& arguments) {
  const auto given = [&](const char* name) { return arguments.common_value(name).value_or(""); };
  if (!arguments.has("--tls")) {
    for (const Option& option : common_options()) {
      if (option.tls && arguments.common_value(option.name)) {
        throw tls_is_missing(option.name, arguments.command());
      }
    }
    return nullptr;
  }
  if (arguments.value("-s")) throw usage_error("--tls requires a host and a port, not -s");
  TlsClientRules rules;
  rules.ca_file = given("--cacert");
  rules.ca_directory = given("--cacertdir");
  rules.certificate_file = given("--cert");
  rules.key_file = given("--key");
  rules.ciphers = given("--tls-ciphers");
  rules.ciphersuites = given("--tls-ciphersuites");
  rules.verify = !arguments.has("--insecure");
  if (rules.certificate_file.empty() != rules.key_file.empty()) {
    throw usage_error(
        "--cert and --key go together; --key goes before a command that has its own --key");
  }
  auto context = TlsClientContext::load(rules);
  if (!context.ok()) throw usage_error(context.status().message());
  return *context;
}

std::vector<std::pair<std::string, int>> sentinels_of(const Arguments& arguments) {
  constexpr int kUsualPort = 26379;
  std::vector<std::pair<std::string, int>> all;
  const std::string list = arguments.value("--sentinel").value_or("");
  for (const char* other : {"-h", "-p", "-s"}) {
    if (!list.empty() && arguments.has(other)) {
      throw usage_error(std::string("use --sentinel or ") + other + ", not both");
    }
  }
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, end - at);
    // An address of version 6 may be in brackets, as in a URL; without a port it must be.
    const size_t bracket = part.starts_with('[') ? part.find(']') : std::string::npos;
    const bool in_brackets = bracket != std::string::npos;
    const size_t colon = std::min(in_brackets ? bracket + 1 : part.rfind(':'), part.size());
    const auto port = colon == part.size() ? kUsualPort : parse_i64(part.substr(colon + 1));
    const std::string host = in_brackets ? part.substr(1, bracket - 1) : part.substr(0, colon);
    if (host.empty() || (colon < part.size() && part[colon] != ':') || !port || *port < 1 ||
        *port > kMaxPort) {
      throw usage_error("--sentinel takes HOST:PORT,HOST:PORT,..., not " + part);
    }
    all.emplace_back(host, static_cast<int>(*port));
    at = end + 1;
  }
  return all;
}

// What this program sends and changes nothing, besides Q.CONFIG.
constexpr Bytes kReads[] = {"AUTH",   "CONFIG", "EXISTS",  "INFO", "MULTI",  "Q.EVENTS", "Q.GET",
                            "Q.LIST", "Q.LOG",  "Q.STATS", "SCAN", "SELECT", "SENTINEL", "TIME"};

bool is_change(const Words& words) {
  const auto has = [&](Bytes word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (words[0] == "Q.CONFIG") return has("SET") || has("RESET");
  return std::find(std::begin(kReads), std::end(kReads), words[0]) == std::end(kReads);
}

struct Meaning {
  Bytes code;
  Bytes text;
};

constexpr Meaning kMeanings[] = {
    {"ADOPTED", "the queue consists of adopted Redis keys, and this needs a native queue"},
    {"BADFIELD", "invalid value of this option or field"},
    {"CHANGED", "the field has another value now"},
    {"DUPLICATE", "the id is already in use"},
    {"GONE", "the job is held by another lease, has ended, or does not exist"},
    {"GROUPFULL", "the group is full"},
    {"NEEDFAILED", "a required job did not complete"},
    {"NOJOB", "there is no such job"},
    {"PAUSED", "the queue or the group is paused and accepts no new jobs"},
    {"QFULL", "the queue is full"},
    {"STALELEASE", "the lease is not the job's current one"},
    {"TOOBIG", "a payload, result or progress is too large"},
    {"TOOLATE", "the job would wait longer than its limit"},
    {"TRIMMED", "events after this number are no longer kept, or never existed"},
};

}  // namespace

Address Address::from(const Arguments& arguments) {
  Address address;
  address.host = arguments.value("-h").value_or(address.host);
  address.port = static_cast<int>(arguments.integer("-p", address.port, 1, 65535));
  address.socket = arguments.value("-s").value_or("");
  address.user = arguments.value("--user").value_or("");
  address.password = password_of(arguments);
  address.database = static_cast<int>(arguments.integer("-n", 0, 0, 1'000'000));
  address.tls = tls_of(arguments);
  address.tls_name = arguments.value("--sni").value_or("");
  address.sentinels = sentinels_of(arguments);
  address.sentinel_name = arguments.value("--sentinel-name").value_or(address.sentinel_name);
  return address;
}

std::string Address::text() const {
  return socket.empty() ? host + ":" + std::to_string(port) : socket;
}

std::string explain_error(const std::string& text) {
  const Bytes code = Bytes(text).substr(0, text.find(' '));
  for (const Meaning& meaning : kMeanings) {
    if (code == meaning.code) return text + ": " + std::string(meaning.text);
  }
  return text;
}

Failure failure_of(const std::string& error) {
  Failure failure{kServerError, explain_error(error)};
  failure.reply = error;
  return failure;
}

void Connection::Free::operator()(redisContext* context) const { ::redisFree(context); }

Connection::~Connection() = default;

void Connection::close() {
  is_connected_ = false;
  tls_.reset();
  context_.reset();
}

void Connection::fail(std::string why) {
  if (why.empty()) why = context_ == nullptr ? "not enough memory" : context_->errstr;
  const bool no_resp = context_ != nullptr && context_->reader->err == REDIS_ERR_PROTOCOL;
  const bool is_http = no_resp && why.find("\"H\"") != std::string::npos;
  if (no_resp) why = "not a Redis protocol reply: " + why;
  if (is_http) why += "; is it an HTTP port? -p takes the server's port";
  const bool is_lost = is_connected_ && !no_resp;
  if (is_lost && may_change_) why += "; the change may have been made";
  close();
  throw Failure{kNoConnection, (is_lost ? "lost the connection to " : "cannot connect to ") +
                                   address_.text() + ": " + why};
}

void Connection::limit_waits(int64_t ms) {
  if (::redisSetTimeout(context_.get(), to_timeval(ms)) != REDIS_OK) fail();
}

void Connection::set_patience(int64_t ms) {
  patience_ms_ = ms;
  if (context_ != nullptr) limit_waits(ms);
}

int64_t Connection::connect_ms() const {
  return patience_ms_ == 0 ? kConnectMs : std::min(kConnectMs, patience_ms_);
}

void Connection::begin_tls() {
  limit_waits(connect_ms());
  const std::string& name = address_.tls_name.empty() ? address_.host : address_.tls_name;
  tls_ = std::make_unique<TlsChannel>(*address_.tls, name, context_->fd);
  const Status status = tls_->shake_hands(std::chrono::milliseconds(connect_ms()));
  if (!status.ok()) fail(status.message());
}

void Connection::find_primary() {
  std::string why;
  for (const auto& [host, port] : address_.sentinels) {
    Address at;
    at.host = host;
    at.port = port;
    try {
      Connection sentinel(at);
      // One that does not answer shall not keep the others from being asked.
      sentinel.set_patience(connect_ms());
      const RespValue reply =
          sentinel.call({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", address_.sentinel_name});
      if (reply.items.size() == 2) {
        address_.host = reply.items[0].text;
        address_.port = static_cast<int>(parse_i64(reply.items[1].text).value_or(0));
        return;
      }
      why = at.text() + " knows no primary of " + address_.sentinel_name;
    } catch (const Failure& failure) {
      why = failure.text;
    }
  }
  throw Failure{kNoConnection, "no Sentinel names a primary: " + why};
}

bool Connection::find_node(const std::string& host, int port) {
  Address at;
  at.host = host;
  at.port = port;
  Connection sentinel(at);
  sentinel.set_patience(connect_ms());
  const std::string& name = address_.sentinel_name;
  const std::string id = sentinel.call({"SENTINEL", "MYID"}).text;
  std::vector<RespValue> nodes = as_maps(sentinel.call({"SENTINEL", "REPLICAS", name})).items;
  // One that leads, as far as it knows.
  nodes.push_back(as_map(sentinel.call({"SENTINEL", "MASTER", name})));
  for (const RespValue& node : nodes) {
    if (text_of(node, "runid") != id) continue;
    address_.host = text_of(node, "ip");
    address_.port = static_cast<int>(parse_i64(text_of(node, "port")).value_or(0));
    return true;
  }
  return false;
}

void Connection::open_any(const Failure& why) {
  for (const auto& [host, port] : address_.sentinels) {
    try {
      if (find_node(host, port)) return open();
    } catch (const Failure& failure) {
      if (failure.code != kNoConnection) throw;
    }
  }
  throw why;
}

void Connection::connect() {
  try {
    if (!address_.sentinels.empty()) find_primary();
    open();
  } catch (const Failure& failure) {
    if (!takes_any_ || failure.code != kNoConnection) throw;
    open_any(failure);
  }
}

void Connection::open() {
  const timeval limit = to_timeval(connect_ms());
  context_.reset(address_.socket.empty()
                     ? ::redisConnectWithTimeout(address_.host.c_str(), address_.port, limit)
                     : ::redisConnectUnixWithTimeout(address_.socket.c_str(), limit));
  if (context_ == nullptr || context_->err != 0) fail();
  if (address_.tls != nullptr) begin_tls();
  limit_waits(patience_ms_);
  Words login = {"AUTH"};
  if (!address_.user.empty()) login.push_back(address_.user);
  login.push_back(address_.password);
  const auto expect = [&](const Words& words) {
    const RespValue reply = try_call(words);
    if (!reply.is_error()) return;
    close();
    throw failure_of(reply.text);
  };
  if (!address_.user.empty() || !address_.password.empty()) expect(login);
  if (address_.database != 0) expect({"SELECT", std::to_string(address_.database)});
  is_connected_ = true;
}

void Connection::send(const Words& words) {
  if (context_ == nullptr) connect();
  may_change_ = is_change(words);
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto count = static_cast<int>(words.size());
  if (tls_ == nullptr) {
    if (::redisAppendCommandArgv(context_.get(), count, texts.data(), sizes.data()) != REDIS_OK) {
      fail();
    }
    return;
  }
  char* request = nullptr;
  const int size = ::redisFormatCommandArgv(&request, count, texts.data(), sizes.data());
  if (size < 0) fail("not enough memory");
  tls_->append(request, static_cast<size_t>(size));
  ::redisFreeCommand(request);
}

RespValue Connection::receive() {
  void* received = nullptr;
  if (context_ == nullptr) fail();
  if (tls_ != nullptr) {
    const Result<void*> reply = tls_->read_reply(context_->reader);
    if (!reply.ok()) fail(reply.status().message());
    received = *reply;
  } else if (::redisGetReply(context_.get(), &received) != REDIS_OK) {
    fail();
  }
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(received));
  return to_value(*reply);
}

// A server ends a connection at a word that is longer than it reads, with or without an answer.
void Connection::refuse_large(const Words& words) {
  size_t longest = 0;
  for (const std::string& word : words) longest = std::max(longest, word.size());
  if (longest <= kLeastBulkLimit) return;
  close();
  RespValue reply;
  try {
    reply = try_call({"CONFIG", "GET", "proto-max-bulk-len"});
  } catch (const Failure&) {
    return;
  }
  const auto limit = reply.items.size() == 2 ? parse_u64(reply.items[1].text) : std::nullopt;
  if (!limit || *limit >= longest) return;
  throw Failure{kServerError, "TOOBIG the server reads at most " + std::to_string(*limit) +
                                  " bytes at once (proto-max-bulk-len), and not " +
                                  std::to_string(longest)};
}

RespValue Connection::try_call(const Words& words) {
  RespValue reply;
  try {
    send(words);
    reply = receive();
  } catch (const Failure&) {
    refuse_large(words);
    throw;
  }
  if (reply.is_error() && reply.text.starts_with("ERR Protocol error")) refuse_large(words);
  return reply;
}

RespValue Connection::call(const Words& words) {
  RespValue reply = try_call(words);
  if (reply.is_error()) throw explain(words, reply.text);
  return reply;
}

Failure Connection::explain(const Words& words, const std::string& text) {
  constexpr Bytes kBadField = "BADFIELD field=";
  if (!text.starts_with(kBadField) || words.size() < 2) return failure_of(text);
  const Bytes rest = Bytes(text).substr(kBadField.size());
  const auto field = percent_decode(rest.substr(0, rest.find(' '))).value_or("");
  std::vector<std::string> bands;
  if (takes_band(field)) {
    const RespValue reply = as_map(try_call({"Q.CONFIG", words[1], "GET", "bands"}));
    bands = band_names(text_of(reply, "bands"));
  }
  FieldAdvice advice = advise(field, words, bands);
  Failure failure = failure_of(text);
  failure.text = text + ": " + advice_text(advice);
  failure.allowed = std::move(advice.allowed);
  failure.nearest = std::move(advice.nearest);
  failure.field = std::move(advice.field);
  return failure;
}

}  // namespace sluice::cli
