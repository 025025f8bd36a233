#include "net/io/session.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/access/acl.h"
#include "engine/clients/tracking.h"
#include "engine/table/command.h"
#include "net/group/serving_gate.h"
#include "net/io/io_thread.h"
#include "net/io/strangers.h"
#include "net/process/clocks.h"
#include "net/tls/tls_service.h"

namespace sluice {

namespace {

// Limit of one turn of a session; then the others run.
constexpr unsigned kMaxRequestsPerTurn = 1000;
constexpr size_t kMaxOutputPerTurn = 1U << 20;

constexpr Bytes kLoadingError = "LOADING Redis is loading the dataset in memory";

// TLS may have to read in order to write, and vice versa.
void take_tls_edges(SocketEdges& edges, TlsStream& tls) {
  if (edges.readable) tls.note_readable(edges.peer_ended);
  if (!edges.awaiting_write && tls.read_waits_for_write()) edges.readable = true;
  if (edges.readable && tls.write_waits_for_read()) edges.awaiting_write = false;
}

// Whether the request must be refused because the server has not loaded its data, or cannot answer
// for them; the error then.
Bytes refusal_now(const IoThread& thread, bool gate_closed, const Client& client,
                  const Request& request) {
  const bool loading = thread.state().loading.load(std::memory_order_relaxed);
  if (!loading && !gate_closed) [[likely]]
    return {};
  const Command* const command = request.command;
  if (command == nullptr) return {};  // reported by its error
  if (client.user == nullptr && (command->flags & kNoAuth) == 0) return {};
  if (loading) return runs_without_data(*command) ? Bytes() : kLoadingError;
  return Execution::concerns_data(client, *command) ? thread.state().gate->error() : Bytes();
}

// Removes output that must not be sent. CLIENT REPLY SKIP begins, or ends with the skipped command;
// a blocking command has ended when its reply is there.
void end_muted(Client& client, ByteBuffer& output) {
  if (client.reply_mode != ReplyMode::kOn) output.resize(client.muted_from);
  if (client.waiter == nullptr) static_cast<void>(wants_blocked_reply(client));
  if (client.skips_next && client.reply_mode == ReplyMode::kOn) {
    client.reply_mode = ReplyMode::kSkip;
  }
  client.skips_next = false;
}

}  // namespace

Session::Session(IoThread& thread, int fd, Endpoints endpoints)
    : thread_(thread),
      fd_(fd),
      blocked_(thread, *this),
      counted_pubsub_(thread.state().pubsub_clients) {
  thread.clock().read();
  active_ms_ = thread.clock().steady_ms();
  ServerState& state = thread.state();
  client_.id = state.next_client_id.fetch_add(1, std::memory_order_relaxed);
  client_.address = endpoints.address;
  client_.unix_socket = endpoints.unix_socket;
  if (endpoints.tls) tls_ = thread.state().tls->open(TlsPort::kResp, fd);
  port_ =
      std::make_shared<SessionPort>(thread, *this, client_.id, std::move(endpoints), active_ms_);
  client_.port = port_;
  client_.user = thread.engine().acl().user_at_connect();
  update_parser_limits();
  publish();
}

Session::~Session() { CHECK(fd_ < 0); }

void Session::start() {
  if (!thread_.sockets().poller().add(fd_, *this)) {
    spdlog::error("Cannot watch the connection of {}: {}", client_.address, std::strerror(errno));
    close();
    return;
  }
  if (tls_ == nullptr) return;
  thread_.housekeeping().need();
  const std::string& refusal = port_->endpoints().refusal;
  if (refusal.empty()) return;
  // Writing it drives the handshake, after which it is sent.
  output_.bytes().append(refusal);
  output_.open();
  life_.drain();
  flush();
}

// --- Reading ---

void Session::on_events(uint32_t events) {
  if (closed()) return;
  const bool was_awaiting_write = edges_.awaiting_write;
  edges_.take(events);
  if (tls_ != nullptr) [[unlikely]]
    take_tls_edges(edges_, *tls_);
  // A batch that polls handles it at its end.
  if (run_ == Run::kExecuting || life_.is_ending()) return;
  // If the peer has ended, remaining requests are not executed while blocked.
  if (edges_.peer_ended && client_.waiter != nullptr && may_read()) return close_soon();
  if (was_awaiting_write && !edges_.awaiting_write) flush();
  if (life_.is_ending()) return;
  if (edges_.readable && may_read()) {
    read_input();
  } else if (was_awaiting_write) {
    advance();
  }
}

void Session::go_on() {
  if (closed() || run_ == Run::kExecuting) return;
  if (run_ != Run::kMoreWaits && edges_.readable && may_read()) {
    read_input();
  } else {
    advance();
  }
}

// --- Running requests ---

void Session::advance() {
  if (life_.is_ending()) return;
  if (output_.is_paused()) flush();
  const bool may_execute = client_.waiter == nullptr && (!client_.postponed || postponed_.due) &&
                           life_.is_open() && run_ != Run::kExecuting && !places.continuing &&
                           !output_.is_paused() && !port_->killed();
  if ((!input_.empty() || postponed_.due) && may_execute) run_requests();
  if (life_.is_ending()) return;
  if (thread_.sockets().is_on() && !life_.is_draining()) {
    thread_.gate().add_gated(*this);  // with all others, at the end of the turn
  } else {
    flush();
  }
  if (edges_.readable && may_read()) thread_.sockets().add_continuing(*this);
}

void Session::run_requests() {
  run_ = Run::kExecuting;
  Execution& execution = thread_.levels().execution();
  RequestBatch& batch = thread_.levels().batch();
  batch.clear();
  thread_.clock().read();
  active_ms_ = thread_.clock().steady_ms();
  execution.set_times(thread_.clock().times());
  gate_closed_ = thread_.state().gate != nullptr && !thread_.passes_gate();
  if (gate_closed_) execution.tell_at_once();
  update_parser_limits();
  RespReply reply(output_.bytes(), client_.protocol);
  reply.count_errors_in(execution.statistics.errors);
  const size_t output_limit = output_.bytes().size() + kMaxOutputPerTurn;
  unsigned requests = 0;
  bool more_waits = false;
  const bool go_on = !client_.postponed || run_postponed(reply);
  while (go_on && run_one(batch, reply)) {
    if (++requests < kMaxRequestsPerTurn && output_.bytes().size() < output_limit &&
        !execution.is_long()) {
      continue;
    }
    more_waits = !input_.empty();
    break;
  }
  batch.give_back(parser_);
  gate_output(execution.finish());
  run_ = more_waits ? Run::kMoreWaits : Run::kIdle;
  if (more_waits) thread_.sockets().add_continuing(*this);
  after_batch();
}

void Session::update_parser_limits() {
  const int64_t max_bulk_bytes =
      thread_.state().limits.max_bulk_bytes.load(std::memory_order_relaxed);
  const bool authenticated = client_.user != nullptr;
  RespLimits limits = parser_.limits();
  if (limits.max_bulk_bytes == max_bulk_bytes && limits.authenticated == authenticated) return;
  if (limits.authenticated != authenticated && authenticated) {
    thread_.strangers().remove(*this);
  } else if (limits.authenticated != authenticated) {
    thread_.strangers().add(*this);
    thread_.housekeeping().need();
  }
  limits.max_bulk_bytes = max_bulk_bytes;
  limits.authenticated = authenticated;
  parser_.set_limits(limits);
}

// Returns false when the session must stop: no complete request is left, or it must not continue.
bool Session::run_one(RequestBatch& batch, RespReply& reply) {
  if (batch.empty()) {
    if (batch.end != RespParser::Outcome::kRequest) return handle_end(batch, reply);
    // Before AUTH the limits of the following requests may still change.
    const bool ahead = thread_.levels().may_prefetch() && parser_.limits().authenticated &&
                       !thread_.state().loading.load(std::memory_order_acquire);
    if (!batch.parse(parser_, input_, ahead)) return handle_end(batch, reply);
    batch.fetch_ahead(thread_.engine(), client_.database);
  }
  const RequestBatch::Item& item = batch.items[batch.next++];
  const bool waits = thread_.engine().pause.end_ms() != 0 && postpone(item.request);
  if (!waits) [[likely]]
    input_.in_block() ? execute_in_block(item, reply) : execute(item.request, reply);
  input_.consume(item.bytes);
  if ((client_.user != nullptr) != parser_.limits().authenticated) update_parser_limits();
  if (client_.close_after_reply) life_.drain();
  return !input_.empty() && client_.waiter == nullptr && !waits && life_.is_open() &&
         !port_->killed();
}

// Handles what follows the last complete request. Always returns false: the session stops.
bool Session::handle_end(RequestBatch& batch, RespReply& reply) {
  if (batch.end == RespParser::Outcome::kError) {
    reply.error("ERR " + parser_.error());
    life_.drain();
  } else if (batch.end == RespParser::Outcome::kHttp) {
    life_.end();
    const auto others = thread_.engine().attacks_in_log.next(Clocks::steady_ms());
    if (!others) return false;
    spdlog::warn(
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: "
        "commands to Redis. This is likely due to an attacker attempting to use Cross Protocol "
        "Scripting to compromise your Redis instance. Connection from {} aborted.{}",
        client_.address, *others);
  }
  return false;
}

void Session::execute(const Request& request, RespReply& reply) {
  client_.muted_from = output_.bytes().size();
  if (const Bytes error = refusal_now(thread_, gate_closed_, client_, request); !error.empty())
      [[unlikely]] {
    if (client_.in_multi) client_.multi_failed = true;
    reply.error(error);
    thread_.levels().execution().note_rejected(*request.command, reply);
  } else {
    thread_.levels().execution().execute(client_, request, reply);
  }
  reply.set_protocol(client_.protocol);
  if (client_.reply_mode != ReplyMode::kOn || client_.skips_next) [[unlikely]]
    end_muted(client_, output_.bytes());
}

// The command may take the block, so it gets copies of all words except the large one. If more has
// been read, the block is no longer for one request.
void Session::execute_in_block(const RequestBatch::Item& item, RespReply& reply) {
  if (!input_.is_whole_block(item.bytes)) return execute(item.request, reply);
  std::vector<std::string> copies;
  copies.reserve(item.request.args.size());
  std::vector<Bytes> args(item.request.args.begin(), item.request.args.end());
  for (Bytes& arg : args) {
    if (!input_.is_lent(arg)) arg = copies.emplace_back(arg);
  }
  Request request(args);
  LentWord lent = input_.lend();
  request.lent = &lent;
  execute(request, reply);
}

void Session::after_batch() {
  thread_.after_batch();
  if (client_.waiter != nullptr) {
    const int64_t timeout_ms = client_.waiter->timeout_ms;
    blocked_.begin(timeout_ms != 0 ? std::optional<int64_t>(timeout_ms) : std::nullopt);
  } else if (client_.postponed) {
    // It counts as a blocked client, and checks again when a pause should be over.
    const int64_t now_ms = thread_.clock().times().steady_ms;
    blocked_.begin(thread_.engine().pause.next_end_ms(now_ms) - now_ms);
  }
  if (life_.is_ending()) return close();
  for (Mail& mail : put_off_) take_mail(mail);
  put_off_.clear();
  counted_pubsub_.set(client_.subscriptions() != 0);
  if (!thread_.sockets().is_on() && !life_.is_ending()) publish();
}

void Session::publish() {
  SessionPort::Numbers numbers;
  numbers.active_ms = active_ms_;
  numbers.query_bytes = input_.size();
  numbers.query_free_bytes = input_.free_bytes();
  numbers.output_bytes = output_.pending();
  numbers.output_buffer_bytes = output_.bytes().capacity();
  numbers.closing = life_.is_draining();
  port_->publish(client_, numbers);
}

}  // namespace sluice
