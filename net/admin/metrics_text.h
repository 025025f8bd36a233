// A MetricSet in the text formats of Prometheus and OpenMetrics.
//
// Pure function.
#pragma once

#include <string>

#include "net/admin/metric_set.h"

namespace sluice {

std::string metrics_text(const MetricSet& metrics, bool open_metrics);

}  // namespace sluice
