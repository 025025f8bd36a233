// MetricSet: the series of one moment, family by family, before anybody has put them into a format:
// /metrics renders them as text (metrics_text.h), the OTLP exporter as JSON (metrics_otlp.h).
//
// Why not prometheus-cpp or the OpenTelemetry SDK: they keep values that are counted up; ours are
// read from the state each time, so that they cannot drift, and a registry would be a second copy.
//
// Plain data; one thread; made for one answer. Names are Prometheus's: a counter's ends with
// _total, and a unit stands in the name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/execution/queue_names.h"

namespace sluice {

// The fewest digits that give the number back: a bound is `0.005`, as queries write it.
std::string metric_number(double value);

using MetricLabels = std::vector<std::pair<const char*, std::string>>;

struct MetricFamily {
  enum class Type : uint8_t { kGauge, kCounter, kHistogram };
  struct Point {
    MetricLabels labels;
    double value = 0;
    int64_t start_ms = 0;  // unix time from which it counts; 0: not known
  };
  struct Distribution {
    MetricLabels labels;
    BucketCounts counts;  // up_to never falls, and ends at most with the count
    int64_t start_ms = 0;
  };

  Type type = Type::kGauge;
  const char* help = "";
  std::vector<Point> points;                // gauges and counters
  std::vector<int64_t> bounds_ms;           // of histograms, which count seconds
  std::vector<Distribution> distributions;  // one for each set of labels
};

class MetricSet {
 public:
  void gauge(const char* name, const char* help, const MetricLabels& labels, double value);
  // A whole number.
  void counter(const char* name, const char* help, const MetricLabels& labels, double value,
               int64_t start_ms);
  // All calls for one name have the same bounds.
  void histogram(const char* name, const char* help, const MetricLabels& labels,
                 std::span<const int64_t> bounds_ms, BucketCounts counts, int64_t start_ms);

  const std::map<std::string, MetricFamily>& families() const { return families_; }
  // Frees the first family, for those who render one after the other.
  void drop_first() { families_.erase(families_.begin()); }

 private:
  MetricFamily& family(const char* name, MetricFamily::Type type, const char* help);

  std::map<std::string, MetricFamily> families_;
};

}  // namespace sluice
