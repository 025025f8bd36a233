// Renders a MetricSet as the body of an OTLP/HTTP export, in the protocol's JSON encoding.
//
// Sums and histograms are cumulative. A point has a start time if it is known. The start of the
// process is not used, because the totals of a queue outlive the process and a restart would look
// like new counts.
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/admin/metric_set.h"

namespace sluice {

// service.name and other attributes by which a collector distinguishes servers.
using OtlpResource = std::vector<std::pair<std::string, std::string>>;

class OtlpWriter;

// Renders piece by piece, because a thousand queues are some megabytes of JSON, and frees what has
// been rendered.
class MetricsOtlp {
 public:
  // `now_ms` in unix time.
  MetricsOtlp(MetricSet metrics, const OtlpResource& resource, int64_t now_ms);
  ~MetricsOtlp();

  // Renders some tens of points more. Returns false at the end.
  bool go_on();
  // Call once. REQUIRES: go_on() has returned false.
  std::string take();

 private:
  MetricSet metrics_;
  std::unique_ptr<OtlpWriter> writer_;
};

// The points that a collector's response rejected, as text; empty if none, or if it is not JSON.
std::string otlp_rejection(Bytes answer);

}  // namespace sluice
