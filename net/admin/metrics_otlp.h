// A MetricSet as the body of an OTLP/HTTP export, in the protocol's JSON encoding.
//
// Sums and histograms are cumulative. A point has a start time where it is known: the totals of a
// queue outlive the process, and a start of the process would make a restart look like new counts.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/admin/metric_set.h"

namespace sluice {

// service.name and others, by which a collector tells servers apart.
using OtlpResource = std::vector<std::pair<std::string, std::string>>;

// `now_ms` in unix time.
std::string metrics_otlp(const MetricSet& metrics, const OtlpResource& resource, int64_t now_ms);

// What a collector's answer says it did not take, in words; empty: nothing, or it is not JSON.
std::string otlp_rejection(Bytes answer);

}  // namespace sluice
