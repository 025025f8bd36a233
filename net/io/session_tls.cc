// Session over TLS: what the stream does not do by itself.
#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/tls/tls_service.h"

namespace sluice {

void Session::begin_tls() {
  thread_.need_housekeeping();
  const std::string& refusal = port_->endpoints().refusal;
  if (refusal.empty()) return;
  // Writing it drives the handshake, after which it leaves.
  out_.append(refusal);
  sendable_ = out_.size();
  closing_ = true;
  flush();
}

// TLS may have to read in order to write, and the other way round.
void Session::take_tls_edges() {
  if (readable_) tls_->note_readable(peer_ended_);
  if (!awaiting_write_ && tls_->read_waits_for_write()) readable_ = true;
  if (readable_ && tls_->write_waits_for_read()) awaiting_write_ = false;
}

// Before it is done nothing can have run, so the last activity is the connection itself.
void Session::check_handshake(int64_t now_ms) {
  if (tls_->established()) return;
  thread_.need_housekeeping();
  ServerState& state = thread_.state();
  const int64_t limit_s = state.limits.tls_handshake_s.load(std::memory_order_relaxed);
  if (now_ms - active_ms_ <= limit_s * 1000) return;
  state.tls->note_failed(client_.address, "it took too long");
  close();
}

void Session::end_tls() {
  if (!tls_->failure().empty()) {
    thread_.state().tls->note_failed(client_.address, tls_->failure());
  }
  tls_->shut_down();
  tls_ = nullptr;
}

}  // namespace sluice
