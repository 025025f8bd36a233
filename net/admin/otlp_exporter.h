// OtlpExporter: periodically sends the series of /metrics to a collector by OTLP over HTTP or HTTPS
// with JSON bodies.
//
// One export at a time, asynchronously on the thread, with a time limit for the whole. An export
// that is due while another is running is skipped. Nothing is stored for later: sums are
// cumulative, so the next export also reports what a failed one would have reported. After 429,
// 502, 503 or 504 with Retry-After, no export is tried before that time. A failure is logged once,
// until an export succeeds again.
//
// Threads and lifetime: a guest of I/O thread 0, destroyed with it. Asio's handlers share ownership
// of the export; close_all() detaches it, and handlers that run later find it closed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/admin/metrics_otlp.h"
#include "net/config/settings.h"
#include "net/io/asio_types.h"
#include "net/io/engine_client.h"
#include "net/io/io_thread.h"
#include "net/tls/tls_client.h"

namespace sluice {

class HttpService;

struct OtlpTarget {
  HttpEndpoint endpoint;
  std::shared_ptr<const TlsClientContext> tls;  // null: the endpoint is http
  std::vector<std::pair<std::string, std::string>> headers;
  int64_t interval_ms = 0;
  OtlpResource resource;
};

// The TLS context for an https endpoint; null if none is configured.
Result<std::shared_ptr<const TlsClientContext>> otlp_tls(const Settings& settings);

// REQUIRES: an endpoint is configured. `port` (of RESP) distinguishes the servers of one machine;
// `tls` is the result of otlp_tls().
OtlpTarget otlp_target(const Settings& settings, uint16_t port,
                       std::shared_ptr<const TlsClientContext> tls);

class OtlpExporter final : public IoThreadGuest {
 public:
  // `http` may be null. It and `thread` must outlive the exporter.
  OtlpExporter(IoThread& thread, OtlpTarget target, const HttpService* http);
  ~OtlpExporter() override;

  // Called on the thread. The first export takes place after one interval.
  void start();

  // --- IoThreadGuest ---
  void begin_stop() override;
  void close_all() override;

 private:
  class Export;

  void arm();
  void on_time();
  void skip();
  void render(MetricSet metrics);
  void begin(std::string body);
  // The end of an export; `error` is empty if the collector accepted it.
  void finish(const std::string& error, int64_t retry_after_ms);
  void abandon();

  IoThread& thread_;
  const OtlpTarget target_;
  const HttpService* const http_;
  std::optional<EngineClient> engine_;  // none before start()
  const std::shared_ptr<User> user_;
  SteadyTimer timer_;
  std::shared_ptr<Export> export_;
  int64_t due_ms_ = 0;         // by the steady clock
  int64_t not_before_ms_ = 0;  // from Retry-After
  bool collecting_ = false;
  bool failing_ = false;
  bool closed_ = false;
};

}  // namespace sluice
