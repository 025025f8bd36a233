// Connection: one connection to the server, by hiredis, in RESP2 (hiredis 0.14 knows no RESP3).
//
// One thread. It connects with the first command, and again with the next one after a failure.
// Every failure is thrown: kNoConnection where the server cannot be reached or does not speak RESP,
// kServerError where it answers an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/resp_value.h"
#include "tools/cli/arguments.h"

struct redisContext;

namespace sluice::cli {

struct Address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;    // a path; empty: host and port
  std::string user;      // empty: the default one
  std::string password;  // empty: none is sent
  int database = 0;

  // From the options, and SLUICE_AUTH or else REDISCLI_AUTH. Throws a usage error.
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

  void connect();
  void apply_patience();
  [[noreturn]] void fail();

  Address address_;
  std::unique_ptr<redisContext, Free> context_;
  int64_t patience_ms_ = kUsualPatienceMs;

  static constexpr int64_t kUsualPatienceMs = 30'000;
};

// Q's error as a person reads it: the server's own text, and what its code means.
std::string explain_error(const std::string& text);

}  // namespace sluice::cli
