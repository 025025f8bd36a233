#include "net/io/blocked_client.h"

#include "net/io/io_thread.h"
#include "net/process/clocks.h"

namespace sluice {

BlockedClient::BlockedClient(IoThread& thread, Session& session)
    : thread_(thread), session_(session), counted_(thread.state().blocked_clients) {}

void BlockedClient::begin(std::optional<int64_t> wait_ms) {
  if (counted_.is_set()) return;
  counted_.set(true);
  if (!wait_ms) return;
  const int64_t now_ms = Clocks::steady_ms();
  deadline_ms_ = *wait_ms < kNeverMs - now_ms - 1 ? now_ms + *wait_ms : kNeverMs - 1;
  thread_.timeouts().add(deadline_ms_, session_);
}

bool BlockedClient::end() {
  if (!counted_.is_set()) return false;
  counted_.set(false);
  if (deadline_ms_ != 0) thread_.timeouts().remove(deadline_ms_, session_);
  deadline_ms_ = 0;
  return true;
}

}  // namespace sluice
