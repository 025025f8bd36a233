// TlsService: shared by the TLS ports: the current contexts, and the count of failed handshakes.
//
// Any thread. A connection keeps the context that it began with.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/log_pace.h"
#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "net/config/settings.h"
#include "net/tls/tls_context.h"
#include "net/tls/tls_stream.h"

namespace sluice {

enum class TlsPort : uint8_t { kResp, kHttp };
inline constexpr size_t kTlsPorts = 2;

class TlsService {
 public:
  // Reads the files for each configured port. On failure nothing changes.
  Status load(const Settings& settings);

  // The stream of a new connection on a port that was configured in load().
  std::unique_ptr<TlsStream> open(TlsPort port, int fd);

  // Counts a handshake that failed or took too long, and logs some of them.
  void note_failed(const std::string& address, const std::string& reason);
  uint64_t failed_handshakes() const { return failed_.load(std::memory_order_relaxed); }
  void reset_stats() { failed_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> failed_{0};
  Mutex mutex_;
  std::array<std::shared_ptr<const TlsContext>, kTlsPorts> contexts_ GUARDED_BY(mutex_);
  // A client that fails repeatedly must not fill the log.
  LogPace failures_in_log_{10'000};
};

}  // namespace sluice
