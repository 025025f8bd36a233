#include "net/http/connection.h"

#include <spdlog/spdlog.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "net/http/http_socket.h"
#include "net/http/problem.h"
#include "net/tls/tls_service.h"

namespace sluice {

namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr size_t kReadBytes = 16U << 10;
// The body of a request that needs no permission is stored and parsed for anybody.
constexpr size_t kMostOpenBodyBytes = 16U << 10;
// After a refusal this much input is read and discarded, so that the peer receives the response and
// no reset.
constexpr size_t kLingerBytes = 1U << 20;
constexpr int64_t kLingerMs = 1000;
constexpr int64_t kStreamSilenceMs = 15'000;

bool is_known_method(HttpMethod method) {
  switch (method) {
    case HttpMethod::get:
    case HttpMethod::head:
    case HttpMethod::post:
    case HttpMethod::put:
    case HttpMethod::patch:
    case HttpMethod::delete_:
    case HttpMethod::options:
    case HttpMethod::trace:
    case HttpMethod::connect:
      return true;
    default:
      return false;
  }
}

std::string without_port(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

bool is_loopback_address(Bytes address) {
  return address.starts_with("127.") || address.starts_with("[::1]") ||
         address.starts_with("[::ffff:127.");
}

}  // namespace

struct HttpConnection::Socket {
  Socket(IoThread& thread, int fd, const Endpoints& endpoints)
      : stream(thread, fd, endpoints.address.starts_with('['),
               endpoints.tls ? thread.state().tls->open(TlsPort::kHttp, fd) : nullptr) {}

  Bytes unread() const {
    return {static_cast<const char*>(input.data().data()), input.data().size()};
  }

  HttpSocket stream;
  beast::flat_buffer input;
  bool reading = false;
  size_t lingered_bytes = 0;
};

HttpConnection::HttpConnection(HttpThread& keeper, int fd, Endpoints endpoints)
    : keeper_(keeper),
      thread_(keeper.thread()),
      socket_(std::make_unique<Socket>(thread_, fd, endpoints)),
      engine_(std::make_unique<EngineClient>(thread_, endpoints.address)),
      endpoints_(std::move(endpoints)),
      timer_(thread_.executor()) {}

HttpConnection::~HttpConnection() { CHECK(at_ == At::kClosed); }

HttpService& HttpConnection::service() { return keeper_.service(); }

StreamBudget& HttpConnection::budget() { return keeper_.budget(); }

void HttpConnection::start() {
  if (!endpoints_.refusal.empty()) {
    at_ = At::kWriting;
    return write(endpoints_.refusal, [this] { linger(); });
  }
  idle_since_ms_ = Clocks::steady_ms();
  if (service().tokens()->serves_others()) keeper_.strangers().add(*this);
  // A handshake has less time than a request on an idle connection.
  set_deadline(socket_->stream.is_tls() ? service().limits().timeout_ms : patience_ms());
  read_more();
}

// --- Reading ---

void HttpConnection::read_more() {
  if (socket_->reading || at_ == At::kClosed) return;
  socket_->reading = true;
  socket_->stream.read_some(socket_->input.prepare(kReadBytes),
                            [self = shared_from_this()](const error_code& error, size_t count) {
                              self->socket_->reading = false;
                              if (self->at_ == At::kClosed) return;
                              if (error) return self->close();
                              self->socket_->input.commit(count);
                              self->take_input();
                            });
}

void HttpConnection::take_input() {
  const HttpLimits& limits = service().limits();
  if (at_ == At::kIdle && socket_->input.size() != 0) {
    at_ = At::kHead;
    set_deadline(limits.timeout_ms);
  }
  if (at_ == At::kBody) return take_body();
  if (at_ == At::kLingering) return drain();
  if (at_ != At::kHead) return;
  const Bytes unread = socket_->unread();
  const size_t head = find_head_end(unread, head_seen_);
  head_seen_ = head == 0 ? unread.size() : 0;
  if (head != 0 && head <= limits.max_head_bytes) return take_head(head);
  if (unread.front() == '*') return refuse(problem(400, "BADREQUEST", "This port speaks HTTP."));
  if (unread.size() > limits.max_target_bytes + 64 && unread.find('\n') == Bytes::npos) {
    return refuse(problem(414, "URITOOLONG", "The request target is too long."));
  }
  if (unread.size() > limits.max_head_bytes) {
    return refuse(problem(431, "HEADTOOLARGE", "The headers are too large."));
  }
  read_more();
}

// Beast's parser checks the grammar; inputs for which it is too lenient were rejected before.
bool HttpConnection::parse_head(Bytes head, HttpRequest& request, HttpResponse& refusal) {
  const Status status = check_head(head);
  if (!status.ok()) {
    refusal = problem(400, "BADREQUEST", "The head is malformed: " + status.message() + ".");
    return false;
  }
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<uint32_t>(head.size() + 1));
  parser.body_limit(boost::none);
  parser.skip(true);
  error_code error;
  parser.put(asio::buffer(head.data(), head.size()), error);
  if (error || !parser.is_header_done()) {
    const bool version = error == http::error::bad_version;
    refusal = version ? problem(505, "BADVERSION", "Only HTTP/1.1 and HTTP/1.0 are supported.")
                      : problem(400, "BADREQUEST", "The head is malformed.");
    return false;
  }
  const auto& parsed = parser.get();
  if (parsed.version() != 11 && parsed.version() != 10) {
    refusal = problem(505, "BADVERSION", "Only HTTP/1.1 and HTTP/1.0 are supported.");
    return false;
  }
  if (!is_known_method(parsed.method())) {
    refusal = problem(501, "BADMETHOD", "Unknown method.");
    return false;
  }
  request.method = parsed.method();
  request.http_1_1 = parsed.version() == 11;
  request.target = std::string(parsed.target());
  for (const auto& field : parsed) {
    request.headers.emplace_back(
        to_lower(Bytes(field.name_string().data(), field.name_string().size())),
        std::string(field.value()));
  }
  keep_alive_ = parser.keep_alive();
  return true;
}

