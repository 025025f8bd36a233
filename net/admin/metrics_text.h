// A MetricSet in the text formats of Prometheus and OpenMetrics.
//
// A thousand queues are some megabytes of text, so it is made piece by piece, and what has been
// rendered is freed. One thread.
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

  // Makes some tens of lines more; false: that was the end.
  bool go_on();
  // Once. REQUIRES: go_on() has said false.
  std::string take() { return std::move(text_); }

 private:
  void begin_family();

  MetricSet metrics_;
  const bool open_metrics_;
  std::string text_;
  // What of the first family is next: its points, then its distributions.
  size_t point_ = 0;
  size_t distribution_ = 0;
  std::vector<std::string> bounds_;  // of its distributions, as text
};

}  // namespace sluice
