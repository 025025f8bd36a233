// OtlpExporter: sends the series of /metrics to a collector, every so often, by OTLP over HTTP or
// HTTPS with JSON bodies.
//
// One export at a time: what collects and sends is the thread's own, asynchronously, with a time
// limit for the whole; a time that comes while one is under way is skipped. Nothing is kept for
// later: sums are cumulative, so the next export tells what a failed one would have told. After
// 429, 502, 503 or 504 with Retry-After none is tried before its time. A failure is logged once,
// until an export succeeds again.
//
// Threads and lifetime: a guest of I/O thread 0, destroyed with it. Asio's handlers share the
// export; close_all() cuts it off, and what still comes finds it closed.
#pragma once

#include <cstdint>
#include <memory>
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

// With what an https endpoint is spoken to; null where none is configured. Null and an `error`
// where the directive's file cannot be read.
std::shared_ptr<const TlsClientContext> otlp_tls(const Settings& settings, std::string& error);

// REQUIRES: an endpoint is configured. `port`, of RESP, tells servers of one machine apart; `tls`
// is what otlp_tls() gave.
OtlpTarget otlp_target(const Settings& settings, uint16_t port,
                       std::shared_ptr<const TlsClientContext> tls);

class OtlpExporter final : public IoThreadGuest {
 public:
  // `http` may be null; it outlives the exporter, as does `thread`.
  OtlpExporter(IoThread& thread, OtlpTarget target, const HttpService* http);
  ~OtlpExporter() override;

  // The thread. The first export is after one interval.
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
  // What the export came to; `error` is empty where the collector took it.
  void finish(const std::string& error, int64_t retry_after_ms);
  void abandon();

  IoThread& thread_;
  const OtlpTarget target_;
  const HttpService* const http_;
  EngineClient engine_;
  const std::shared_ptr<User> user_;
  SteadyTimer timer_;
  std::shared_ptr<Export> export_;
  int64_t due_ms_ = 0;         // of the steady clock
  int64_t not_before_ms_ = 0;  // as Retry-After asked
  bool collecting_ = false;
  bool failing_ = false;
  bool closed_ = false;
};

}  // namespace sluice