void HttpConnection::take_head(size_t size) {
  HttpRequest request;
  HttpResponse refusal;
  head_only_ = false;
  keep_alive_ = true;
  body_.clear();
  body_left_ = 0;
  chunked_ = false;
  const bool good = parse_head(socket_->unread().substr(0, size), request, refusal);
  socket_->input.consume(size);
  service().counters().requests.fetch_add(1, std::memory_order_relaxed);
  if (!good || !check_request(request, refusal)) return refuse(std::move(refusal));
  request.peer = endpoints_.address;
  request.from_loopback = is_loopback_address(endpoints_.address);
  request.local_address = without_port(endpoints_.local_address);
  head_only_ = request.method == HttpMethod::head;
  exchange_ = std::make_shared<Exchange>(*this, std::move(request));
  if (!check_route(*exchange_, refusal) || !check_body(exchange_->request_, refusal)) {
    return refuse(std::move(refusal));
  }
  const bool has_body = chunked_ || body_left_ != 0;
  at_ = At::kBody;
  if (has_body && exchange_->request_.header("expect") != nullptr && socket_->input.size() == 0) {
    return write("HTTP/1.1 100 Continue\r\n\r\n", [this] {
      set_deadline(service().limits().timeout_ms);
      take_body();
    });
  }
  take_body();
}

void HttpConnection::take_body() {
  Bytes unread = socket_->unread();
  const size_t before = unread.size();
  bool done = false;
  if (chunked_) {
    const ChunkDecoder::Result result = chunks_->take(unread, body_);
    if (result == ChunkDecoder::Result::kBad) {
      return refuse(problem(400, "BADREQUEST", "The chunked body is malformed."));
    }
    done = result == ChunkDecoder::Result::kDone;
  } else {
    const size_t count = std::min<uint64_t>(body_left_, unread.size());
    body_ += unread.substr(0, count);
    unread.remove_prefix(count);
    body_left_ -= count;
    done = body_left_ == 0;
  }
  socket_->input.consume(before - unread.size());
  if (body_.size() > max_body_bytes_) {
    return refuse(problem(413, "BODYTOOLARGE", "The body is too large."));
  }
  done ? handle() : read_more();
}

void HttpConnection::handle() {
  at_ = At::kHandling;
  set_deadline(session_left_ms());
  exchange_->request_.body = std::move(body_);
  body_.clear();
  // Hold the exchange: the handler may respond at once.
  const std::shared_ptr<Exchange> exchange = exchange_;
  exchange->route_->handler(*exchange);
  if (at_ == At::kHandling || at_ == At::kStreaming) watch_peer();
}

