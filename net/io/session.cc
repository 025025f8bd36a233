#include "net/io/session.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "engine/access/acl.h"
#include "engine/clients/tracking.h"
#include "engine/table/command.h"
#include "net/io/io_thread.h"
#include "net/io/strangers.h"
#include "net/process/clocks.h"
#include "net/tls/tls_service.h"

namespace sluice {

namespace {

// One turn of a session: then the others run.
constexpr unsigned kMaxRequestsPerTurn = 1000;
constexpr size_t kMaxOutputPerTurn = 1U << 20;
// What a blocked client may send ahead; beyond it, it is not read (and its end is not noticed).
constexpr size_t kMaxBlockedBacklog = 1U << 20;
// A read begins small, since most connections send little, and grows when it was filled.
constexpr size_t kFirstReadBytes = 4U << 10;

constexpr Bytes kLoadingError = "LOADING Redis is loading the dataset in memory";

}  // namespace

Session::Session(IoThread& thread, int fd, Endpoints endpoints)
    : thread_(thread), fd_(fd), read_bytes_(kFirstReadBytes) {
  thread.read_clock();
  active_ms_ = thread.now_steady_ms();
  ServerState& state = thread.state();
  client_.id = state.next_client_id.fetch_add(1, std::memory_order_relaxed);
  client_.address = endpoints.address;
  if (endpoints.tls) tls_ = thread.state().tls->open(TlsPort::kResp, fd);
  port_ =
      std::make_shared<SessionPort>(thread, *this, client_.id, std::move(endpoints), active_ms_);
  client_.port = port_;
  client_.user = thread.engine().acl().user_at_connect();
  update_parser_limits();
  if (!authenticated_) note_stranger();
  publish();
}

Session::~Session() { CHECK(fd_ < 0); }

void Session::start() {
  if (!thread_.poller().add(fd_, *this)) {
    spdlog::error("Cannot watch the connection of {}: {}", client_.address, std::strerror(errno));
    close();
    return;
  }
  if (tls_ != nullptr) begin_tls();
}

// --- Reading ---

void Session::on_events(uint32_t events) {
  if (closed_) return;
  constexpr uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLIN | kEnds)) != 0) readable_ = true;
  if ((events & kEnds) != 0) peer_ended_ = true;
  const bool was_awaiting_write = awaiting_write_;
  if ((events & (EPOLLOUT | kEnds)) != 0) awaiting_write_ = false;
  if (tls_ != nullptr) [[unlikely]]
    take_tls_edges();
  if (executing_ || ending()) return;  // a batch that polls comes back to it at its end
  // Nothing that stands before the end is executed.
  if (peer_ended_ && client_.waiter != nullptr && may_read()) return close_soon();
  if (was_awaiting_write && !awaiting_write_) flush();
  if (ending()) return;
  if (readable_ && may_read()) {
    read_input();
  } else if (was_awaiting_write) {
    advance();
  }
}

// Whether more input is wanted now. Somebody comes back to a session that does not want any.
bool Session::may_read() {
  if (ending() || closing_ || continuing_ || output_paused_) return false;
  // Its answer is near. The end of the input stands behind it: then the answer leaves first.
  if (client_.waiter != nullptr && client_.waiter->queue.in_passing) return false;
  const bool waits = client_.waiter != nullptr || client_.postponed;
  if (waits && in_.size() - in_begin_ > kMaxBlockedBacklog) return false;
  if (thread_.state().stopping.load(std::memory_order_relaxed)) return false;
  if (thread_.journal_congested()) {
    thread_.add_paused(*this);
    return false;
  }
  return true;
}

void Session::continue_later() {
  if (continuing_) return;
  continuing_ = true;
  thread_.add_continuing(*this);
}

void Session::go_on() {
  continuing_ = false;
  if (closed_ || executing_) return;
  if (!requests_left_ && readable_ && may_read()) {
    read_input();
  } else {
    advance();
  }
}

// --- Running requests ---

bool Session::may_execute() const {
  return client_.waiter == nullptr && (!client_.postponed || pause_over_) && !ending() &&
         !closing_ && !executing_ && !continuing_ && !output_paused_ && !port_->killed();
}

void Session::advance() {
  if (ending()) return;
  if (output_paused_) flush();
  if ((in_begin_ != in_.size() || pause_over_) && may_execute()) run_requests();
  if (thread_.in_turn() && !closing_) {
    thread_.add_gated(*this);  // with all others, at the end of the turn
  } else {
    flush();
  }
  if (readable_ && may_read()) continue_later();
}

