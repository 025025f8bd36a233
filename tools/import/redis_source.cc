#include "tools/import/redis_source.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/rdb/function_payload.h"
#include "engine/rdb/value.h"
#include "net/process/wall_clock.h"
#include "tools/import/limits.h"

namespace sluice::import {

namespace {

constexpr size_t kReceiveBytes = 256 * 1024;
// Commands in flight at a time; the server buffers their replies.
constexpr size_t kPipelinedKeys = 64;
constexpr Bytes kScanCount = "512";
constexpr time_t kPatienceSeconds = 60;

// The value of a line "name:value" of INFO.
std::string info_field(Bytes info, const std::string& name) {
  const size_t begin = info.find("\n" + name + ":");
  if (begin == Bytes::npos) return {};
  const Bytes rest = info.substr(begin + name.size() + 2);
  return std::string(rest.substr(0, rest.find_first_of("\r\n")));
}

Status error_reply(const RedisReply& reply) { return invalid("Redis replied: " + reply.text); }

std::string place_of(int database, Bytes name) {
  return "the key " + printable_bytes(name) + " of database " + std::to_string(database);
}

// DUMP of Sluice refuses its native queues.
Status refused_value(const std::string& place, const RedisReply& reply) {
  const bool is_queue = reply.text.starts_with("ERR RDB has no form");
  return invalid(place + ": " + error_reply(reply).message() +
                 (is_queue ? "; `sluice backup` copies a whole server of Sluice" : ""));
}

}  // namespace

RedisSource::~RedisSource() {
  if (socket_ >= 0) ::close(socket_);
}

// --- The connection ---

Status RedisSource::open_socket(const RedisAddress& address) {
  if (address.port.empty()) {
    sockaddr_un path{};
    path.sun_family = AF_UNIX;
    if (address.host.size() >= sizeof(path.sun_path)) return invalid("the path is too long");
    std::memcpy(path.sun_path, address.host.data(), address.host.size());
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good =
        socket_ >= 0 && ::connect(socket_, reinterpret_cast<sockaddr*>(&path), sizeof(path)) == 0;
    return good ? Status() : io_error(std::strerror(errno));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (failed != 0) return io_error(::gai_strerror(failed));
  Status status = io_error("no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    socket_ = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (socket_ >= 0 && ::connect(socket_, at->ai_addr, at->ai_addrlen) == 0) {
      status = {};
      break;
    }
    status = io_error(std::strerror(errno));
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  ::freeaddrinfo(found);
  return status;
}

Status RedisSource::connect(const RedisAddress& address) {
  const std::string where = address.port.empty() ? address.host : address.host + ":" + address.port;
  const Status opened = open_socket(address);
  if (!opened.ok()) return io_error("cannot connect to " + where + ": " + opened.message());
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const int on = 1;
  if (!address.port.empty()) ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Result<RedisReply> reply = RedisReply();
  if (!address.user.empty()) {
    reply = ask({"AUTH", address.user, address.password});
  } else if (!address.password.empty()) {
    reply = ask({"AUTH", address.password});
  }
  if (reply.ok()) reply = ask({"INFO", "server"});
  if (!reply.ok()) return reply.status();
  version_ = info_field(reply->text, "redis_version");
  constexpr int kFirstWithExpireTime = 7;
  exact_expiries_ = std::atoi(version_.c_str()) >= kFirstWithExpireTime;
  return {};
}

void RedisSource::send(std::initializer_list<Bytes> words) {
  output_ += "*" + std::to_string(words.size()) + "\r\n";
  for (const Bytes word : words) {
    output_ += "$" + std::to_string(word.size()) + "\r\n";
    output_ += word;
    output_ += "\r\n";
  }
}

bool RedisSource::flush() {
  size_t sent = 0;
  while (sent < output_.size()) {
    const ssize_t count =
        ::send(socket_, output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      errno_ = errno;
      return false;
    }
    sent += static_cast<size_t>(count);
  }
  output_.clear();
  return true;
}

bool RedisSource::fill() {
  input_.erase(0, taken_);
  taken_ = 0;
  const size_t before = input_.size();
  input_.resize(before + kReceiveBytes);
  ssize_t count = 0;
  do {
    count = ::recv(socket_, input_.data() + before, kReceiveBytes, 0);
  } while (count < 0 && errno == EINTR);
  errno_ = count < 0 ? errno : 0;
  input_.resize(before + (count > 0 ? static_cast<size_t>(count) : 0));
  bytes_read_ += count > 0 ? static_cast<uint64_t>(count) : 0;
  return count > 0;
}

Status RedisSource::lost() const {
  if (errno_ == EAGAIN) return io_error("no reply from Redis for a minute");
  return io_error(std::string("lost the connection to Redis") +
                  (errno_ == 0 ? "" : std::string(": ") + std::strerror(errno_)));
}

bool RedisSource::receive_line(std::string& line) {
  size_t end = 0;
  while ((end = input_.find("\r\n", taken_)) == std::string::npos) {
    if (!fill()) return false;
  }
  line = input_.substr(taken_, end - taken_);
  taken_ = end + 2;
  return !line.empty();
}

bool RedisSource::receive_bytes(size_t count, std::string& bytes) {
  while (input_.size() - taken_ < count + 2) {
    if (!fill()) return false;
  }
  bytes = input_.substr(taken_, count);
  taken_ += count + 2;
  return true;
}

bool RedisSource::receive(RedisReply& reply) {
  reply = {};
  std::string line;
  if (!receive_line(line)) return false;
  reply.kind = line[0];
  reply.text = line.substr(1);
  if (reply.kind == '+' || reply.kind == '-') return true;
  const auto number = parse_i64(reply.text);
  if (!number) return false;
  reply.integer = *number;
  reply.null = *number < 0 && reply.kind != ':';
  if (reply.kind == ':' || reply.null) return true;
  if (reply.kind == '$') return receive_bytes(static_cast<size_t>(*number), reply.text);
  if (reply.kind != '*') return false;
  for (int64_t i = 0; i < *number; ++i) {
    if (!receive(reply.elements.emplace_back())) return false;
  }
  return true;
}

Result<RedisReply> RedisSource::ask(std::initializer_list<Bytes> words) {
  RedisReply reply;
  send(words);
  if (!flush() || !receive(reply)) return lost();
  if (reply.kind == '-') return error_reply(reply);
  return reply;
}

// --- Reading the data ---

Result<std::vector<RedisSource::Database>> RedisSource::find_databases() {
  const Result<RedisReply> reply = ask({"INFO", "keyspace"});
  if (!reply.ok()) return reply.status();
  std::vector<Database> databases;
  // db0:keys=5,expires=0,avg_ttl=0
  for (int number = 0; number < 1 << 14; ++number) {
    const std::string sizes = info_field(reply->text, "db" + std::to_string(number));
    if (!sizes.starts_with("keys=")) continue;
    databases.push_back({number, std::strtoull(sizes.c_str() + 5, nullptr, 10)});
  }
  return databases;
}

Status RedisSource::read_libraries(const PutLibrary& put) {
  const Result<RedisReply> reply = ask({"FUNCTION", "DUMP"});
  // Redis before 7.0 has no functions.
  if (reply.status().message().starts_with("Redis replied: ERR unknown command")) return {};
  if (!reply.ok()) return reply.status();
  std::vector<std::string> codes;
  if (rdb::read_functions(reply->text, kMaxStringBytes, codes) != rdb::FunctionsFault::kNone) {
    return invalid("cannot parse the payload of FUNCTION DUMP");
  }
  for (const std::string& code : codes) {
    const Status status = put(code);
    if (!status.ok()) return invalid("cannot load a function library: " + status.message());
  }
  return {};
}

Status RedisSource::read_keys(int database, const PutKey& put) {
  Result<RedisReply> reply = ask({"SELECT", std::to_string(database)});
  std::string cursor = "0";
  do {
    if (reply.ok()) reply = ask({"SCAN", cursor, "COUNT", kScanCount});
    if (!reply.ok()) return reply.status();
    if (reply->elements.size() != 2) return invalid("cannot parse the reply to SCAN");
    cursor = reply->elements[0].text;
    Status status = read_values(database, reply->elements[1].elements, put);
    if (!status.ok()) return status;
  } while (cursor != "0");
  return {};
}

Status RedisSource::read_values(int database, const std::vector<RedisReply>& names,
                                const PutKey& put) {
  for (size_t begin = 0; begin < names.size(); begin += kPipelinedKeys) {
    const size_t end = std::min(names.size(), begin + kPipelinedKeys);
    for (size_t i = begin; i < end; ++i) {
      send({exact_expiries_ ? "PEXPIRETIME" : "PTTL", names[i].text});
      send({"DUMP", names[i].text});
    }
    if (!flush()) return lost();
    for (size_t i = begin; i < end; ++i) {
      RedisReply expiry;
      RedisReply payload;
      if (!receive(expiry) || !receive(payload)) return lost();
      if (expiry.kind == '-') return error_reply(expiry);
      if (payload.kind == '-') return refused_value(place_of(database, names[i].text), payload);
      constexpr int64_t kNoKey = -2;
      if (payload.null || expiry.integer == kNoKey) {
        ++vanished_;
        continue;
      }
      Status status =
          put_value(database, names[i].text, payload.text, expire_ms(expiry.integer), put);
      if (!status.ok()) return status;
    }
  }
  return {};
}

int64_t RedisSource::expire_ms(int64_t replied_ms) const {
  if (replied_ms < 0) return 0;
  return exact_expiries_ ? replied_ms : wall_ms() + std::max<int64_t>(replied_ms, 1);
}

Status RedisSource::put_value(int database, Bytes name, Bytes payload, int64_t expire_ms,
                              const PutKey& put) {
  const std::string place = place_of(database, name);
  OwnedEntry entry;
  switch (rdb::read_payload(payload, kMaxStringBytes, name, entry)) {
    case rdb::PayloadFault::kFooter:
      return invalid(place + " is in an unsupported format: formats up to Redis 7.0 are supported");
    case rdb::PayloadFault::kData: {
      const Bytes foreign = rdb::foreign_type_name(static_cast<uint8_t>(payload[0]));
      return invalid(place +
                     (foreign.empty() ? " cannot be parsed" : " holds " + std::string(foreign)));
    }
    case rdb::PayloadFault::kNone:
      break;
  }
  if (expire_ms != 0) entry->set_expire_ms(expire_ms);
  const Status status = put(database, std::move(entry));
  return status.ok() ? status : invalid(place + ": " + status.message());
}

}  // namespace sluice::import