// While a request is being answered no further request is read, but the peer's end cancels it.
void HttpConnection::watch_peer() {
  if (socket_->input.size() != 0) return;
  socket_->stream.wait_readable([self = shared_from_this()](const error_code& error, size_t) {
    if (error || (self->at_ != At::kHandling && self->at_ != At::kStreaming)) return;
    const ssize_t count = self->socket_->stream.peek();
    // Further requests may already arrive: then stop watching until this one is answered.
    if (count > 0) return;
    const bool nothing = count < 0 && (errno == EAGAIN || errno == EINTR);
    nothing ? self->watch_peer() : self->close();
  });
}

void HttpConnection::next_request() {
  if (at_ == At::kClosed) return;
  if (stopping_) return close();
  at_ = At::kIdle;
  idle_since_ms_ = Clocks::steady_ms();
  set_deadline(patience_ms());
  if (socket_->input.size() == 0) return read_more();
  // Not called directly: a client that pipelines would cause recursion, and delay other clients.
  thread_.post([self = shared_from_this()] {
    if (self->at_ == At::kIdle) self->take_input();
  });
}

// --- Checks ---

bool HttpConnection::check_request(HttpRequest& request, HttpResponse& refusal) {
  const HeadFault fault = check_framing(request);
  if (fault.status != 0) {
    refusal = problem(fault.status, "BADREQUEST", fault.detail);
    return false;
  }
  if (request.target.size() > service().limits().max_target_bytes) {
    refusal = problem(414, "URITOOLONG", "The request target is too long.");
    return false;
  }
  if (!split_target(request)) {
    refusal = problem(400, "BADREQUEST", "The request target is malformed.");
    return false;
  }
  const std::string* host = request.header("host");
  if (host != nullptr && !service().is_known_host(*host, without_port(endpoints_.local_address))) {
    refusal = problem(421, "BADHOST",
                      "Host header does not match any name of this server (see http-host).");
    return false;
  }
  const std::string* expect = request.header("expect");
  if (expect != nullptr && !equals_ignore_case(*expect, "100-continue")) {
    refusal = problem(417, "BADREQUEST", "Only \"Expect: 100-continue\" is supported.");
    return false;
  }
  return true;
}

bool HttpConnection::check_route(Exchange& exchange, HttpResponse& refusal) {
  const HttpRequest& request = exchange.request_;
  ServerState& state = service().state();
  RouteMatch match = match_route(service().routes(), request.method, request.path);
  if (match.route == nullptr && match.allowed.empty()) {
    refusal = problem(404, "NOTFOUND", "No resource at this path.");
    return false;
  }
  const std::shared_ptr<const Tokens> tokens = service().tokens();
  const Access access = match.route != nullptr ? match.route->access : Access::kRead;
  // The connection may have been accepted while there were tokens, or for a copy of the data.
  if (!tokens->serves_others(access) && !request.from_loopback) {
    refusal = loopback_only();
    return false;
  }
  Tokens::Answer answer =
      tokens->check(access, request.header("authorization"), state.engine->acl());
  if (answer.verdict == Tokens::Verdict::kForbidden) {
    refusal = problem(403, "NOPERM", "The token's role does not allow this.");
    return false;
  }
  if (answer.verdict != Tokens::Verdict::kGranted) {
    const bool bad = answer.verdict == Tokens::Verdict::kBadToken;
    refusal = problem(401, bad ? "BADTOKEN" : "NOAUTH",
                      bad ? "Unknown token." : "A token is required (see http-token).");
    return false;
  }
  if (match.route == nullptr) {
    refusal = problem(405, "BADMETHOD", "This path does not support the method.");
    refusal.headers.emplace_back("Allow", match.allowed);
    return false;
  }
  if (is_change(request.method) && !check_origin(request, refusal)) return false;
  if (state.loading.load(std::memory_order_acquire) && !match.route->while_loading) {
    refusal = problem(503, "LOADING", "The data is being loaded.");
    return false;
  }
  if (is_change(request.method) && thread_.gate().congested()) {
    refusal = problem(503, "CONGESTED", "The disk cannot keep up with the writes.");
    return false;
  }
  if (access != Access::kOpen) {
    known_ = true;
    keeper_.strangers().remove(*this);
  }
  exchange.route_ = match.route;
  exchange.path_ = std::move(match.parameters);
  exchange.principal_ = std::move(answer.principal);
  return true;
}

