// /metrics: the current series as text.
#include "net/admin/api.h"
#include "net/admin/metrics_collect.h"
#include "net/admin/metrics_text.h"
#include "net/admin/routes.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

void respond_metrics(Exchange& exchange, bool open_metrics, std::string text) {
  HttpResponse response;
  response.content_type = open_metrics
                              ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8";
  response.body = std::move(text);
  exchange.respond(std::move(response));
}

void get_metrics(Exchange& exchange) {
  const std::string* accept = exchange.request().header("accept");
  const bool open_metrics =
      accept != nullptr && accept->find("application/openmetrics-text") != std::string::npos;
  const std::shared_ptr<Exchange> shared = exchange.shared_from_this();
  MetricsRequest request;
  request.user = exchange.principal().user;
  request.http = &exchange.service();
  request.wanted = [shared] { return !shared->cut_off(); };
  request.then = [shared, open_metrics](std::optional<MetricSet> metrics) {
    if (!metrics) return shared->respond(problem_of_error("BUSY"));
    const auto text = std::make_shared<MetricsText>(std::move(*metrics), open_metrics);
    work_in_turns(shared->engine().thread(), [shared, open_metrics, text] {
      if (shared->cut_off()) return false;
      if (text->go_on()) return true;
      respond_metrics(*shared, open_metrics, text->take());
      return false;
    });
  };
  collect_metrics(exchange.engine(), std::move(request));
}

}  // namespace

std::vector<Route> metric_routes() {
  return {{.pattern = "/metrics",
           .access = Access::kReady,
           .handler = get_metrics,
           .summary = "Series for Prometheus; in OpenMetrics format if Accept requests it.",
           .answer = "Metrics",
           .content_type = "text/plain"}};
}

}  // namespace sluice
