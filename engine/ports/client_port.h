// ClientPort: a connection as the engine sees it. Sessions implement it (net/io/).
#pragma once

#include "engine/base/bytes.h"
#include "engine/ports/journal.h"

namespace sluice {

// How the engine reaches a connection that another thread may own. Thread-safe. The connection's
// own thread writes the bytes, after what is already queued for it, and not before the journal has
// made `gate` durable.
class ClientPort {
 public:
  virtual ~ClientPort() = default;
  // Delivers a message of pub/sub, in RESP3, or lines of MONITOR: see write_message() in
  // engine/clients/pubsub.h.
  virtual void deliver(ByteBuffer bytes, Lsn gate) = 0;
  // Delivers any other push. Connections that speak RESP2 get none.
  virtual void deliver_push(ByteBuffer bytes, Lsn gate) { deliver(std::move(bytes), gate); }
  // Delivers the reply of the blocked command of this connection.
  virtual void deliver_blocked_reply(ByteBuffer bytes, Lsn gate) = 0;
  // Delivers keys whose cached copies are no longer valid: see write_invalidation() in
  // engine/clients/tracking.h. `redirected`: the copies are those of another connection, which
  // redirects its invalidations to this one.
  virtual void deliver_invalidation(ByteBuffer, bool /*redirected*/, Lsn) {}
  // Whether the connection is still open.
  virtual bool connected() const { return true; }
};

}  // namespace sluice
