// TlsContext: what a port that speaks TLS has read from its files: certificate, key, CAs, rules.
//
// Immutable, any thread. A connection keeps what it was opened with, so a new context takes the
// place of an old one at any time. Each port has one of its own: a session that was made where no
// client certificate is asked for cannot be taken up again where one is, nor after a reload.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/config/settings.h"

// OpenSSL's SSL and SSL_CTX.
struct ssl_st;
struct ssl_ctx_st;

namespace sluice {

struct TlsFree {
  void operator()(ssl_st* state) const;
  void operator()(ssl_ctx_st* context) const;
};
using TlsState = std::unique_ptr<ssl_st, TlsFree>;

// The cause of what OpenSSL has just failed at, in words. Forgets this thread's errors.
std::string take_tls_error();

class TlsContext {
 public:
  // Reads the files that the settings name, by the rules for `clients`' certificates. Null, and
  // `error` names the directive, the file and the reason.
  static std::shared_ptr<const TlsContext> load(const Settings& settings, TlsAuthClients clients,
                                                std::string& error);

  // The state of one connection whose client begins the handshake.
  TlsState open() const;
  // Something that an operator should know about the certificate, such as its end; or empty.
  std::string warning() const;

 private:
  using Handle = std::unique_ptr<ssl_ctx_st, TlsFree>;
  explicit TlsContext(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

}  // namespace sluice
