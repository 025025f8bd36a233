// LATENCY's events: what took longer than latency-monitor-threshold, by the kind of event.
//
// Any thread; one mutex, taken only for what was slow and by who asks.
#pragma once

#include <array>
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
  int64_t steady_s = 0;  // the same moment by the steady clock, which ages go by
  int64_t latency_ms = 0;
};

struct LatencyEvent {
  std::string name;
  int64_t longest_ms = 0;  // since the last reset
  // The oldest first; the longest of each second, and at least one.
  std::vector<LatencySample> samples;
};

class LatencyMonitor {
 public:
  // Older ones go.
  static constexpr size_t kMostSamples = 160;

  void add(Bytes event, const LatencySample& sample);
  // By name.
  std::vector<LatencyEvent> events() const;
  std::optional<LatencyEvent> find(Bytes name) const;
  // Forgets one event; false: there is none. Forgets all; their number.
  bool reset(Bytes name);
  size_t reset_all();

 private:
  mutable Mutex mutex_;
  std::map<std::string, LatencyEvent, std::less<>> events_ GUARDED_BY(mutex_);
};

}  // namespace sluice
