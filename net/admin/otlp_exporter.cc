#include "net/admin/otlp_exporter.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "engine/base/numbers.h"
#include "net/admin/metrics_collect.h"
#include "net/http/http_service.h"
#include "net/http/name_lookup.h"
#include "net/http/tokens.h"
#include "net/io/turns.h"
#include "net/process/clocks.h"
#include "net/process/version.h"

namespace sluice {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, IoExecutor>;
using TlsSocket = asio::ssl::stream<TcpSocket&>;

namespace {

// Time limit of an export; nine tenths of the interval if that is less.
constexpr int64_t kMaxExportMs = 10'000;
constexpr int64_t kMaxRetryAfterS = 86'400;
constexpr auto kLookupPoll = std::chrono::milliseconds(10);
constexpr uint64_t kMaxAnswerBytes = 64U << 10;
constexpr size_t kShownReasonBytes = 300;

bool asks_to_retry(unsigned status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// Text from a collector is logged as one line of visible characters.
std::string one_line(std::string text) {
  text.resize(std::min(text.size(), kShownReasonBytes));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

Result<std::shared_ptr<const TlsClientContext>> otlp_tls(const Settings& settings) {
  if (!settings.otlp.endpoint || !settings.otlp.endpoint->tls) return {nullptr};
  TlsClientRules rules;
  rules.ca_file = settings.otlp_tls_ca_cert_file;
  auto context = TlsClientContext::load(rules);
  if (context.ok()) return context;
  return invalid("otlp-tls-ca-cert-file: " + context.status().message());
}

OtlpTarget otlp_target(const Settings& settings, uint16_t port,
                       std::shared_ptr<const TlsClientContext> tls) {
  OtlpTarget target;
  target.endpoint = *settings.otlp.endpoint;
  target.tls = std::move(tls);
  target.headers = settings.otlp.headers;
  target.interval_ms = settings.otlp_interval_s * 1000;
  const std::string host = host_name();
  target.resource = {{"service.name", settings.otlp_service_name},
                     {"service.version", kSluiceVersion},
                     {"service.instance.id", host + ':' + std::to_string(port)},
                     {"host.name", host}};
  return target;
}

// One export, from the connection to the response. Its handlers share ownership.
class OtlpExporter::Export : public std::enable_shared_from_this<Export> {
 public:
  Export(OtlpExporter& exporter, std::string body);

  void start(int64_t limit_ms);
  // Detaches it from the exporter.
  void close();

 private:
  void look_up();
  void connect(const NameLookup::Result& found);
  void shake_hands();
  void write();
  void read();
  void take_answer();
  // Whether a handler must stop: its step has failed, or the export has ended.
  bool failed(const error_code& error, const char* what);
  void end(const std::string& error, int64_t retry_after_ms = 0);

  OtlpExporter* exporter_;
  const HttpEndpoint endpoint_;
  TcpSocket socket_;
  std::optional<TlsSocket> tls_;  // over the socket, where the endpoint is https
  SteadyTimer deadline_;
  SteadyTimer poll_;
  std::shared_ptr<NameLookup> lookup_;
  std::vector<asio::ip::tcp::endpoint> addresses_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> answer_;
  beast::flat_buffer input_;
  const char* step_ = "looking up the host";
};

OtlpExporter::Export::Export(OtlpExporter& exporter, std::string body)
    : exporter_(&exporter),
      endpoint_(exporter.target_.endpoint),
      socket_(exporter.thread_.executor()),
      deadline_(exporter.thread_.executor()),
      poll_(exporter.thread_.executor()) {
  request_.method(http::verb::post);
  request_.target(endpoint_.target);
  request_.set(http::field::host, endpoint_.authority());
  request_.set(http::field::user_agent, std::string("sluice/") + kSluiceVersion);
  request_.set(http::field::content_type, "application/json");
  for (const auto& [name, value] : exporter.target_.headers) request_.set(name, value);
  request_.keep_alive(false);
  request_.body() = std::move(body);
  request_.prepare_payload();
  answer_.body_limit(kMaxAnswerBytes);
}

void OtlpExporter::Export::start(int64_t limit_ms) {
  deadline_.expires_after(std::chrono::milliseconds(limit_ms));
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->end(std::string("timeout while ") + self->step_);
  });
  lookup_ = NameLookup::begin(endpoint_.host, endpoint_.port);
  look_up();
}

void OtlpExporter::Export::look_up() {
  if (const auto found = lookup_->result()) return connect(*found);
  poll_.expires_after(kLookupPoll);
  poll_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->exporter_ != nullptr) self->look_up();
  });
}

bool OtlpExporter::Export::failed(const error_code& error, const char* what) {
  if (exporter_ == nullptr) return true;
  if (error) {
    const std::string refusal = tls_ ? certificate_refusal(tls_->native_handle()) : "";
    end(std::string(what) + ": " + error.message() + refusal);
  }
  return error.failed();
}

void OtlpExporter::Export::connect(const NameLookup::Result& found) {
  if (!found.error.empty()) return end(found.error);
  step_ = "connecting";
  addresses_ = found.addresses;
  asio::async_connect(
      socket_, addresses_,
      [self = shared_from_this()](const error_code& error, const asio::ip::tcp::endpoint&) {
        if (self->failed(error, "connecting")) return;
        self->endpoint_.tls ? self->shake_hands() : self->write();
      });
}

void OtlpExporter::Export::shake_hands() {
  step_ = "in the TLS handshake";
  TlsState state = exporter_->target_.tls->open(endpoint_.host);
  tls_.emplace(socket_, state.release());
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this()](const error_code& error) {
                          if (!self->failed(error, "the TLS handshake")) self->write();
                        });
}

