// The end of a session: requesting it, and notifying others.
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/io/strangers.h"
#include "net/tls/tls_service.h"

namespace sluice {

namespace {

// Ending tied leases may be a change like any other.
void leave_engine(IoThread& thread, Client& client) {
  thread.run_between_batches([&](Execution& execution) { execution.disconnect(client); });
}

void end_tls(TlsService& service, const std::string& address, TlsStream& stream) {
  if (!stream.failure().empty()) service.note_failed(address, stream.failure());
  stream.shut_down();
}

}  // namespace

void Session::begin_stop() {
  if (closed() || run_ == Run::kExecuting) return;
  life_.drain();
  flush();
}

void Session::close() {
  if (closed()) return;
  const bool executing = run_ == Run::kExecuting;
  if (executing || thread_.levels().nested()) {
    // The engine is notified under shard locks, which a command further up the stack may hold.
    if (!executing && !places.to_close) {
      thread_.sessions().close_later(*this);
      ::shutdown(fd_, SHUT_RDWR);  // the peer need not wait for the script
    }
    life_.end();
    return;
  }
  life_.close();
  thread_.strangers().remove(*this);
  end_blocking();
  leave_engine(thread_, client_);
  counted_pubsub_.set(false);
  port_->forget_session();
  client_.port = nullptr;
  output_.drop_gates();
  if (tls_ != nullptr) end_tls(*thread_.state().tls, client_.address, *tls_);
  tls_ = nullptr;
  ::close(fd_);
  fd_ = -1;
  thread_.sessions().bury(*this);
}

// Many may end at once: all but a few wait for their turn, and are not served any more.
void Session::close_soon() {
  if (life_.is_ending()) return;
  if (thread_.sessions().may_close_now()) return close();
  if (client_.waiter != nullptr) client_.waiter->give_up();
  life_.end();
  thread_.sessions().close_later(*this);
}

void Session::check_time_limits(int64_t now_ms) {
  if (closed() || run_ == Run::kExecuting) return;
  check_output_limits();
  if (tls_ != nullptr && !closed()) check_handshake(now_ms);
  if (closed()) return;
  const int64_t timeout_s = thread_.state().limits.idle_timeout_s.load(std::memory_order_relaxed);
  if (timeout_s == 0) return;
  thread_.housekeeping().need();
  if (client_.waiter != nullptr || client_.postponed) return;
  if (client_.subscriptions() != 0 || client_.monitoring) return;
  if (now_ms - active_ms_ > timeout_s * 1000) {
    spdlog::debug("Closing idle client {}", client_.address);
    close_soon();
  }
}

// Nothing can have run before the handshake is done, so the last activity is the connection itself.
void Session::check_handshake(int64_t now_ms) {
  if (tls_->established()) return;
  thread_.housekeeping().need();
  ServerState& state = thread_.state();
  const int64_t limit_s = state.limits.tls_handshake_s.load(std::memory_order_relaxed);
  if (now_ms - active_ms_ <= limit_s * 1000) return;
  state.tls->note_failed(client_.address, "timeout");
  close();
}

}  // namespace sluice
