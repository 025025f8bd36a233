// HttpConnection: one HTTP/1.1 connection with keep-alive, which reads, checks and answers requests
// one by one. HttpThread: the connections of one I/O thread.
//
// In this folder only this file's source includes Beast, beast_impl.cc that compiles it, and
// message.{h,cc} for its words; a parsed request becomes an HttpRequest at once. Requests are
// checked in this order: the form of the head, the host, the path, the credentials, the method, the
// origin, the body. So a client without permission cannot make the server store more than a small
// body, at the few routes that are open to everybody.
//
// Threads and lifetime: one I/O thread. Asio's handlers share ownership of the connection. close()
// detaches it from everything else; handlers that run later find it closed.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "net/http/exchange.h"
#include "net/http/head_check.h"
#include "net/http/http_service.h"
#include "net/http/stream_budget.h"
#include "net/io/asio_types.h"
#include "net/io/io_thread.h"
#include "net/io/strangers.h"

namespace sluice {

class HttpThread;

class HttpConnection final : public ExchangeTransport,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  // Takes ownership of `fd`, a connected, non-blocking socket.
  HttpConnection(HttpThread& keeper, int fd, Endpoints endpoints);
  ~HttpConnection() override;

  void start();
  // Closes the connection when the present response has been sent. A request that has changed
  // something is answered first.
  void begin_stop();
  void close();
  // Ends the present request if its token has been revoked, or if the token's user has lost the
  // right to it.
  void rights_changed();
  int64_t stranger_since_ms = 0;  // used by Strangers
  // Since when it has waited for a request, by CLOCK_BOOTTIME; kNeverMs: it does not.
  int64_t idle_since_ms() const { return at_ == At::kIdle ? idle_since_ms_ : kNeverMs; }

  // --- ExchangeTransport ---
  void send(HttpResponse response) override;
  void open_stream(HttpResponse head, std::function<void()> sent) override;
  void send_part(std::string part, std::function<void()> sent) override;
  void end_stream() override;
  EngineClient& engine() override { return *engine_; }
  HttpService& service() override;
  StreamBudget& budget() override;

 private:
  enum class At { kIdle, kHead, kBody, kHandling, kWriting, kStreaming, kLingering, kClosed };

  // --- Reading ---
  void read_more();
  void take_input();
  void take_head(size_t size);
  bool parse_head(Bytes head, HttpRequest& request, HttpResponse& refusal);
  void take_body();
  void handle();
  void watch_peer();
  void next_request();

  // --- Checks. If one returns false, `refusal` is the response ---
  bool check_request(HttpRequest& request, HttpResponse& refusal);
  bool check_route(Exchange& exchange, HttpResponse& refusal);
  bool check_origin(const HttpRequest& request, HttpResponse& refusal) const;
  bool check_body(const HttpRequest& request, HttpResponse& refusal);

  // Whether the request in progress has changed something, or may have.
  bool has_changed() const;
  // Whether the requester's log-in session has ended on its own.
  bool session_has_ended();
  // Until then; 0 if it has none.
  int64_t session_left_ms() const;

  // --- Writing ---
  void refuse(HttpResponse response);
  void write_when_durable(std::string bytes, std::function<void()> done);
  void write(std::string bytes, std::function<void()> done);
  void answered();
  void linger();
  void drain();

  int64_t patience_ms();
  // Moves the deadline to `wait_ms` from now; 0 removes it.
  void set_deadline(int64_t wait_ms);
  void arm_timer();
  void on_deadline();
  void cut_exchange();
  // If this is called from inside a command of the present request, which waits for a script, puts
  // off what would end the request until the command and its handler have ended.
  bool put_off(void (HttpConnection::*end)());

  HttpThread& keeper_;
  IoThread& thread_;
  struct Socket;
  std::unique_ptr<Socket> socket_;
  std::unique_ptr<EngineClient> engine_;
  const Endpoints endpoints_;
  SteadyTimer timer_;
  int64_t deadline_ms_ = kNeverMs;  // by the steady clock
  int64_t armed_ms_ = kNeverMs;     // when the timer expires: at the deadline or before
  At at_ = At::kIdle;
  int64_t idle_since_ms_ = 0;

  std::shared_ptr<Exchange> exchange_;
  bool known_ = false;  // something that is not open to everybody was granted to it
  bool keep_alive_ = true;
  bool head_only_ = false;  // the method is HEAD
  bool chunked_ = false;
  bool streams_events_ = false;  // comments between its parts are allowed
  uint64_t body_left_ = 0;
  size_t max_body_bytes_ = 0;
  std::optional<ChunkDecoder> chunks_;
  size_t head_seen_ = 0;  // length of the input known to hold no end of a head
  std::string body_;
  std::string writing_;
  bool write_busy_ = false;
  // Parts of a stream that are to be written, and what to call after each.
  std::vector<std::pair<std::string, std::function<void()>>> parts_;
  bool stopping_ = false;
};

// The connections of one I/O thread.
class HttpThread final : public IoThreadGuest {
 public:
  HttpThread(HttpService& service, IoThread& thread);

  void begin_stop() override;
  void close_all() override;
  void rights_changed();
  void take_connection(int fd, Endpoints endpoints);
  void remove(const std::shared_ptr<HttpConnection>& connection);

  HttpService& service() { return service_; }
  IoThread& thread() { return thread_; }
  StreamBudget& budget() { return budget_; }
  // Connections that have not authenticated, if there are tokens.
  Strangers<HttpConnection>& strangers() { return strangers_; }
  void close_some(size_t count);

 private:
  HttpService& service_;
  IoThread& thread_;
  StreamBudget budget_;
  Strangers<HttpConnection> strangers_;
  std::set<std::shared_ptr<HttpConnection>> connections_;
  bool stopping_ = false;
};

}  // namespace sluice
