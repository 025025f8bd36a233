// ClientPort: a connection as the engine sees it. Sessions implement it (net/io/).
#pragma once

#include "engine/base/bytes.h"
#include "engine/ports/journal.h"

namespace sluice {

// How the engine reaches a connection that another thread may own. Any thread may call it; the
// bytes are written by the connection's own thread, after whatever it had queued before, and not
// before the journal has made `gate` durable.
class ClientPort {
 public:
  virtual ~ClientPort() = default;
  // Complete RESP values, e.g. pub/sub messages.
  virtual void deliver(ByteBuffer bytes, Lsn gate) = 0;
  // The reply of the blocked command that this connection waits in.
  virtual void deliver_blocked_reply(ByteBuffer bytes, Lsn gate) = 0;
  // Keys that the connection (`redirected`: or the one for which it is told) must not trust a copy
  // of any more: see write_invalidation() of engine/clients/tracking.h.
  virtual void deliver_invalidation(ByteBuffer, bool /*redirected*/, Lsn) {}
  // The connection has not ended yet.
  virtual bool connected() const { return true; }
};

}  // namespace sluice
