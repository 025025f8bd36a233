#include "net/sentinel/sentinel_service.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/access/acl.h"
#include "net/http/http_socket.h"
#include "net/process/clocks.h"
#include "net/resp/resp_parser.h"

namespace sluice {

namespace {

constexpr size_t kLeastRoom = 1024;
constexpr size_t kMaxUnreadBytes = 256U << 10;

// Those of a client that has not authenticated: ten arguments of 16 kB.
RespLimits small_requests() {
  RespLimits limits;
  limits.authenticated = false;
  return limits;
}

}  // namespace

class SentinelConnection : public std::enable_shared_from_this<SentinelConnection> {
 public:
  SentinelConnection(SentinelService& service, int fd, const Endpoints& endpoints)
      : service_(service),
        socket_(service.thread(), fd, endpoints.address.starts_with('['), nullptr),
        parser_(small_requests()),
        input_(kLeastRoom) {
    client_.id = service.thread().state().next_client_id.fetch_add(1, std::memory_order_relaxed);
    client_.address = endpoints.address;
    const ServerState& state = service.thread().state();
    const bool is_local =
        client_.address.starts_with("127.") || client_.address.starts_with("[::1]");
    // Where protected-mode refuses others, only reading is open to them.
    if (is_local || !state.limits.protected_mode.load()) {
      client_.user = service.thread().engine().acl().user_at_connect();
    }
  }

  void read() {
    const auto room = asio::buffer(input_.data() + used_, input_.size() - used_);
    socket_.read_some(room, [self = shared_from_this()](const error_code& error, size_t count) {
      if (!error && self->open_) return self->take(count);
      self->close();
    });
  }

  void publish(Bytes channel, Bytes message) {
    RespReply reply(output_, client_.protocol);
    SentinelCommands::publish(client_, channel, message, reply);
    write();
  }

  // The connection with the least one gives way first.
  std::pair<bool, uint64_t> order_of_end() const {
    return {client_.subscriptions() != 0, client_.id};
  }

  void close() {
    if (!std::exchange(open_, false)) return;
    socket_.close();
    service_.forget(shared_from_this());
  }

 private:
  void take(size_t count) {
    used_ += count;
    size_t at = 0;
    const bool goes_on = run_requests(at);
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
    used_ -= at;
    input_.resize(used_ + std::max(kLeastRoom, needed_));
    ending_ = !goes_on;
    write();
    if (open_ && !ending_) read();
  }

  // Runs the complete requests from `at` on. False: the connection ends when all is written.
  bool run_requests(size_t& at) {
    RespReply reply(output_, client_.protocol);
    std::vector<Bytes> args;
    needed_ = 0;
    while (at < used_) {
      const RespParser::Result result = parser_.parse({input_.data() + at, used_ - at}, args);
      if (result.outcome == RespParser::Outcome::kNeedMore) {
        needed_ = result.bytes;
        return true;
      }
      if (result.outcome == RespParser::Outcome::kError) reply.error("ERR " + parser_.error());
      if (result.outcome == RespParser::Outcome::kRequest) {
        service_.commands().run(client_, args, reply);
      } else if (result.outcome != RespParser::Outcome::kSkipped) {
        return false;
      }
      at += result.bytes;
      if (client_.close_after_reply) return false;
    }
    return true;
  }

  void write() {
    if (!open_ || !writing_.empty()) {
      if (output_.size() > kMaxUnreadBytes) close();
      return;
    }
    if (output_.empty()) {
      if (ending_) close();
      return;
    }
    std::swap(writing_, output_);
    socket_.write_all(asio::buffer(writing_.data(), writing_.size()),
                      [self = shared_from_this()](const error_code& error, size_t) {
                        self->writing_.clear();
                        error ? self->close() : self->write();
                      });
  }

  SentinelService& service_;
  HttpSocket socket_;
  RespParser parser_;
  Client client_;
  std::vector<char> input_;
  size_t used_ = 0;
  size_t needed_ = 0;  // bytes that a request lacks at least
  ByteBuffer output_;
  ByteBuffer writing_;
  bool open_ = true;
  bool ending_ = false;
};

SentinelService::SentinelService(IoThread& thread, GroupPort& group, SentinelOptions options)
    : thread_(thread), group_(group), commands_(thread.engine(), group, std::move(options)) {}

SentinelService::~SentinelService() = default;

void SentinelService::start() {
  group_.follow([this, watch = SentinelWatch(commands_.name())](const GroupView& view) mutable {
    thread_.post([this, view] { commands_.note(view, Clocks::steady_ms()); });
    const std::string message = watch.note(view);
    if (!message.empty()) thread_.post([this, message] { publish("+switch-master", message); });
    return true;
  });
}

void SentinelService::adopt(int fd, const Endpoints& endpoints) {
  if (stopped_) {
    ::close(fd);
    return;
  }
  const auto connection = std::make_shared<SentinelConnection>(*this, fd, endpoints);
  connections_.insert(connection);
  connection->read();
}

void SentinelService::make_room() {
  if (connections_.size() < kMaxConnections) return;
  const auto goes_first = [](const auto& a, const auto& b) {
    return a->order_of_end() < b->order_of_end();
  };
  const std::shared_ptr<SentinelConnection> oldest =
      *std::min_element(connections_.begin(), connections_.end(), goes_first);
  oldest->close();
}

void SentinelService::publish(const std::string& channel, const std::string& message) {
  // A connection that fails leaves the set.
  for (const auto& connection : std::vector(connections_.begin(), connections_.end())) {
    connection->publish(channel, message);
  }
}

void SentinelService::close_all() {
  stopped_ = true;
  for (const auto& connection : std::vector(connections_.begin(), connections_.end())) {
    connection->close();
  }
}

void SentinelService::forget(const std::shared_ptr<SentinelConnection>& connection) {
  connections_.erase(connection);
}

}  // namespace sluice
