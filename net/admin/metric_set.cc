#include "net/admin/metric_set.h"

#include <algorithm>
#include <charconv>

namespace sluice {

std::string metric_number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  return {digits, end.ptr};
}

MetricFamily& MetricSet::family(const char* name, MetricFamily::Type type, const char* help) {
  MetricFamily& family = families_[name];
  family.type = type;
  family.help = help;
  return family;
}

void MetricSet::gauge(const char* name, const char* help, const MetricLabels& labels,
                      double value) {
  family(name, MetricFamily::Type::kGauge, help).points.push_back({labels, value, 0});
}

void MetricSet::counter(const char* name, const char* help, const MetricLabels& labels,
                        double value, int64_t start_ms) {
  family(name, MetricFamily::Type::kCounter, help).points.push_back({labels, value, start_ms});
}

void MetricSet::histogram(const char* name, const char* help, const MetricLabels& labels,
                          std::span<const int64_t> bounds_ms, BucketCounts counts,
                          int64_t start_ms) {
  MetricFamily& into = family(name, MetricFamily::Type::kHistogram, help);
  if (into.bounds_ms.empty()) into.bounds_ms.assign(bounds_ms.begin(), bounds_ms.end());
  // Counters updated by another thread may not have been read at the same moment.
  if (!counts.up_to.empty()) counts.count = std::max(counts.count, counts.up_to.back());
  into.distributions.push_back({labels, std::move(counts), start_ms});
}

}  // namespace sluice
