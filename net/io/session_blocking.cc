// Session while its client is blocked by a command or by CLIENT PAUSE, and mail from other threads,
// which usually ends that.
#include <utility>

#include "engine/clients/pubsub.h"
#include "engine/clients/tracking.h"
#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/process/clocks.h"

namespace sluice {

// --- CLIENT PAUSE ---

bool Session::postpone(const Request& request) {
  if (!thread_.levels().execution().must_wait(client_, request)) return false;
  postponed_.words.assign(request.args.begin(), request.args.end());
  client_.postponed = true;
  return true;
}

// Runs the postponed request; if it has to wait again, it stays. Returns whether others may follow.
bool Session::run_postponed(RespReply& reply) {
  postponed_.due = false;
  const std::vector<std::string> words = std::move(postponed_.words);
  const std::vector<Bytes> args(words.begin(), words.end());
  client_.postponed = false;
  const Request request(args);
  if (postpone(request)) return false;
  execute(request, reply);
  if (client_.close_after_reply) life_.drain();
  return client_.waiter == nullptr && life_.is_open();
}

void Session::on_pause_changed() {
  if (closed() || run_ == Run::kExecuting || !client_.postponed) return;
  end_blocking();
  postponed_.due = true;
  advance();
}

// --- Blocking ---

bool wants_blocked_reply(Client& client) {
  const bool wanted = client.reply_mode == ReplyMode::kOn;
  if (client.reply_mode == ReplyMode::kSkip) client.reply_mode = ReplyMode::kOn;
  return wanted;
}

// The bookkeeping after a client is unblocked, however it was.
void Session::end_blocking() {
  if (blocked_.end()) active_ms_ = Clocks::steady_ms();
}

void Session::on_block_timeout() {
  blocked_.timed_out();
  if (client_.postponed) return on_pause_changed();
  if (closed() || client_.waiter == nullptr) return;
  const std::shared_ptr<Waiter> waiter = client_.waiter;
  if (waiter->served_when_late) {
    // Its reply is mail.
    thread_.engine().departures().leave_late(waiter);
    return thread_.after_batch();
  }
  // If it cannot be cancelled it has been claimed, and its reply is on the way.
  if (!waiter->give_up()) return;
  end_wait({});
  publish();
  advance();
}

// With this error; empty: as the time-out would.
void Session::end_wait(Bytes error) {
  const std::shared_ptr<Waiter> waiter = client_.waiter;
  thread_.engine().end_waiter(client_);
  end_blocking();
  if (!wants_blocked_reply(client_)) return;
  RespReply reply(output_.bytes(), waiter->protocol);
  if (error.empty()) {
    waiter->reply_timeout(reply);
  } else {
    Statistics& statistics = thread_.levels().execution().statistics;
    reply.count_errors_in(statistics.errors);
    waiter->reply_error(reply, error);
    add_one(statistics.of(waiter->command->id).failed);
  }
  gate_output(0);
}

void Session::on_rights_changed() {
  if (closed() || client_.waiter == nullptr) return;
  const std::string refusal = client_.waiter->lost_right();
  if (refusal.empty() || !client_.waiter->give_up()) return;
  end_wait(refusal);
  publish();
  advance();
}

// --- Mail ---

namespace {

// As the connection's present protocol has it.
void write_push(ByteBuffer& out, const Client& client, const Mail& mail) {
  if (mail.kind == Mail::Kind::kMessage) {
    write_message(out, client.protocol, mail.bytes.view());
  } else if (mail.kind == Mail::Kind::kPush) {
    if (client.protocol == 3) out.append(mail.bytes.view());
  } else {
    const bool redirected = mail.kind == Mail::Kind::kRedirectedInvalidation;
    write_invalidation(out, client, redirected, mail.bytes.view());
  }
}

}  // namespace

void Session::take_mail(Mail& mail) {
  if (closed()) return;
  if (run_ == Run::kExecuting) {
    // A script of this client is polling: its reply is only half written.
    put_off_.push_back(std::move(mail));
    return;
  }
  switch (mail.kind) {
    case Mail::Kind::kMessage:
    case Mail::Kind::kPush:
    case Mail::Kind::kInvalidation:
    case Mail::Kind::kRedirectedInvalidation: {
      const size_t before = output_.bytes().size();
      write_push(output_.bytes(), client_, mail);
      output_.note_pushed(output_.bytes().size() - before);
      gate_output(mail.gate);
      return;
    }
    case Mail::Kind::kBlockedReply:
      thread_.engine().end_waiter(client_);
      end_blocking();
      if (wants_blocked_reply(client_)) output_.bytes().append(mail.bytes.view());
      gate_output(mail.gate);
      return;
    case Mail::Kind::kUnblocked:
    case Mail::Kind::kUnblockedWithError:
      end_wait(mail.kind == Mail::Kind::kUnblockedWithError
                   ? "UNBLOCKED client unblocked via CLIENT UNBLOCK"
                   : "");
      return;
    case Mail::Kind::kKill:
      close_soon();
      return;
  }
}

void Session::write_out() {
  if (life_.is_ending() || run_ == Run::kExecuting) return;
  flush();
  // A reply may have unblocked the client: run what it has sent in the meantime.
  if (!life_.is_ending() && (!input_.empty() || edges_.readable)) advance();
  if (!life_.is_ending()) publish();
}

void Session::resume() {
  if (edges_.readable && may_read()) thread_.sockets().add_continuing(*this);
}

}  // namespace sluice