// A page of another origin must not be able to make its visitor's browser change anything here.
bool HttpConnection::check_origin(const HttpRequest& request, HttpResponse& refusal) const {
  const std::string* origin = request.header("origin");
  const std::string* site = request.header("sec-fetch-site");
  const std::string* host = request.header("host");
  const bool same_site = site == nullptr || *site == "same-origin" || *site == "none";
  const std::string scheme = socket_->stream.is_tls() ? "https://" : "http://";
  const bool same_origin =
      origin == nullptr || (host != nullptr && equals_ignore_case(*origin, scheme + *host));
  if (same_site && same_origin) return true;
  refusal = problem(403, "BADORIGIN", "Cross-origin request rejected.");
  return false;
}

bool HttpConnection::check_body(const HttpRequest& request, HttpResponse& refusal) {
  chunked_ = request.header("transfer-encoding") != nullptr;
  chunks_.reset();
  if (chunked_) chunks_.emplace();
  const std::string* length = request.header("content-length");
  // Nineteen digits fit; more exceed every limit.
  if (length != nullptr) {
    body_left_ = length->size() > 18 ? UINT64_MAX : std::stoull(*length);
  }
  max_body_bytes_ = service().limits().max_body_bytes;
  if (exchange_->route_->access == Access::kOpen) {
    max_body_bytes_ = std::min(max_body_bytes_, kMostOpenBodyBytes);
  }
  if (body_left_ > max_body_bytes_) {
    refusal = problem(413, "BODYTOOLARGE", "The body is too large.");
    return false;
  }
  const std::string* type = request.header("content-type");
  const bool has_body = chunked_ || body_left_ != 0;
  // Parameters may follow: "application/json; charset=utf-8".
  if (has_body && type != nullptr &&
      !equals_ignore_case(Bytes(*type).substr(0, type->find_first_of("; \t")),
                          "application/json")) {
    refusal = problem(415, "BADTYPE", "Content-Type must be application/json.");
    return false;
  }
  return true;
}

// --- Writing ---

// Responds before the request was read completely: the rest must not be taken for the next request.
void HttpConnection::refuse(HttpResponse response) {
  const bool unread_body = exchange_ == nullptr || chunked_ || body_left_ != 0 ||
                           exchange_->request().header("transfer-encoding") != nullptr ||
                           exchange_->request().header("content-length") != nullptr;
  response.close =
      response.close || unread_body || response.status == 400 || response.status == 413;
  send(std::move(response));
}

void HttpConnection::send(HttpResponse response) {
  if (at_ == At::kClosed || at_ == At::kWriting || at_ == At::kStreaming) return;
  at_ = At::kWriting;
  set_deadline(0);  // the change may become durable after the session's end
  if (response.close || stopping_) keep_alive_ = false;
  std::string bytes = head_text(response, keep_alive_, false);
  if (!head_only_) bytes += response.body;
  const bool unread = response.close;
  write_when_durable(std::move(bytes), [this, unread] {
    cut_exchange();
    if (keep_alive_) return next_request();
    unread ? linger() : close();
  });
}

void HttpConnection::open_stream(HttpResponse head, std::function<void()> sent) {
  if (at_ != At::kHandling) return;
  at_ = At::kStreaming;
  keep_alive_ = false;
  streams_events_ = head.content_type == "text/event-stream";
  if (head_only_) sent = [this] { close(); };
  write_when_durable(head_text(head, false, true), std::move(sent));
}

void HttpConnection::send_part(std::string part, std::function<void()> sent) {
  if (at_ != At::kStreaming) return;
  if (!session_has_ended()) return write_when_durable(std::move(part), std::move(sent));
  // Not from within the handler.
  thread_.post([self = shared_from_this()] { self->close(); });
}

void HttpConnection::end_stream() {
  if (at_ == At::kStreaming) linger();
}

void HttpConnection::write_when_durable(std::string bytes, std::function<void()> done) {
  thread_.gate().when_durable(engine_->gate(), [self = shared_from_this(), text = std::move(bytes),
                                                then = std::move(done)](bool durable) mutable {
    if (self->at_ == At::kClosed) return;
    if (durable) return self->write(std::move(text), std::move(then));
    // The response may report lost changes: send an error instead, if nothing was sent yet.
    if (self->at_ == At::kStreaming) return self->close();
    self->keep_alive_ = false;
    HttpResponse response = problem_of_error(
        "MISCONF The last commands may or may not have been kept; the server is stopping.");
    std::string failure = head_text(response, false, false);
    if (!self->head_only_) failure += response.body;
    self->write(std::move(failure), [raw = self.get()] { raw->close(); });
  });
}

