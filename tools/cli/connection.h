// Connection: one connection to the server through hiredis, in RESP2 (hiredis 0.14 supports neither
// RESP3 nor TLS; for TLS see tls_channel.h).
//
// Used by one thread. It connects with the first command, and reconnects with the next command
// after a failure, each time to the present primary if it knows Sentinels. Failures are thrown:
// kNoConnection if the server cannot be reached, does not speak RESP or is lost, kServerError if it
// replies with an error. Of a change whose reply was lost, the failure says that it may have been
// made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  std::string socket;    // a path; empty: use host and port
  std::string user;      // empty: the default user
  std::string password;  // empty: none is sent
  int database = 0;
  std::shared_ptr<const TlsClientContext> tls;  // null: no TLS
  std::string tls_name;  // the name that the certificate must be for; empty: that of the host
  // Hosts and ports of Sentinel, which know the primary's host and port; empty: none is asked.
  std::vector<std::pair<std::string, int>> sentinels;
  std::string sentinel_name = "mymaster";

  // From the options and SLUICE_AUTH, or else REDISCLI_AUTH. Throws a usage error, also if a TLS
  // file cannot be read.
  static Address from(const Arguments& arguments);
  // The address in a form for people.
  std::string text() const;
};

class Connection {
 public:
  explicit Connection(Address address) : address_(std::move(address)) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Address& address() const { return address_; }

  // Runs one command. Arrays in the reply stay plain: replies.h knows which of them are maps.
  RespValue call(const Words& words);
  // The same, but returns the server's errors as values.
  RespValue try_call(const Words& words);

  // For pipelining: each `send` is followed by a `receive` later, in the same order. `receive`
  // returns the server's errors as values.
  void send(const Words& words);
  RespValue receive();

  // Explains the server's error reply to these words.
  Failure explain(const Words& words, const std::string& text);

  // How long to wait for a reply, in milliseconds; 0: no limit. A blocking command needs more time.
  // It connects within this time too, if that is less than usual.
  void set_patience(int64_t ms);
  // Closes the connection; the next command reconnects.
  void close();
  // With Sentinels: a node that does not lead will do where no primary is named or reached. Before
  // the first command.
  void take_any_node() { takes_any_ = true; }

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };

  // Asks Sentinel for the address.
  void find_primary();
  // The address of the node that answers at this port of Sentinel. False: it does not tell.
  bool find_node(const std::string& host, int port);
  // To the address of any node. Throws `why` if no node answers.
  void open_any(const Failure& why);
  void open();
  void connect();
  void begin_tls();
  void limit_waits(int64_t ms);
  // How long to wait until it is connected.
  int64_t connect_ms() const;
  // `why` is a reason that hiredis does not know.
  [[noreturn]] void fail(std::string why = {});
  // Throws if one of the words, with which the connection was lost, is longer than the server
  // reads.
  void refuse_large(const Words& words);

  Address address_;
  std::unique_ptr<redisContext, Free> context_;
  std::unique_ptr<TlsChannel> tls_;  // null: no TLS, or not connected
  int64_t patience_ms_ = kUsualPatienceMs;
  bool is_connected_ = false;
  bool may_change_ = false;  // the last command that was sent
  bool takes_any_ = false;

  static constexpr int64_t kUsualPatienceMs = 30'000;
};

// Explains an error of a Q command: the server's own text and the meaning of its code.
std::string explain_error(const std::string& text);
// The same, where it ends the program.
Failure failure_of(const std::string& error);

}  // namespace sluice::cli
