// Collects all metrics from the state, for both /metrics and the OTLP exporter.
//
// With many queues this takes several turns of the thread, so that others do not wait; each queue
// is read at one moment. Runs on the client's I/O thread. The result may be sent once the client's
// gate is durable.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "net/admin/metric_set.h"
#include "net/io/engine_client.h"

namespace sluice {

class HttpService;

struct MetricsRequest {
  // What this user may not read is left out.
  std::shared_ptr<User> user;
  const HttpService* http = nullptr;  // null: there is no HTTP
  // Called between turns; the collection ends if it returns false because the client is gone.
  std::function<bool()> wanted;
  // Receives the metrics, at once or in a later turn; nothing if a script holds the shards.
  std::function<void(std::optional<MetricSet> metrics)> then;
};

// REQUIRES: the data is loaded.
void collect_metrics(EngineClient& client, MetricsRequest request);

}  // namespace sluice
