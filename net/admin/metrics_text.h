// MetricsText: samples, family by family, in the text formats of Prometheus and OpenMetrics.
//
// Why not prometheus-cpp: it keeps values that are counted up; ours are read from the state at each
// scrape, so that they cannot drift, and a registry would be a second copy of them.
//
// One thread; made for one scrape.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/queue_names.h"

namespace sluice {

using MetricLabels = std::vector<std::pair<const char*, std::string>>;

class MetricsText {
 public:
  explicit MetricsText(bool open_metrics) : open_metrics_(open_metrics) {}

  void gauge(const std::string& name, const char* help, const MetricLabels& labels, double value);
  // `name` ends with _total.
  void counter(const std::string& name, const char* help, const MetricLabels& labels, double value);
  // In seconds; the bounds in `bounds_ms`.
  void histogram(const std::string& name, const char* help, const MetricLabels& labels,
                 std::span<const int64_t> bounds_ms, const BucketCounts& counts);

  std::string take() const;

 private:
  struct Family {
    const char* type = "";
    const char* help = "";
    std::string samples;
  };
  Family& family(const std::string& name, const char* type, const char* help);
  static void sample(Family& family, const std::string& name, const MetricLabels& labels,
                     double value);

  bool open_metrics_;
  std::map<std::string, Family> families_;
};

}  // namespace sluice
