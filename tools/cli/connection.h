// Connection: one connection to the server, by hiredis, in RESP2 (hiredis 0.14 knows no RESP3, and
// no TLS either: see tls_channel.h).
//
// One thread. It connects with the first command, and again with the next one after a failure.
// Every failure is thrown: kNoConnection where the server cannot be reached or does not speak RESP,
// kServerError where it answers an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/resp/resp_value.h"
#include "net/tls/tls_client.h"
#include "tools/cli/arguments.h"
#include "tools/cli/failure.h"
#include "tools/cli/tls_channel.h"

struct redisContext;

namespace sluice::cli {

struct Address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;    // a path; empty: host and port
  std::string user;      // empty: the default one
  std::string password;  // empty: none is sent
  int database = 0;
  std::shared_ptr<const TlsClientContext> tls;  // null: none is spoken
  std::string tls_name;                         // whom the certificate must be of

  // From the options, and SLUICE_AUTH or else REDISCLI_AUTH. Throws a usage error, also where a
  // file of TLS cannot be read.
  static Address from(const Arguments& arguments);
  // As a person would write it.
  std::string text() const;
};

class Connection {
 public:
  explicit Connection(Address address) : address_(std::move(address)) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Address& address() const { return address_; }

  // Runs one command. Arrays of the reply are plain ones: replies.h knows which are maps.
  RespValue call(const Words& words);
  // The same, but an error of the server is a value.
  RespValue try_call(const Words& words);

  // Several commands at once: each `send` is followed by a `receive` later, in the same order.
  // `receive` returns errors of the server as values.
  void send(const Words& words);
  RespValue receive();

  // For how long a reply is awaited, milliseconds; 0: for ever. A blocking command needs more.
  void set_patience(int64_t ms);
  // The next command connects anew.
  void close();

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  // What the server's error to these words means.
  Failure explain(const Words& words, const std::string& text);
  void connect();
  void begin_tls();
  void limit_waits(int64_t ms);
  // `why`: what hiredis does not know of.
  [[noreturn]] void fail(std::string why = {});

  Address address_;
  std::unique_ptr<redisContext, Free> context_;
  std::unique_ptr<TlsChannel> tls_;  // null: without TLS, or not connected
  int64_t patience_ms_ = kUsualPatienceMs;

  static constexpr int64_t kUsualPatienceMs = 30'000;
};

// Q's error as a person reads it: the server's own text, and what its code means.
std::string explain_error(const std::string& text);

}  // namespace sluice::cli
