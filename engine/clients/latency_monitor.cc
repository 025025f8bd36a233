#include "engine/clients/latency_monitor.h"

#include <algorithm>

namespace sluice {

void LatencyMonitor::add(Bytes event, const LatencySample& sample) {
  MutexLock lock(mutex_);
  auto found = events_.find(event);
  if (found == events_.end()) {
    found = events_.emplace(event, LatencyEvent{std::string(event), 0, {}}).first;
  }
  LatencyEvent& known = found->second;
  known.longest_ms = std::max(known.longest_ms, sample.latency_ms);
  std::vector<LatencySample>& samples = known.samples;
  if (!samples.empty() && samples.back().unix_s == sample.unix_s) {
    samples.back().latency_ms = std::max(samples.back().latency_ms, sample.latency_ms);
    return;
  }
  if (samples.size() == kMostSamples) samples.erase(samples.begin());
  samples.push_back(sample);
}

std::vector<LatencyEvent> LatencyMonitor::events() const {
  MutexLock lock(mutex_);
  std::vector<LatencyEvent> all;
  for (const auto& [name, event] : events_) all.push_back(event);
  return all;
}

std::optional<LatencyEvent> LatencyMonitor::find(Bytes name) const {
  MutexLock lock(mutex_);
  const auto found = events_.find(name);
  if (found == events_.end()) return std::nullopt;
  return found->second;
}

bool LatencyMonitor::reset(Bytes name) {
  MutexLock lock(mutex_);
  const auto found = events_.find(name);
  if (found == events_.end()) return false;
  events_.erase(found);
  return true;
}

size_t LatencyMonitor::reset_all() {
  MutexLock lock(mutex_);
  const size_t count = events_.size();
  events_.clear();
  return count;
}

}  // namespace sluice
