#include "net/io/engine_client.h"

#include <chrono>
#include <utility>

#include "engine/access/acl.h"
#include "net/group/serving_gate.h"
#include "net/io/io_thread.h"

namespace sluice {

namespace {

// Nobody knows when the server's own holds end: soon, or the node does.
constexpr int64_t kHoldRetryMs = 1000;

}  // namespace

// The part that other threads use: passes deliveries to the client's thread.
class EngineClient::Port final : public ClientPort, public std::enable_shared_from_this<Port> {
 public:
  explicit Port(EngineClient& client) : thread_(client.thread_), client_(&client) {}

  // Pushes are dropped: the holder of a lease learns of a cancellation when it renews the lease.
  void deliver(ByteBuffer, Lsn) override {}

  void deliver_blocked_reply(ByteBuffer bytes, Lsn gate) override {
    thread_.post([self = shared_from_this(), text = std::string(bytes.view()), gate] {
      self->thread_.levels().run_outermost([self, text, gate] {
        if (self->client_ != nullptr) self->client_->take_reply(text, gate);
      });
    });
  }

  // Called on the client's thread.
  void forget() { client_ = nullptr; }
  bool forgotten() const { return client_ == nullptr; }

 private:
  IoThread& thread_;
  EngineClient* client_;
};

EngineClient::EngineClient(IoThread& thread, std::string address)
    : thread_(thread),
      client_(std::make_shared<Client>()),
      port_(std::make_shared<Port>(*this)),
      timer_(thread.executor()) {
  client_->id = thread.state().next_client_id.fetch_add(1, std::memory_order_relaxed);
  client_->address = std::move(address);
  client_->protocol = 3;
  client_->port = port_;
}

EngineClient::~EngineClient() { CHECK(closed_); }

void EngineClient::speak_for(std::shared_ptr<User> user, int database) {
  client_->user = std::move(user);
  client_->database = database;
}

// Null: what made the request wait has just ended.
std::optional<RespValue> EngineClient::refusal_of_pause() const {
  const ClientPause& pause = thread_.engine().pause;
  const int64_t now_ms = thread_.clock().times().steady_ms;
  std::string reason = "client_pause";
  // CLIENT PAUSE may be shortened or prolonged: the hint reflects its present end.
  int64_t left_ms = pause.asked_end_ms() - now_ms;
  if (pause.is_held(Hold::kHandOver, now_ms)) {
    reason = "hand_over";
    left_ms = kHoldRetryMs;
  } else if (pause.is_held(Hold::kJournal, now_ms)) {
    reason = "journal";
    left_ms = kHoldRetryMs;
  } else if (left_ms <= 0) {
    return std::nullopt;
  }
  const std::string refusal =
      "-BUSY reason=" + reason + " retry_after_ms=" + std::to_string(left_ms) + "\r\n";
  Bytes bytes = refusal;
  return parse_resp_value(bytes);
}

std::optional<RespValue> EngineClient::refusal_of_data() {
  thread_.clock().read();
  const bool gate_closed = thread_.state().gate != nullptr && !thread_.passes_gate();
  if (thread_.engine().pause.mode(thread_.clock().times().steady_ms) >= PauseMode::kData) {
    if (std::optional<RespValue> refusal = refusal_of_pause()) return refusal;
  }
  if (gate_closed) return refuse_at_gate();
  return std::nullopt;
}

RespValue EngineClient::refuse_at_gate() const {
  const std::string error = "-" + std::string(thread_.state().gate->error()) + "\r\n";
  Bytes bytes = error;
  return parse_resp_value(bytes);
}

RespValue EngineClient::execute(std::span<const Bytes> arguments, const Condition* condition) {
  CHECK(!closed_ && client_->waiter == nullptr);
  Execution& execution = thread_.levels().execution();
  thread_.clock().read();
  execution.set_times(thread_.clock().times());
  // Waiting for the end of a pause is not supported here; the client has to retry.
  const Request request(arguments);
  const bool gate_closed = thread_.state().gate != nullptr && !thread_.passes_gate();
  if (thread_.engine().pause.end_ms() != 0 && execution.must_wait(*client_, request)) {
    if (std::optional<RespValue> refusal = refusal_of_pause()) return *std::move(refusal);
  }
  if (gate_closed && request.command != nullptr &&
      Execution::concerns_data(*client_, *request.command)) {
    return refuse_at_gate();
  }
  if (gate_closed) execution.tell_at_once();
  ByteBuffer out;
  RespReply reply(out, client_->protocol);
  executing_ = true;
  if (condition != nullptr &&
      !execution.lock_if_type(client_->database, condition->key, condition->type)) {
    reply.null();
  } else {
    execution.execute(*client_, request, reply);
  }
  if (!together_) finish(execution);
  if (client_->waiter != nullptr) return {};
  Bytes bytes = out.view();
  return parse_resp_value(bytes);
}

void EngineClient::finish(Execution& execution) {
  const Lsn gate = execution.finish();
  executing_ = false;
  gate_ = std::max(gate_, gate);
  // Also for changes that nobody waits for: they must be passed to the journal's writer.
  if (gate > thread_.gate().durable_lsn()) thread_.gate().request_flush();
  thread_.after_batch();
}

void EngineClient::run_together(const std::function<void()>& commands) {
  CHECK(!closed_ && !executing_);
  Execution& execution = thread_.levels().execution();
  thread_.clock().read();
  execution.set_times(thread_.clock().times());
  executing_ = together_ = true;
  execution.lock_all();
  commands();
  together_ = false;
  finish(execution);
}

RespValue EngineClient::run(std::span<const Bytes> arguments) {
  RespValue reply = execute(arguments);
  CHECK(client_->waiter == nullptr);
  return reply;
}

RespValue EngineClient::run_if(Type type, Bytes key, std::span<const Bytes> arguments) {
  const Condition condition{key, type};
  RespValue reply = execute(arguments, &condition);
  CHECK(client_->waiter == nullptr);
  return reply;
}

void EngineClient::run_waiting(std::span<const Bytes> arguments, Then then) {
  RespValue reply = execute(arguments);
  if (client_->waiter == nullptr) return then(std::move(reply));
  then_ = std::move(then);
  begin_waiting();
}

void EngineClient::begin_waiting() {
  ++waits_;
  thread_.state().blocked_clients.fetch_add(1, std::memory_order_relaxed);
  if (client_->waiter->timeout_ms == 0) return;
  // A day at most; clients that want more ask again.
  const int64_t wait_ms = std::min<int64_t>(client_->waiter->timeout_ms, 86'400'000);
  timer_.expires_after(std::chrono::milliseconds(wait_ms));
  timer_.async_wait(
      [&thread = thread_, port = port_, this, wait = waits_](const error_code& error) {
        if (error) return;
        thread.levels().run_outermost([port, this, wait] {
          // If the client is closed, only the port may still exist.
          if (!port->forgotten() && wait == waits_ && client_->waiter != nullptr) on_timeout();
        });
      });
}

void EngineClient::on_timeout() {
  if (client_->waiter->served_when_late) {
    thread_.engine().departures().leave_late(client_->waiter);
    return thread_.after_batch();
  }
  // If it cannot be cancelled it has been claimed, and its reply is on the way.
  if (!thread_.engine().cancel_waiter(*client_)) return;
  finish_waiting({});
}

void EngineClient::take_reply(Bytes bytes, Lsn gate) {
  if (client_->waiter == nullptr) return;
  thread_.engine().end_waiter(*client_);
  gate_ = std::max(gate_, gate);
  finish_waiting(parse_resp_value(bytes));
}

void EngineClient::finish_waiting(RespValue reply) {
  thread_.state().blocked_clients.fetch_sub(1, std::memory_order_relaxed);
  timer_.cancel();
  // It may run the next command, which may wait again.
  const Then then = std::exchange(then_, nullptr);
  then(std::move(reply));
}

bool EngineClient::may_wait() const {
  if (client_->waiter == nullptr) return true;
  const Waiter& waiter = *client_->waiter;
  const std::vector<Bytes> words(waiter.arguments.begin(), waiter.arguments.end());
  return client_->user->rules()->check(*waiter.command, words).denial == Denial::kNone;
}

bool EngineClient::only_waits() const {
  const Waiter* const waiter = client_->waiter.get();
  return waiter != nullptr && waiter->is_waiting() && !waiter->served_when_late;
}

void EngineClient::hurry() {
  thread_.levels().run_outermost([port = port_, this, wait = waits_] {
    if (port->forgotten() || wait != waits_ || client_->waiter == nullptr) return;
    on_timeout();
    // Here, since no timers run in a server that stops.
    thread_.run_between_batches([](Execution& execution) { execution.serve_late(); });
  });
}

void EngineClient::stop_waiting() {
  if (client_->waiter == nullptr) return;
  then_ = [](const RespValue&) {};
  // This locks shards, which a command further up the stack may hold.
  thread_.levels().run_outermost([port = port_, this] {
    if (port->forgotten() || client_->waiter == nullptr) return;
    if (thread_.engine().cancel_waiter(*client_)) finish_waiting({});
  });
}

void EngineClient::close() {
  if (closed_) return;
  CHECK(!executing_);
  closed_ = true;
  port_->forget();
  timer_.cancel();
  then_ = nullptr;
  if (client_->waiter != nullptr) {
    thread_.state().blocked_clients.fetch_sub(1, std::memory_order_relaxed);
  }
  // The engine is notified under shard locks, which a command further up the stack may hold.
  thread_.levels().run_outermost([&thread = thread_, client = client_] {
    thread.run_between_batches([&](Execution& execution) { execution.disconnect(*client); });
    client->port = nullptr;
  });
}

}  // namespace sluice