void HttpConnection::write(std::string bytes, std::function<void()> done) {
  if (write_busy_) {
    parts_.emplace_back(std::move(bytes), std::move(done));
    return;
  }
  writing_ = std::move(bytes);
  write_busy_ = true;
  set_deadline(service().limits().timeout_ms);
  socket_->stream.write_all(
      asio::buffer(writing_),
      [self = shared_from_this(), then = std::move(done)](const error_code& error, size_t) {
        if (self->at_ == At::kClosed) return;
        if (error) return self->close();
        self->write_busy_ = false;
        self->set_deadline(self->at_ == At::kStreaming ? kStreamSilenceMs : 0);
        if (then != nullptr) then();
        if (self->parts_.empty() || self->write_busy_ || self->at_ != At::kStreaming) return;
        auto [part, next] = std::move(self->parts_.front());
        self->parts_.erase(self->parts_.begin());
        self->write(std::move(part), std::move(next));
      });
}

// --- The end ---

void HttpConnection::linger() {
  at_ = At::kLingering;
  cut_exchange();
  socket_->stream.shutdown_send();
  set_deadline(kLingerMs);
  drain();
}

void HttpConnection::drain() {
  socket_->lingered_bytes += socket_->input.size();
  socket_->input.consume(socket_->input.size());
  if (socket_->lingered_bytes > kLingerBytes) return close();
  read_more();
}

void HttpConnection::set_deadline(int64_t wait_ms) {
  // Rounded up: what ends at the deadline must have ended when it comes.
  deadline_ms_ = wait_ms == 0 ? kNeverMs : Clocks::steady_ms() + 1 + wait_ms;
  if (deadline_ms_ < armed_ms_) arm_timer();
}

// A request moves the deadline several times. The timer is only set when it would expire too late:
// otherwise it looks again when it expires.
void HttpConnection::arm_timer() {
  armed_ms_ = deadline_ms_;
  if (armed_ms_ == kNeverMs) return;
  timer_.expires_after(std::chrono::milliseconds(armed_ms_ - Clocks::steady_ms()));
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->at_ == At::kClosed) return;
    Clocks::steady_ms() < self->deadline_ms_ ? self->arm_timer() : self->on_deadline();
  });
}

void HttpConnection::on_deadline() {
  deadline_ms_ = armed_ms_ = kNeverMs;
  if (at_ == At::kHandling) return rights_changed();
  const bool partial = at_ == At::kHead || at_ == At::kBody;
  if (socket_->stream.in_handshake()) {
    service().state().tls->note_failed(endpoints_.address, "timeout");
    return close();
  }
  if (partial || write_busy_) {
    service().counters().timeouts.fetch_add(1, std::memory_order_relaxed);
  }
  // After a long silence send a comment, which detects dead peers and keeps proxies from closing.
  const bool goes_on =
      at_ == At::kStreaming && streams_events_ && !write_busy_ && !session_has_ended();
  if (goes_on) return write(": still here\n\n", nullptr);
  if (!partial) return close();
  HttpResponse response = problem(408, "TIMEOUT", "The request was not received in time.");
  response.close = true;
  cut_exchange();
  send(std::move(response));
}

void HttpConnection::cut_exchange() {
  if (exchange_ != nullptr) exchange_->transport_ = nullptr;
  exchange_ = nullptr;
}

// When its command returns, the handler further up the stack needs its exchange and this
// connection.
bool HttpConnection::put_off(void (HttpConnection::*end)()) {
  if (!engine_->executing()) return false;
  thread_.levels().run_outermost([self = shared_from_this(), end] { (self.get()->*end)(); });
  return true;
}

void HttpConnection::begin_stop() {
  stopping_ = true;
  if (put_off(&HttpConnection::begin_stop)) return;
  // A client that does not hear of its changes would make them again.
  if (at_ == At::kHandling && has_changed()) return engine_->hurry();
  if (at_ == At::kHandling) return send(problem(503, "STOPPING", "The server is stopping."));
  if (at_ != At::kWriting) close();
}

void HttpConnection::close() {
  if (at_ == At::kClosed || put_off(&HttpConnection::close)) return;
  const std::shared_ptr<HttpConnection> self = shared_from_this();
  at_ = At::kClosed;
  keeper_.strangers().remove(*this);
  cut_exchange();
  timer_.cancel();
  engine_->close();
  const std::string failure = socket_->stream.tls_failure();
  if (!failure.empty()) service().state().tls->note_failed(endpoints_.address, failure);
  socket_->stream.close();
  keeper_.remove(self);
}

}  // namespace sluice
