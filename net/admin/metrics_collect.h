// Everything that dashboards and alerts ask for, read from the state: the one way in which /metrics
// and the OTLP exporter come by their series.
//
// With many queues it takes several turns of the thread, so that nobody waits long behind it; each
// queue is as it was at one moment. The client's I/O thread. What is collected may be told once the
// client's gate is durable.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "net/admin/metric_set.h"
#include "net/io/engine_client.h"

namespace sluice {

class HttpService;

struct MetricsRequest {
  // What it may not read is left out.
  std::shared_ptr<User> user;
  const HttpService* http = nullptr;  // null: there is no HTTP
  // Asked between turns: false once the client may be gone, and nothing more happens.
  std::function<bool()> wanted;
  // Gets them, at once or in a later turn; nothing where a script keeps the shards.
  std::function<void(std::optional<MetricSet> metrics)> then;
};

// REQUIRES: the data is loaded.
void collect_metrics(EngineClient& client, MetricsRequest request);

}  // namespace sluice
