// Session's input: when to read, and one read.
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/tls/tls_stream.h"

namespace sluice {

namespace {

// Limit of input from a blocked client; beyond it, it is not read (and its end is not noticed).
constexpr size_t kMaxBlockedBacklog = 1U << 20;

}  // namespace

// Whether more input is wanted now. A session that does not want any is resumed later.
bool Session::may_read() {
  if (!life_.is_open() || places.continuing || output_.is_paused()) return false;
  // Its reply is imminent. The end of the input follows it, so the reply is sent first.
  if (client_.waiter != nullptr && client_.waiter->queue.in_passing) return false;
  const bool waits = client_.waiter != nullptr || client_.postponed;
  if (waits && input_.size() > kMaxBlockedBacklog) return false;
  if (thread_.state().stopping.load(std::memory_order_relaxed)) return false;
  if (thread_.gate().congested()) {
    thread_.gate().add_paused(*this);
    return false;
  }
  return true;
}

// Performs one read and handles the result.
void Session::read_input() {
  const bool journaled = thread_.engine().journal() != nullptr;
  const std::span<char> room =
      input_.make_room(parser_, journaled ? std::optional<int>(client_.database) : std::nullopt);
  const ssize_t count = tls_ == nullptr ? ::recv(fd_, room.data(), room.size(), MSG_DONTWAIT)
                                        : tls_->read(room.data(), room.size());
  if (count <= 0) {
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      edges_.readable = errno == EINTR;
      if (edges_.readable) thread_.sockets().add_continuing(*this);
      return;
    }
    if (count == 0 && output_.pending() != 0 && client_.waiter == nullptr) {
      // The client has sent everything and may still read: its last replies are sent first.
      edges_.readable = false;
      life_.drain();
      flush();
    } else {
      close_soon();
    }
    return;
  }
  const auto bytes = static_cast<size_t>(count);
  // A short read has emptied the socket; later input is a new edge.
  const bool drained = bytes < room.size() && (tls_ == nullptr || tls_->drained());
  if (drained && !edges_.peer_ended) edges_.readable = false;
  IoThread::Counters& counters = thread_.counters();
  add_relaxed(counters.input_bytes, bytes);
  add_relaxed(counters.reads, 1);
  input_.advance(bytes);
  // Requests queued in MULTI have not been executed either.
  if (input_.size() + client_.queued_bytes >
      thread_.state().limits.query_buffer_bytes.load(std::memory_order_relaxed)) {
    spdlog::warn("Closing client that reached max query buffer length: {}", client_.address);
    thread_.state().query_buffer_disconnections.fetch_add(1, std::memory_order_relaxed);
    close();
    return;
  }
  advance();
}

}  // namespace sluice