void OtlpExporter::Export::write() {
  step_ = "sending";
  const auto then = [self = shared_from_this()](const error_code& error, size_t) {
    if (!self->failed(error, "sending")) self->read();
  };
  tls_ ? http::async_write(*tls_, request_, then) : http::async_write(socket_, request_, then);
}

void OtlpExporter::Export::read() {
  step_ = "waiting for the answer";
  const auto then = [self = shared_from_this()](const error_code& error, size_t) {
    if (!self->failed(error, "the answer")) self->take_answer();
  };
  tls_ ? http::async_read(*tls_, input_, answer_, then)
       : http::async_read(socket_, input_, answer_, then);
}

void OtlpExporter::Export::take_answer() {
  const auto& answer = answer_.get();
  const unsigned status = answer.result_int();
  if (status >= 200 && status < 300) return end(otlp_rejection(answer.body()));
  const std::string said = answer.body().empty() ? "" : ": " + answer.body();
  int64_t retry_after_ms = 0;
  if (asks_to_retry(status)) {
    // A date instead of seconds is ignored: the next export takes place as scheduled.
    const auto seconds = parse_i64(std::string(answer[http::field::retry_after]));
    retry_after_ms = std::clamp<int64_t>(seconds.value_or(0), 0, kMaxRetryAfterS) * 1000;
  }
  end("response status " + std::to_string(status) + said, retry_after_ms);
}

void OtlpExporter::Export::end(const std::string& error, int64_t retry_after_ms) {
  if (exporter_ == nullptr) return;
  OtlpExporter* const exporter = exporter_;
  close();
  exporter->finish(error, retry_after_ms);
}

void OtlpExporter::Export::close() {
  exporter_ = nullptr;
  deadline_.cancel();
  poll_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

// --- The exporter ---

OtlpExporter::OtlpExporter(IoThread& thread, OtlpTarget target, const HttpService* http)
    : thread_(thread),
      target_(std::move(target)),
      http_(http),
      user_(user_of_role(Role::kRead)),
      timer_(thread.executor()) {}

OtlpExporter::~OtlpExporter() { CHECK(export_ == nullptr); }

void OtlpExporter::start() {
  if (closed_) return;
  engine_.emplace(thread_, "otlp");
  due_ms_ = Clocks::steady_ms();
  arm();
}

// Scheduled at fixed times, so that the interval does not depend on how long exports take.
void OtlpExporter::arm() {
  const int64_t now_ms = Clocks::steady_ms();
  while (due_ms_ <= now_ms) due_ms_ += target_.interval_ms;
  timer_.expires_after(std::chrono::milliseconds(due_ms_ - now_ms));
  timer_.async_wait([this](const error_code& error) {
    if (!error && !closed_) on_time();
  });
}

void OtlpExporter::on_time() {
  arm();
  const ServerState& state = thread_.state();
  if (state.loading.load(std::memory_order_acquire)) return;
  const bool asked_to_wait = Clocks::steady_ms() < not_before_ms_;
  if (collecting_ || export_ != nullptr || asked_to_wait) return skip();
  collecting_ = true;
  MetricsRequest request;
  request.user = user_;
  request.http = http_;
  request.wanted = [this] { return !closed_; };
  request.then = [this](std::optional<MetricSet> metrics) {
    if (metrics) return render(std::move(*metrics));
    collecting_ = false;
    skip();
  };
  collect_metrics(*engine_, std::move(request));
}

void OtlpExporter::skip() { add_relaxed(thread_.state().otlp.skipped, 1); }

void OtlpExporter::render(MetricSet metrics) {
  const auto body = std::make_shared<MetricsOtlp>(std::move(metrics), target_.resource,
                                                  thread_.clock().read().wall_ms);
  work_in_turns(thread_, [this, body] {
    if (closed_) return false;
    if (body->go_on()) return true;
    collecting_ = false;
    begin(body->take());
    return false;
  });
}

void OtlpExporter::begin(std::string body) {
  auto made = std::make_shared<Export>(*this, std::move(body));
  export_ = made;
  thread_.gate().when_durable(engine_->gate(), [this, made](bool durable) {
    // After a failure of the journal the server stops, and what was read may be lost.
    if (export_ != made) return;
    if (!durable) return abandon();
    made->start(std::min(kMaxExportMs, target_.interval_ms * 9 / 10));
  });
}

void OtlpExporter::finish(const std::string& error, int64_t retry_after_ms) {
  export_ = nullptr;
  OtlpCounters& counters = thread_.state().otlp;
  add_relaxed(error.empty() ? counters.done : counters.failed, 1);
  not_before_ms_ = retry_after_ms == 0 ? 0 : Clocks::steady_ms() + retry_after_ms;
  const std::string where = target_.endpoint.authority();
  if (!error.empty() && !failing_) {
    spdlog::warn(
        "Cannot export metrics to {}: {}. Further failures are not logged until it succeeds", where,
        one_line(error));
  } else if (error.empty() && failing_) {
    spdlog::info("Exporting metrics to {} works again", where);
  }
  failing_ = !error.empty();
}

void OtlpExporter::abandon() {
  if (export_ != nullptr) export_->close();
  export_ = nullptr;
}

void OtlpExporter::begin_stop() {
  closed_ = true;
  timer_.cancel();
  abandon();
}

void OtlpExporter::close_all() {
  begin_stop();
  if (engine_) engine_->close();
}

}  // namespace sluice
