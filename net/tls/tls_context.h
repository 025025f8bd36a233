// TlsContext: the files of a TLS port: certificate, key, authorities, rules.
//
// Immutable, any thread. A connection keeps the context that it was opened with, so a new context
// can replace an old one at any time. Each port has its own: a session created where no client
// certificate is required cannot be resumed where one is, nor after a reload.
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

// Describes the cause of OpenSSL's last failure and clears this thread's errors.
std::string take_tls_error();

class TlsContext {
 public:
  // Reads the files named by the settings, with the rules for `clients`' certificates. On failure
  // returns null, and `error` names the directive, the file and the reason.
  static std::shared_ptr<const TlsContext> load(const Settings& settings, TlsAuthClients clients,
                                                std::string& error);

  // Creates the state of one connection whose client begins the handshake.
  TlsState open() const;
  // A warning for the operator about the certificate, such as its expiry; or empty.
  std::string warning() const;

 private:
  using Handle = std::unique_ptr<ssl_ctx_st, TlsFree>;
  explicit TlsContext(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

}  // namespace sluice
