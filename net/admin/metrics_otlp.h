// A MetricSet as the body of an OTLP/HTTP export, in the protocol's JSON encoding.
//
// Sums and histograms are cumulative. A point has a start time where it is known: the totals of a
// queue outlive the process, and a start of the process would make a restart look like new counts.
//
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/admin/metric_set.h"

namespace sluice {

// service.name and others, by which a collector tells servers apart.
using OtlpResource = std::vector<std::pair<std::string, std::string>>;

class OtlpWriter;

// Made piece by piece, as a thousand queues are some megabytes of JSON; what has been rendered is
// freed.
class MetricsOtlp {
 public:
  // `now_ms` in unix time.
  MetricsOtlp(MetricSet metrics, const OtlpResource& resource, int64_t now_ms);
  ~MetricsOtlp();

  // Makes some tens of points more; false: that was the end.
  bool go_on();
  // Once. REQUIRES: go_on() has said false.
  std::string take();

 private:
  MetricSet metrics_;
  std::unique_ptr<OtlpWriter> writer_;
};

// What a collector's answer says it did not take, in words; empty: nothing, or it is not JSON.
std::string otlp_rejection(Bytes answer);

}  // namespace sluice