void Session::run_requests() {
  executing_ = true;
  requests_left_ = false;
  Execution& execution = thread_.execution();
  RequestBatch& batch = thread_.batch();
  batch.clear();
  thread_.read_clock();
  active_ms_ = thread_.now_steady_ms();
  execution.set_times(thread_.times());
  update_parser_limits();
  RespReply reply(out_, client_.protocol);
  reply.count_errors_in(execution.error_counts());
  const size_t output_limit = out_.size() + kMaxOutputPerTurn;
  unsigned requests = 0;
  const bool go_on = !client_.postponed || run_postponed(reply);
  while (go_on && run_one(batch, reply)) {
    if (++requests < kMaxRequestsPerTurn && out_.size() < output_limit && !execution.is_long()) {
      continue;
    }
    requests_left_ = in_begin_ != in_.size();
    break;
  }
  give_back(batch);
  gate_output(execution.finish());
  executing_ = false;
  if (requests_left_) continue_later();
  after_batch();
}

void Session::update_parser_limits() {
  const int64_t max_bulk_bytes =
      thread_.state().limits.max_bulk_bytes.load(std::memory_order_relaxed);
  RespLimits limits = parser_.limits();
  authenticated_ = client_.user != nullptr;
  if (limits.max_bulk_bytes == max_bulk_bytes && limits.authenticated == authenticated_) return;
  limits.max_bulk_bytes = max_bulk_bytes;
  if (limits.authenticated != authenticated_) note_stranger();
  limits.authenticated = authenticated_;
  parser_.set_limits(limits);
}

void Session::note_stranger() {
  if (authenticated_) return thread_.strangers().remove(*this);
  thread_.strangers().add(*this);
  thread_.need_housekeeping();
}

// Parses the next requests, several where that lets their memory be fetched ahead. False if there
// is none.
bool Session::parse(RequestBatch& batch) {
  batch.clear();
  // Before AUTH the limits of what follows may still change.
  const bool ahead = thread_.may_prefetch() && authenticated_ &&
                     !thread_.state().loading.load(std::memory_order_acquire);
  const size_t limit = ahead ? batch.items.size() : 1;
  size_t at = in_begin_;
  while (batch.count < limit && at != in_.size()) {
    // Inline requests are decoded in place, so they cannot be given back.
    if (batch.count != 0 && in_.data()[at] != '*') break;
    const size_t first = batch.arguments.size();
    const RespParser::Result result =
        parser_.parse_append({in_.data() + at, in_.size() - at}, batch.arguments);
    if (result.outcome == RespParser::Outcome::kRequest) {
      batch.items[batch.count++] = {first, batch.arguments.size() - first, result.bytes, {}};
    } else if (result.outcome == RespParser::Outcome::kSkipped) {
      if (batch.count == 0) {
        in_begin_ += result.bytes;
      } else {
        batch.items[batch.count - 1].bytes += result.bytes;
      }
    } else {
      need_bytes_ = result.bytes;
      batch.end = result.outcome;
      break;
    }
    at += result.bytes;
  }
  batch.resolve();
  if (batch.count > 1) {
    for (size_t i = 0; i < batch.count; ++i) {
      batch.prefetch.add(thread_.engine(), client_.database, batch.items[i].request);
    }
    batch.prefetch.fetch();
  }
  return batch.count != 0;
}

// What was parsed and not executed is parsed again later; the buffer may move until then.
void Session::give_back(RequestBatch& batch) {
  if (!batch.empty()) parser_.reset();
  batch.clear();
}

// False when the session has to stop here: nothing complete is left, or it must not go on.
bool Session::run_one(RequestBatch& batch, RespReply& reply) {
  if (batch.empty()) {
    if (batch.end != RespParser::Outcome::kRequest) return handle_end(batch, reply);
    if (!parse(batch)) return handle_end(batch, reply);
  }
  const RequestBatch::Item& item = batch.items[batch.next++];
  const bool waits = thread_.engine().pause.end_ms() != 0 && postpone(item.request);
  if (!waits) [[likely]]
    in_block_ ? execute_in_block(item, reply) : execute(item.request, reply);
  in_begin_ = in_.empty() ? 0 : in_begin_ + item.bytes;
  if (in_block_ && in_begin_ == in_.size()) [[unlikely]]
    leave_block();
  if ((client_.user != nullptr) != authenticated_) update_parser_limits();
  if (client_.close_after_reply) closing_ = true;
  return in_begin_ != in_.size() && client_.waiter == nullptr && !waits && !closing_ &&
         !to_be_closed_ && !port_->killed();
}

