// Session's output: gates, writing, limits.
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "engine/base/kill_point.h"
#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/process/clocks.h"
#include "net/tls/tls_stream.h"

namespace sluice {

namespace {

// Maximum amount of unread input that is discarded before closing, so that the peer receives the
// last reply and no reset.
constexpr int kMaxDropReads = 16;

void drop_unread_input(int fd) {
  std::array<char, 4096> scrap;
  for (int i = 0; i < kMaxDropReads; ++i) {
    if (::recv(fd, scrap.data(), scrap.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace

// Output appended since the last call may be sent when `gate` is durable.
void Session::gate_output(Lsn gate) {
  const Lsn durable = thread_.gate().durable_lsn();
  // Also for changes without a reply: they must be passed to the journal's writer.
  if (gate > durable) thread_.gate().request_flush();
  if (output_.gate(gate, durable)) thread_.gate().add_gated(*this);
}

void Session::flush() {
  if (life_.is_ending()) return;
  if (output_.is_gated()) output_.release(thread_.gate().durable_lsn());
  if (output_.has_sendable() && !edges_.awaiting_write && !write_some()) return;
  if (life_.is_draining() && output_.pending() == 0) {
    drop_unread_input(fd_);
    close();
    return;
  }
  if (output_.pending() != 0) check_output_limits();
  output_.resume_when_short();
}

// Writes until everything is written or the kernel accepts no more. Returns false if the session is
// closed.
bool Session::write_some() {
  IoThread::Counters& counters = thread_.counters();
  while (output_.has_sendable()) {
    const Bytes bytes = output_.sendable();
    const ssize_t count = tls_ == nullptr
                              ? ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                              : tls_->write(bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        edges_.awaiting_write = true;
        break;
      }
      close();
      return false;
    }
    const auto written = static_cast<size_t>(count);
    add_relaxed(counters.output_bytes, written);
    add_relaxed(counters.writes, 1);
    output_.sent(written);
    kill_point("after_acknowledgement");
  }
  output_.compact();
  return true;
}

void Session::check_output_limits() {
  ServerState& state = thread_.state();
  // Also monitors, and those that get invalidations: they are bounded as subscribers are, but not
  // in the replies to their own commands.
  const bool as_pubsub = client_.subscriptions() != 0 || output_.holds_mostly_pushes();
  bool over = output_.exceeds(state.limits.output[as_pubsub ? kPubsubClient : kNormalClient]);
  if (output_.is_over_soft_limit()) thread_.housekeeping().need();
  const bool authenticated = parser_.limits().authenticated;
  if (!authenticated && output_.sendable().size() > kUnauthenticatedOutputBytes) over = true;
  if (!over) return output_.pause_when_long();
  if (const auto others = state.output_limits_in_log.next(Clocks::steady_ms())) {
    spdlog::warn("Client {} closed for overcoming of output buffer limits ({} bytes){}",
                 client_.address, output_.pending(), *others);
  }
  state.output_buffer_disconnections.fetch_add(1, std::memory_order_relaxed);
  close();
}

void Session::on_journal_failed() {
  if (closed() || run_ == Run::kExecuting || !output_.is_gated()) return;
  // Waiting replies may report lost changes: they are replaced by an error.
  output_.drop_gated();
  RespReply reply(output_.bytes(), client_.protocol);
  reply.error(
      "MISCONF Errors writing to the journal: the server stops. The last commands may or may "
      "not have been kept.");
  output_.open();
  life_.drain();
  flush();
}

}  // namespace sluice
