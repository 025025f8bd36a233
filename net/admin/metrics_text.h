// Renders a MetricSet in the text formats of Prometheus and OpenMetrics.
//
// A thousand queues are some megabytes of text, so it is rendered piece by piece, and what has been
// rendered is freed. Used by one thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "net/admin/metric_set.h"

namespace sluice {

class MetricsText {
 public:
  MetricsText(MetricSet metrics, bool open_metrics);
  MetricsText(const MetricsText&) = delete;
  MetricsText& operator=(const MetricsText&) = delete;

  // Renders some tens of lines more. Returns false at the end.
  bool go_on();
  // Call once. REQUIRES: go_on() has returned false.
  std::string take() { return std::move(text_); }

 private:
  void begin_family();

  MetricSet metrics_;
  const bool open_metrics_;
  std::string text_;
  // The next point of the first family, then its next distribution.
  size_t point_ = 0;
  size_t distribution_ = 0;
  std::vector<std::string> bounds_;  // of its distributions, as text
};

}  // namespace sluice