// What stands behind the last complete request. Always false: the session stops.
bool Session::handle_end(RequestBatch& batch, RespReply& reply) {
  if (batch.end == RespParser::Outcome::kError) {
    reply.error("ERR " + parser_.error());
    closing_ = true;
  } else if (batch.end == RespParser::Outcome::kHttp) {
    to_be_closed_ = true;
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
  client_.muted_from = out_.size();
  if (refuses_now(request)) [[unlikely]] {
    if (client_.in_multi) client_.multi_failed = true;
    reply.error(kLoadingError);
    thread_.execution().note_rejected(*request.command, reply);
  } else {
    thread_.execution().execute(client_, request, reply);
  }
  reply.set_protocol(client_.protocol);
  if (client_.reply_mode != ReplyMode::kOn || client_.skips_next) [[unlikely]]
    end_muted();
}

// What is not to be sent goes. CLIENT REPLY SKIP begins, or ends with the command that was skipped:
// one that blocks has ended when its reply comes.
void Session::end_muted() {
  if (client_.reply_mode != ReplyMode::kOn) out_.resize(client_.muted_from);
  if (client_.waiter == nullptr) static_cast<void>(wants_blocked_reply());
  if (client_.skips_next && client_.reply_mode == ReplyMode::kOn) {
    client_.reply_mode = ReplyMode::kSkip;
  }
  client_.skips_next = false;
}

// Whether the process as a whole cannot take it now, while it loads.
bool Session::refuses_now(const Request& request) const {
  if (!thread_.state().loading.load(std::memory_order_relaxed)) [[likely]]
    return false;
  const Command* const command = request.command;
  if (command == nullptr) return false;  // its error says so
  if (client_.user == nullptr && (command->flags & kNoAuth) == 0) return false;
  // Recovery fills the shards without their locks. So WATCH is refused, and with nothing watched
  // what ends transactions needs none.
  const bool needs_shards =
      (command->flags & kEveryShard) != 0 || command->keys[0].begin != KeySpec::Begin::kNone;
  const bool fits = !needs_shards || (command->flags & kNoShardsLoading) != 0;
  return (command->flags & kLoading) == 0 || !fits;
}

void Session::after_batch() {
  thread_.after_batch();
  if (client_.waiter != nullptr) begin_blocking();
  if (client_.postponed) wait_for_pause();
  if (to_be_closed_) {
    to_be_closed_ = false;
    close();
    return;
  }
  for (Mail& mail : put_off_) take_mail_now(mail);
  put_off_.clear();
  const bool pubsub = client_.subscriptions() != 0;
  if (pubsub != counted_pubsub_) update_counts();
  if (!thread_.in_turn()) publish();
}

void Session::publish() {
  SessionPort::Numbers numbers;
  numbers.active_ms = active_ms_;
  numbers.query_bytes = in_.size() - in_begin_;
  numbers.query_free_bytes = in_.capacity() - in_.size();
  numbers.output_bytes = pending_output();
  numbers.output_buffer_bytes = out_.capacity();
  numbers.closing = closing_;
  port_->publish(client_, numbers);
}

void Session::update_counts() {
  counted_pubsub_ = !counted_pubsub_;
  ServerState& state = thread_.state();
  state.pubsub_clients.fetch_add(counted_pubsub_ ? 1 : ~uint64_t{0}, std::memory_order_relaxed);
}

// --- CLIENT PAUSE ---

bool Session::postpone(const Request& request) {
  if (!thread_.execution().must_wait(client_, request)) return false;
  postponed_.assign(request.args.begin(), request.args.end());
  client_.postponed = true;
  return true;
}

// The request that has waited; if it has to wait again, it stays. True: others may follow.
bool Session::run_postponed(RespReply& reply) {
  pause_over_ = false;
  const std::vector<std::string> words = std::move(postponed_);
  const std::vector<Bytes> args(words.begin(), words.end());
  client_.postponed = false;
  const Request request(args);
  if (postpone(request)) return false;
  execute(request, reply);
  if (client_.close_after_reply) closing_ = true;
  return client_.waiter == nullptr && !closing_ && !to_be_closed_;
}

// It counts as a blocked client, and looks again when the pause should be over.
void Session::wait_for_pause() {
  if (counted_blocked_) return;
  counted_blocked_ = true;
  thread_.state().blocked_clients.fetch_add(1, std::memory_order_relaxed);
  const int64_t left_ms = thread_.engine().pause.end_ms() - thread_.serving_ms();
  const int64_t now_ms = Clocks::steady_ms();
  block_deadline_ms_ = left_ms < kNeverMs - now_ms - 1 ? now_ms + left_ms : kNeverMs - 1;
  thread_.add_timeout(block_deadline_ms_, *this);
}

void Session::on_pause_changed() {
  if (closed_ || executing_ || !client_.postponed) return;
  end_blocking();
  pause_over_ = true;
  advance();
}

// --- Blocking ---

void Session::begin_blocking() {
  counted_blocked_ = true;
  thread_.state().blocked_clients.fetch_add(1, std::memory_order_relaxed);
  block_deadline_ms_ = 0;
  if (client_.waiter->timeout_ms == 0) return;
  const int64_t now_ms = Clocks::steady_ms();
  block_deadline_ms_ = client_.waiter->timeout_ms < kNeverMs - now_ms - 1
                           ? now_ms + client_.waiter->timeout_ms
                           : kNeverMs - 1;
  thread_.add_timeout(block_deadline_ms_, *this);
}

// The bookkeeping of a blocking that is over, whoever ended it.
void Session::end_blocking() {
  if (!counted_blocked_) return;
  counted_blocked_ = false;
  thread_.state().blocked_clients.fetch_sub(1, std::memory_order_relaxed);
  if (block_deadline_ms_ != 0) thread_.remove_timeout(block_deadline_ms_, *this);
  block_deadline_ms_ = 0;
  active_ms_ = Clocks::steady_ms();
}

// Whether the reply that ends a blocking is sent. Is it the one to skip, those behind it are not.
bool Session::wants_blocked_reply() {
  const bool wanted = client_.reply_mode == ReplyMode::kOn;
  if (client_.reply_mode == ReplyMode::kSkip) client_.reply_mode = ReplyMode::kOn;
  return wanted;
}

void Session::on_block_timeout() {
  block_deadline_ms_ = 0;  // the I/O thread has dropped its entry
  if (client_.postponed) return on_pause_changed();
  if (closed_ || client_.waiter == nullptr) return;
  const std::shared_ptr<Waiter> waiter = client_.waiter;
  // Not cancelled: somebody has claimed it, and its reply is on the way.
  if (!thread_.engine().cancel_waiter(client_)) return;
  end_blocking();
  RespReply reply(out_, waiter->protocol);
  if (wants_blocked_reply()) waiter->reply_timeout(reply);
  gate_output(0);
  publish();
  advance();
}

void Session::unblock_by_command(bool with_error) {
  const std::shared_ptr<Waiter> waiter = client_.waiter;
  thread_.engine().end_waiter(client_);
  end_blocking();
  if (!wants_blocked_reply()) return;
  RespReply reply(out_, waiter->protocol);
  if (with_error) {
    reply.count_errors_in(thread_.execution().error_counts());
    reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    thread_.execution().note_failed(*waiter->command);
  } else {
    waiter->reply_timeout(reply);
  }
  gate_output(0);
}

// --- Mail ---

void Session::take_mail(Mail& mail) {
  if (closed_) return;
  if (executing_) {
    // A script of this client polls: its reply is half written.
    put_off_.push_back(std::move(mail));
    return;
  }
  take_mail_now(mail);
}

void Session::take_mail_now(Mail& mail) {
  if (closed_) return;
  switch (mail.kind) {
    case Mail::Kind::kDelivery:
      out_.append(mail.bytes.view());
      gate_output(mail.gate);
      return;
    case Mail::Kind::kInvalidation:
    case Mail::Kind::kRedirectedInvalidation:
      write_invalidation(out_, client_, mail.kind == Mail::Kind::kRedirectedInvalidation,
                         mail.bytes.view());
      gate_output(mail.gate);
      return;
    case Mail::Kind::kBlockedReply:
      thread_.engine().end_waiter(client_);
      end_blocking();
      if (wants_blocked_reply()) out_.append(mail.bytes.view());
      gate_output(mail.gate);
      return;
    case Mail::Kind::kUnblocked:
    case Mail::Kind::kUnblockedWithError:
      unblock_by_command(mail.kind == Mail::Kind::kUnblockedWithError);
      return;
    case Mail::Kind::kKill:
      close_soon();
      return;
  }
}

void Session::write_out() {
  if (ending() || executing_) return;
  flush();
  // A reply may have ended a blocking: what the client sent meanwhile runs now.
  if (!ending() && (in_begin_ != in_.size() || readable_)) advance();
  if (!ending()) publish();
}

void Session::resume() {
  if (readable_ && may_read()) continue_later();
}

}  // namespace sluice
