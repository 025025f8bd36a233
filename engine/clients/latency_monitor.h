// The events of LATENCY: operations that took longer than latency-monitor-threshold, by kind.
//
// Thread-safe; one mutex, taken only for slow operations and for queries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"

namespace sluice {

struct LatencySample {
  int64_t unix_s = 0;
  int64_t steady_s = 0;  // the same moment by the steady clock, for computing ages
  int64_t latency_ms = 0;
};

struct LatencyEvent {
  std::string name;
  int64_t longest_ms = 0;  // since the last reset
  // The oldest first; the longest of each second that has any. Never empty.
  std::vector<LatencySample> samples;
};

class LatencyMonitor {
 public:
  // Older samples are dropped.
  static constexpr size_t kMostSamples = 160;

  void add(Bytes event, const LatencySample& sample);
  // In the order of their names.
  std::vector<LatencyEvent> events() const;
  std::optional<LatencyEvent> find(Bytes name) const;
  // Removes one event; returns false if it does not exist. reset_all() removes all and returns
  // their number.
  bool reset(Bytes name);
  size_t reset_all();

 private:
  mutable Mutex mutex_;
  std::map<std::string, LatencyEvent, std::less<>> events_ GUARDED_BY(mutex_);
};

}  // namespace sluice
