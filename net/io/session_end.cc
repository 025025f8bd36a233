// The end of a session: who asks for it, and what is told of it.
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/io/strangers.h"

namespace sluice {

void Session::begin_stop() {
  if (closed_ || executing_) return;
  closing_ = true;
  flush();
}

void Session::close() {
  if (closed_) return;
  if (executing_ || thread_.nested()) {
    // The engine is told under shard locks, which a command up the stack may hold.
    if (!executing_ && !to_be_closed_) {
      thread_.close_later(*this);
      ::shutdown(fd_, SHUT_RDWR);  // the peer need not wait for the script
    }
    to_be_closed_ = true;
    return;
  }
  closed_ = true;
  thread_.strangers().remove(*this);
  end_blocking();
  leave_engine();
  if (counted_pubsub_) update_counts();
  port_->forget_session();
  client_.port = nullptr;
  segments_.clear();
  if (tls_ != nullptr) end_tls();
  ::close(fd_);
  fd_ = -1;
  thread_.bury(*this);
}

// Many may end at once: all but a few wait for their turns, and are served with nothing meanwhile.
void Session::close_soon() {
  if (ending()) return;
  if (thread_.may_close_now()) return close();
  if (client_.waiter != nullptr) client_.waiter->give_up();
  to_be_closed_ = true;
  thread_.close_later(*this);
}

// The ends of tied leases may be a change like any other.
void Session::leave_engine() {
  Execution& execution = thread_.execution();
  thread_.read_clock();
  execution.set_times(thread_.times());
  execution.disconnect(client_);
  if (execution.finish() > thread_.durable_lsn()) thread_.request_end_of_turn();
  thread_.after_batch();
}

void Session::check_time_limits(int64_t now_ms) {
  if (closed_ || executing_) return;
  check_output_limits();
  if (tls_ != nullptr && !closed_) check_handshake(now_ms);
  if (closed_) return;
  const int64_t timeout_s = thread_.state().limits.idle_timeout_s.load(std::memory_order_relaxed);
  if (timeout_s == 0) return;
  thread_.need_housekeeping();
  if (client_.waiter != nullptr || client_.postponed) return;
  if (client_.subscriptions() != 0 || client_.monitoring) return;
  if (now_ms - active_ms_ > timeout_s * 1000) {
    spdlog::debug("Closing idle client {}", client_.address);
    close_soon();
  }
}

}  // namespace sluice
