// ServingGate: whether this node may answer requests that concern data (`journal etcd`). The
// primary may as long as its lease of reads lasts; when that is over, requests wait for
// `journal-patience`, and are refused after that. A standby always may, unless
// `replica-serve-stale-data` is no: then requests are refused while it has not heard of the log for
// kTrustedViewMs.
//
// Threads: any. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/ports/group_port.h"
#include "net/group/read_lease.h"

namespace sluice {

class ServingGate {
 public:
  ServingGate(int64_t failover_timeout_ms, int64_t patience_ms)
      : lease_(failover_timeout_ms), patience_ms_(patience_ms) {}

  ReadLease& lease() { return lease_; }

  // From now on the lease counts.
  void begin_leading() { leads_.store(true, std::memory_order_release); }
  void refuse_old_data(bool refuse) { refuses_old_data_.store(refuse, std::memory_order_relaxed); }
  // The log was heard of at this time.
  void heard(int64_t at_ms) { heard_ms_.store(at_ms, std::memory_order_relaxed); }
  bool is_open(int64_t now_ms) const {
    if (leads_.load(std::memory_order_acquire)) return lease_.holds(now_ms);
    return !refuses_old_data_.load(std::memory_order_relaxed) ||
           now_ms - heard_ms_.load(std::memory_order_relaxed) <= kTrustedViewMs;
  }
  // The reply to a request that the closed gate refuses.
  Bytes error() const {
    return leads_.load(std::memory_order_acquire)
               ? "NOREPLICAS Not enough good replicas to write."
               : "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
  }

  // How long requests still wait, as the gate is closed; 0: they are refused.
  int64_t left_ms(int64_t now_ms) const {
    if (!leads_.load(std::memory_order_acquire)) return 0;
    const int64_t since_ms = closed_since_ms_.load();
    return std::max<int64_t>(0, (since_ms == 0 ? now_ms : since_ms) + patience_ms_ - now_ms);
  }
  // Requests are kept waiting. Called after they are held: so a thread that finds it open after
  // that ends the wait.
  void begin_wait(int64_t now_ms) {
    int64_t none = 0;
    closed_since_ms_.compare_exchange_strong(none, now_ms);
  }
  // The gate is open again: true if requests were kept waiting.
  bool end_wait() { return closed_since_ms_.exchange(0) != 0; }

 private:
  ReadLease lease_;
  const int64_t patience_ms_;
  std::atomic<bool> leads_{false};
  std::atomic<bool> refuses_old_data_{false};
  std::atomic<int64_t> heard_ms_{0};
  std::atomic<int64_t> closed_since_ms_{0};
};

}  // namespace sluice
