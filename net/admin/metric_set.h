// MetricSet: all series at one moment, family by family and independent of the format. /metrics
// renders them as text (metrics_text.h), the OTLP exporter as JSON (metrics_otlp.h).
//
// prometheus-cpp and the OpenTelemetry SDK are not used, because they hold values that are counted
// up. Our values are read from the state each time, so they cannot drift; a registry would be a
// second copy.
//
// Plain data, used by one thread, made for one response. Names follow Prometheus: a counter's ends
// with _total, and units are part of the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/execution/queue_names.h"

namespace sluice {

// The shortest decimal text that yields the number: bounds appear as `0.005`, as in queries.
std::string metric_number(double value);

// The points of a family that a renderer writes in one step.
inline constexpr size_t kPointsAtOnce = 32;

// A field of a reply that is one series.
struct MetricRow {
  const char* field;
  const char* name;
  const char* help;
};

using MetricLabels = std::vector<std::pair<const char*, std::string>>;

struct MetricFamily {
  enum class Type : uint8_t { kGauge, kCounter, kHistogram };
  struct Point {
    MetricLabels labels;
    double value = 0;
    int64_t start_ms = 0;  // unix time since when it counts; 0: unknown
  };
  struct Distribution {
    MetricLabels labels;
    BucketCounts counts;  // up_to is non-decreasing and at most the count
    int64_t start_ms = 0;
  };

  Type type = Type::kGauge;
  const char* help = "";
  std::vector<Point> points;                // gauges and counters
  std::vector<int64_t> bounds_ms;           // of histograms, which are in seconds
  std::vector<Distribution> distributions;  // one for each set of labels
};

class MetricSet {
 public:
  void gauge(const char* name, const char* help, const MetricLabels& labels, double value);
  // The value must be a whole number.
  void counter(const char* name, const char* help, const MetricLabels& labels, double value,
               int64_t start_ms);
  // All calls for one name must have the same bounds.
  void histogram(const char* name, const char* help, const MetricLabels& labels,
                 std::span<const int64_t> bounds_ms, BucketCounts counts, int64_t start_ms);

  const std::map<std::string, MetricFamily>& families() const { return families_; }
  // Frees the first family, for renderers that process one after the other.
  void drop_first() { families_.erase(families_.begin()); }

 private:
  MetricFamily& family(const char* name, MetricFamily::Type type, const char* help);

  std::map<std::string, MetricFamily> families_;
};

}  // namespace sluice
