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

constexpr size_t kKeptOutputBytes = 16U << 10;
constexpr size_t kCompactBytes = 64U << 10;
// Unread input that is thrown away before a close, so that the peer gets our last reply and no
// reset.
constexpr int kMaxDropReads = 16;

}  // namespace

// What has been appended to out_ since the last call may leave once `gate` is durable.
void Session::gate_output(Lsn gate) {
  // Also for changes without a reply: somebody has to hand them to the journal's writer.
  if (gate > thread_.durable_lsn()) thread_.request_end_of_turn();
  const size_t covered = segments_.empty() ? sendable_ : segments_.back().end;
  if (out_.size() == covered) return;
  if (segments_.empty() && gate <= thread_.durable_lsn()) {
    sendable_ = out_.size();
    return;
  }
  if (!segments_.empty() && gate <= segments_.back().gate) {
    segments_.back().end = out_.size();
    return;
  }
  segments_.push_back({out_.size(), gate});
  thread_.add_gated(*this);
}

bool Session::is_released() const {
  return segments_.empty() || segments_.front().gate <= thread_.durable_lsn();
}

void Session::flush() {
  if (ending()) return;
  if (!segments_.empty()) {
    const Lsn durable = thread_.durable_lsn();
    size_t passed = 0;
    while (passed < segments_.size() && segments_[passed].gate <= durable) ++passed;
    if (passed != 0) {
      sendable_ = segments_[passed - 1].end;
      segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(passed));
    }
  }
  if (sent_ != sendable_ && !awaiting_write_ && !write_some()) return;
  if (closing_ && sent_ == out_.size()) {
    drop_unread_input();
    close();
    return;
  }
  if (pending_output() != 0) check_output_limits();
  if (output_paused_ && pending_output() <= kOutputResumeBytes) output_paused_ = false;
}

// Writes until all is written or the kernel takes no more. False if the session is closed.
bool Session::write_some() {
  IoThread::Counters& counters = thread_.counters();
  while (sent_ != sendable_) {
    const char* const from = out_.data() + sent_;
    const size_t left = sendable_ - sent_;
    const ssize_t count = tls_ == nullptr ? ::send(fd_, from, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                          : tls_->write(from, left);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        awaiting_write_ = true;  // the poller tells when there is room again
        break;
      }
      close();
      return false;
    }
    const auto written = static_cast<size_t>(count);
    add_relaxed(counters.output_bytes, written);
    add_relaxed(counters.writes, 1);
    sent_ += written;
    kill_point("after_acknowledgement");
  }
  compact_output();
  return true;
}

void Session::compact_output() {
  if (sent_ == out_.size()) {
    out_.clear();
    out_.shrink(kKeptOutputBytes);
    sent_ = 0;
    sendable_ = 0;
    return;
  }
  if (sent_ < kCompactBytes || sent_ < out_.size() / 2) return;
  out_.erase_front(sent_);
  sendable_ -= sent_;
  for (Segment& segment : segments_) segment.end -= sent_;
  sent_ = 0;
}

OutputClass Session::output_class() const {
  return client_.subscriptions() != 0 ? OutputClass::kPubsub : OutputClass::kNormal;
}

void Session::check_output_limits() {
  const size_t pending = pending_output();
  ServerState& state = thread_.state();
  const OutputLimit& limit = state.limits.output[static_cast<size_t>(output_class())];
  const uint64_t hard = limit.hard_bytes.load(std::memory_order_relaxed);
  const uint64_t soft = limit.soft_bytes.load(std::memory_order_relaxed);
  bool over = hard != 0 && pending > hard;
  if (!authenticated_ && sendable_ - sent_ > kUnauthenticatedOutputBytes) over = true;
  if (soft != 0 && pending > soft) {
    if (soft_limit_since_ms_ == 0) soft_limit_since_ms_ = Clocks::steady_ms();
    const int64_t soft_s = limit.soft_s.load(std::memory_order_relaxed);
    over = over || Clocks::steady_ms() - soft_limit_since_ms_ > soft_s * 1000;
    thread_.need_housekeeping();
  } else {
    soft_limit_since_ms_ = 0;
  }
  if (over) {
    if (const auto others = state.output_limits_in_log.next(Clocks::steady_ms())) {
      spdlog::warn("Client {} closed for overcoming of output buffer limits ({} bytes){}",
                   client_.address, pending, *others);
    }
    state.output_buffer_disconnections.fetch_add(1, std::memory_order_relaxed);
    close();
    return;
  }
  if (pending > kOutputPauseBytes) output_paused_ = true;
}

void Session::on_journal_failed() {
  if (closed_ || executing_ || segments_.empty()) return;
  // What waits may be lost: an error takes its place.
  segments_.clear();
  out_.resize(sendable_);
  RespReply reply(out_, client_.protocol);
  reply.error(
      "MISCONF Errors writing to the journal: the server stops. The last commands may or may "
      "not have been kept.");
  sendable_ = out_.size();
  closing_ = true;
  flush();
}

void Session::drop_unread_input() {
  std::array<char, 4096> scrap;
  for (int i = 0; i < kMaxDropReads; ++i) {
    if (::recv(fd_, scrap.data(), scrap.size(), MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace sluice
