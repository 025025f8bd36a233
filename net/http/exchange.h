// Exchange: one request and its answer, as a handler sees them.
//
// A handler runs commands by run(), and answers once by respond(), at once or from the continuation
// of run_waiting(); or it opens a stream and sends parts. Nothing leaves before the journal has
// what it reports: the transport waits for the engine client's gate.
//
// Ownership: the connection holds it until it is answered; continuations may hold it longer. When
// the connection ends first, the exchange is cut off: what it says then goes nowhere, and its
// continuations are not called. Threads: the connection's I/O thread only.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "net/http/message.h"
#include "net/http/router.h"
#include "net/io/engine_client.h"

namespace sluice {

class HttpService;
class StreamBudget;

// The connection's side of it.
class ExchangeTransport {
 public:
  virtual ~ExchangeTransport() = default;
  virtual void send(HttpResponse response) = 0;
  // A stream: its head, without a length; then parts, of which the next one may be sent when
  // `sent` is called.
  virtual void open_stream(HttpResponse head, std::function<void()> sent) = 0;
  virtual void send_part(std::string part, std::function<void()> sent) = 0;
  virtual void end_stream() = 0;
  virtual EngineClient& engine() = 0;
  virtual HttpService& service() = 0;
  virtual StreamBudget& budget() = 0;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(ExchangeTransport& transport, HttpRequest request)
      : transport_(&transport), request_(std::move(request)) {}

  const HttpRequest& request() const { return request_; }
  // The decoded part of the path that stands for `{name}`. REQUIRES: the route has one.
  const std::string& path(Bytes name) const;
  const Principal& principal() const { return principal_; }
  HttpService& service() { return transport_->service(); }

  // In which database the commands run; 0 at first.
  void select(int database);
  // Runs a command with the rights of who asks.
  RespValue run(const std::vector<std::string>& arguments);
  // The same if the key holds a queue at that moment; else the reply is null.
  RespValue run_if_queue(const std::string& key, const std::vector<std::string>& arguments);
  // For what is read in another way than by a command: who does raises its gate. REQUIRES: not cut
  // off.
  EngineClient& engine() { return transport_->engine(); }
  // One that may block.
  void run_waiting(const std::vector<std::string>& arguments, EngineClient::Then then);
  // The last command that was refused, or that could block: what its error is about.
  const std::vector<std::string>& refused() const { return refused_; }

  void respond(HttpResponse response);
  void open_stream(HttpResponse head, std::function<void()> sent);
  void send_part(std::string part, std::function<void()> sent);
  void end_stream();
  // What a stream asks before each part. REQUIRES: not cut off.
  StreamBudget& budget() { return transport_->budget(); }
  // The connection is gone: nobody listens any more.
  bool cut_off() const { return transport_ == nullptr; }

 private:
  friend class HttpConnection;

  ExchangeTransport* transport_;
  HttpRequest request_;
  PathParameters path_;
  Principal principal_;
  const Route* route_ = nullptr;
  int database_ = 0;
  std::vector<std::string> refused_;
};

}  // namespace sluice
