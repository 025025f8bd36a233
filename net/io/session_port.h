// SessionPort: the part of a connection that other threads may use: to deliver bytes, to read its
// facts, and to kill or unblock it. All of this becomes mail for the I/O thread that owns the
// session.
//
// Ownership: shared by the engine (subscriptions, waiters, monitors) and the registry of the I/O
// thread. It may outlive the session: `session_` is used by the session's own thread only, and is
// null from the moment the connection is closed; mail that arrives later is dropped. The I/O thread
// outlives every port.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "engine/clients/client.h"
#include "engine/ports/server_port.h"
#include "engine/unit/unit.h"

namespace sluice {

class IoThread;
class Session;
class SessionPort;

struct Mail {
  enum class Kind : uint8_t {
    kMessage,
    kPush,
    kBlockedReply,
    kUnblocked,
    kUnblockedWithError,
    kKill,
    kInvalidation,
    kRedirectedInvalidation
  };

  // The end of a blocked command or of the connection.
  bool is_end() const {
    return kind == Kind::kBlockedReply || kind == Kind::kUnblocked ||
           kind == Kind::kUnblockedWithError || kind == Kind::kKill;
  }

  std::shared_ptr<SessionPort> to;
  Kind kind = Kind::kMessage;
  ByteBuffer bytes;
  Lsn gate = 0;
};

// The addresses of both ends; fixed for the life of a connection.
struct Endpoints {
  std::string address;
  std::string local_address;
  int fd = -1;
  bool unix_socket = false;
  bool tls = false;
  // Over TLS: the text to send after the handshake before closing; empty: the connection is
  // accepted.
  std::string refusal;
};

class SessionPort final : public ClientPort, public std::enable_shared_from_this<SessionPort> {
 public:
  SessionPort(IoThread& thread, Session& session, uint64_t id, Endpoints endpoints,
              int64_t created_ms);

  // --- Any thread ---
  void deliver(ByteBuffer bytes, Lsn gate) override;
  void deliver_push(ByteBuffer bytes, Lsn gate) override;
  void deliver_blocked_reply(ByteBuffer bytes, Lsn gate) override;
  void deliver_invalidation(ByteBuffer payload, bool redirected, Lsn gate) override;
  bool connected() const override { return connected_.load(std::memory_order_acquire); }
  // Closes the connection soon. From now on it executes nothing, and what it waits for goes to
  // others.
  void kill();
  bool killed() const { return killed_.load(std::memory_order_acquire); }
  // Unblocks the client; the session's thread then writes the reply. Returns false if not blocked.
  bool unblock(bool with_error);
  uint64_t id() const { return id_; }
  const Endpoints& endpoints() const { return endpoints_; }
  // `now_ms` is steady time, like all times here.
  ClientFacts facts(int64_t now_ms) const;
  // Whether it is silent because it is waiting: it is blocked, subscribed, or a monitor.
  bool is_waiting() const;
  int64_t active_ms() const { return active_ms_.load(std::memory_order_relaxed); }
  size_t query_bytes() const { return query_bytes_.load(std::memory_order_relaxed); }
  size_t output_bytes() const { return output_bytes_.load(std::memory_order_relaxed); }
  size_t memory_bytes() const;

  // --- The session's thread ---
  Session* session() const { return session_; }
  // The connection is closed. Also drops the waiter, which in turn owns this port.
  void forget_session();
  // The values that facts() returns from now on.
  struct Numbers {
    int64_t active_ms = 0;
    size_t query_bytes = 0;
    size_t query_free_bytes = 0;
    size_t output_bytes = 0;
    size_t output_buffer_bytes = 0;
    bool closing = false;
  };
  void publish(const Client& client, const Numbers& numbers);

  // The present facts of `client`, which the calling thread owns.
  static void describe(const Client& client, ClientFacts& facts);

 private:
  void publish_words(const Client& client);
  // Claims the blocked command, so that no other thread can end it. Returns false if it is not
  // blocked, or it has been ended.
  bool take_waiter();
  // As if its time were over, for waiters that are served then. Returns false for others.
  bool leave_late();

  IoThread& thread_;
  Session* session_;
  const uint64_t id_;
  const Endpoints endpoints_;
  const int64_t created_ms_;

  std::atomic<int64_t> active_ms_;
  std::atomic<size_t> query_bytes_{0};
  std::atomic<size_t> query_free_bytes_{0};
  std::atomic<size_t> output_bytes_{0};
  std::atomic<size_t> output_buffer_bytes_{0};
  std::atomic<size_t> multi_bytes_{0};
  std::atomic<const Command*> last_command_{nullptr};
  std::atomic<int> database_{0};
  std::atomic<int> protocol_{2};
  std::atomic<int> multi_{-1};
  std::atomic<uint32_t> channels_{0};
  std::atomic<uint32_t> patterns_{0};
  std::atomic<uint32_t> shard_channels_{0};
  std::atomic<uint32_t> flags_{0};
  std::atomic<int64_t> redirect_{-1};
  std::atomic<bool> connected_{true};
  std::atomic<bool> killed_{false};

  // Only the session's thread writes these, and may read them without the lock.
  mutable Mutex mutex_;
  std::string name_;
  std::string library_name_;
  std::string library_version_;
  std::shared_ptr<User> user_;
  std::shared_ptr<Waiter> waiter_;
};

}  // namespace sluice
