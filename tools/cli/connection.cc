#include "tools/cli/connection.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <cstdlib>

#include "tools/cli/failure.h"

namespace sluice::cli {

namespace {

using Kind = RespValue::Kind;

constexpr int64_t kConnectMs = 5000;

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

struct Meaning {
  Bytes code;
  Bytes text;
};

constexpr Meaning kMeanings[] = {
    {"ADOPTED", "the queue shows plain Redis keys, and this needs a queue of jobs"},
    {"BADFIELD", "a bad value of this option or field"},
    {"DUPLICATE", "the id is in use"},
    {"GONE", "the job is active elsewhere, has ended, or is unknown"},
    {"GROUPFULL", "the group holds as many jobs as it may"},
    {"NEEDFAILED", "a job that is needed has ended otherwise than completed"},
    {"NOJOB", "there is no such job"},
    {"PAUSED", "the queue or the group takes no new jobs"},
    {"QFULL", "the queue holds as many jobs as it may"},
    {"STALELEASE", "the lease is not the job's: it has ended, or another has begun"},
    {"TOOBIG", "a payload, result or progress is too large"},
    {"TOOLATE", "the job would wait for longer than it may"},
    {"TRIMMED", "events after this number are not kept any more, or never were"},
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

void Connection::Free::operator()(redisContext* context) const { ::redisFree(context); }

Connection::~Connection() = default;

void Connection::close() { context_.reset(); }

void Connection::fail() {
  std::string why = context_ == nullptr ? "not enough memory" : context_->errstr;
  const bool no_resp = context_ != nullptr && context_->err == REDIS_ERR_PROTOCOL;
  if (no_resp) why = "it does not speak the Redis protocol: " + why;
  close();
  throw Failure{kNoConnection, "no connection to " + address_.text() + ": " + why};
}

void Connection::apply_patience() {
  if (::redisSetTimeout(context_.get(), to_timeval(patience_ms_)) != REDIS_OK) fail();
}

void Connection::set_patience(int64_t ms) {
  patience_ms_ = ms;
  if (context_ != nullptr) apply_patience();
}

void Connection::connect() {
  const timeval limit = to_timeval(kConnectMs);
  context_.reset(address_.socket.empty()
                     ? ::redisConnectWithTimeout(address_.host.c_str(), address_.port, limit)
                     : ::redisConnectUnixWithTimeout(address_.socket.c_str(), limit));
  if (context_ == nullptr || context_->err != 0) fail();
  apply_patience();
  Words login = {"AUTH"};
  if (!address_.user.empty()) login.push_back(address_.user);
  login.push_back(address_.password);
  const auto expect = [&](const Words& words) {
    const RespValue reply = try_call(words);
    if (!reply.is_error()) return;
    close();
    throw Failure{kServerError, explain_error(reply.text)};
  };
  if (!address_.user.empty() || !address_.password.empty()) expect(login);
  if (address_.database != 0) expect({"SELECT", std::to_string(address_.database)});
}

void Connection::send(const Words& words) {
  if (context_ == nullptr) connect();
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto count = static_cast<int>(words.size());
  if (::redisAppendCommandArgv(context_.get(), count, texts.data(), sizes.data()) != REDIS_OK) {
    fail();
  }
}

RespValue Connection::receive() {
  void* received = nullptr;
  if (context_ == nullptr || ::redisGetReply(context_.get(), &received) != REDIS_OK) fail();
  const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(received));
  return to_value(*reply);
}

RespValue Connection::try_call(const Words& words) {
  send(words);
  return receive();
}

RespValue Connection::call(const Words& words) {
  RespValue reply = try_call(words);
  if (reply.is_error()) throw Failure{kServerError, explain_error(reply.text)};
  return reply;
}

}  // namespace sluice::cli
