// ServerState: shared by all I/O threads and sessions of one server: the engine, the journal, the
// limits that CONFIG SET changes, and counters.
//
// Threads: every member is atomic or thread-safe, or set before the I/O threads start and constant
// afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/base/log_pace.h"
#include "engine/execution/engine.h"
#include "net/config/settings.h"
#include "net/io/asio_thread.h"
#include "net/process/clocks.h"
#include "storage/group_commit.h"

namespace sluice {

class History;
class ServingGate;
class TlsService;

// For a counter written by one thread: avoids a locked instruction.
inline void add_relaxed(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

// client-output-buffer-limit of one class; 0: none.
struct OutputLimit {
  std::atomic<uint64_t> hard_bytes{0};
  std::atomic<uint64_t> soft_bytes{0};
  std::atomic<int64_t> soft_s{0};
};

struct ServerLimits {
  std::atomic<uint64_t> max_clients{10000};
  std::atomic<int64_t> idle_timeout_s{0};
  std::atomic<int> tcp_keepalive_s{300};
  std::atomic<int64_t> tls_handshake_s{10};
  std::atomic<uint64_t> query_buffer_bytes{1U << 30};
  std::atomic<int64_t> max_bulk_bytes{512LL << 20};
  std::atomic<bool> protected_mode{true};
  std::atomic<int64_t> metrics_queues{1000};       // with series of their own
  std::atomic<uint64_t> history_bytes{32U << 20};  // 0: none is kept
  // Limit of unwritten journal bytes above which no socket is read.
  std::atomic<uint64_t> journal_buffer_bytes{64U << 20};
  std::array<OutputLimit, kClientClasses> output;
};

// Limit of replies that a client has not read, above which its further requests wait; Redis would
// continue to buffer. High enough for a client that writes a deep pipeline before it reads
// anything.
inline constexpr size_t kOutputPauseBytes = 32U << 20;
inline constexpr size_t kOutputResumeBytes = 16U << 20;
// The same for a client that has not authenticated.
inline constexpr size_t kUnauthenticatedOutputBytes = 1024;

// Counters of OTLP exports. Written by I/O thread 0.
struct OtlpCounters {
  bool configured = false;
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> skipped{0};
};

class Listener;

struct ServerState {
  AsioThread asio;
  Engine* engine = nullptr;
  // Null if no port uses TLS.
  TlsService* tls = nullptr;
  // The history of queues, for the page; null if there is no HTTP.
  History* history = nullptr;
  // The RESP listeners without and with TLS, for reporting their ports.
  const Listener* listener = nullptr;
  const Listener* tls_listener = nullptr;
  // Null unless the journal is on a replicated log.
  ServingGate* gate = nullptr;
  // The start of the process, in unix time.
  int64_t started_ms = 0;
  // Null if nothing is kept, and until recovery has finished.
  std::atomic<GroupCommitJournal*> journal{nullptr};
  std::atomic<bool> loading{false};
  // No new connections and no further requests.
  std::atomic<bool> stopping{false};
  ServerLimits limits;

  Clocks clocks;
  // The times for which I/O thread 0's timer is set (DueTimes); a thread that makes something due
  // earlier calls wake_timer.
  std::atomic<int64_t> armed_due_ms{kNeverMs};
  std::atomic<int64_t> armed_due_queue_ms{kNeverMs};
  std::atomic<int64_t> armed_due_steady_ms{kNeverMs};
  std::function<void()> wake_timer;

  LogPace output_limits_in_log{1000};

  std::atomic<uint64_t> next_client_id{1};
  std::atomic<uint64_t> connected_clients{0};
  std::atomic<uint64_t> blocked_clients{0};
  std::atomic<uint64_t> pubsub_clients{0};
  std::atomic<uint64_t> timed_clients{0};  // blocked with a time-out
  std::atomic<uint64_t> connections_received{0};
  std::atomic<uint64_t> connections_rejected{0};
  std::atomic<uint64_t> query_buffer_disconnections{0};
  std::atomic<uint64_t> output_buffer_disconnections{0};
  OtlpCounters otlp;
};

}  // namespace sluice
