// Exchange: one request and its response, as a handler sees them.
//
// A handler runs commands by run(). It responds once by respond(), either at once or from the
// continuation of run_waiting(), or it opens a stream and sends parts. Nothing is sent before the
// journal holds what it reports: the transport waits for the engine client's gate.
//
// Ownership: the connection holds the exchange until it is answered; continuations may hold it
// longer. If the connection ends first, the exchange is cut off: its output is discarded and its
// continuations are not called. Threads: the connection's I/O thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/http/message.h"
#include "net/http/router.h"
#include "net/io/engine_client.h"

namespace sluice {

class HttpService;
class StreamBudget;

// What the connection does for an exchange.
class ExchangeTransport {
 public:
  virtual ~ExchangeTransport() = default;
  virtual void send(HttpResponse response) = 0;
  // Starts a stream: sends its head, without a length. Parts follow; the next one may be sent when
  // `sent` has been called.
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
  // The decoded part of the path at `{name}`. REQUIRES: the route has such a part.
  const std::string& path(Bytes name) const;
  const Principal& principal() const { return principal_; }
  HttpService& service() { return transport_->service(); }

  // The database for the commands; initially 0.
  int database() const { return database_; }
  void select(int database) { database_ = database; }
  // Runs a command with the rights of the requester.
  RespValue run(const std::vector<std::string>& arguments);
  // The same if the key holds a queue at that moment; otherwise returns null.
  RespValue run_if_queue(const std::string& key, const std::vector<std::string>& arguments);
  // Calls `commands`, which may call both a few times: nobody else changes the data in between.
  void run_together(const std::function<void()>& commands);
  // Tells the log of changes that the requester has changed something, as run() does by itself.
  void note_change(const std::vector<std::string>& words, int64_t count);
  // For reads that bypass commands; the caller must raise the gate itself. REQUIRES: not cut off.
  EngineClient& engine() { return transport_->engine(); }
  // Runs a command that may block.
  void run_waiting(const std::vector<std::string>& arguments, EngineClient::Then then);
  // The last command that was rejected, or that may block: for explaining its error.
  const std::vector<std::string>& refused() const { return refused_; }
  // The member, parameter or header that sets an option of the commands, for the same purpose; by
  // the option's word in lower case.
  const std::map<std::string, std::string>& option_names() const { return option_names_; }
  void name_option(Bytes word, Bytes name) { option_names_[to_lower(word)] = name; }

  void respond(HttpResponse response);
  void open_stream(HttpResponse head, std::function<void()> sent);
  void send_part(std::string part, std::function<void()> sent);
  void end_stream();
  // A stream asks this before each part. REQUIRES: not cut off.
  StreamBudget& budget() { return transport_->budget(); }
  // The connection is gone; output is discarded.
  bool cut_off() const { return transport_ == nullptr; }

 private:
  friend class HttpConnection;

  // Looks at the reply of a command.
  RespValue note(const std::vector<std::string>& arguments, RespValue reply);

  ExchangeTransport* transport_;
  HttpRequest request_;
  PathParameters path_;
  Principal principal_;
  const Route* route_ = nullptr;
  int database_ = 0;
  std::vector<std::string> refused_;
  std::map<std::string, std::string> option_names_;
};

}  // namespace sluice
