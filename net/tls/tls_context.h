// TlsContext: the files of a TLS port: certificate, key, authorities, rules.
//
// Immutable, any thread. A connection keeps the context that it was opened with, so a new context
// can replace an old one at any time. Each port has its own: a session created where no client
// certificate is required cannot be resumed where one is, nor after a reload.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/base/status.h"
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

// `what` failed because of OpenSSL's last error. Clears this thread's errors.
Status tls_error(const std::string& what);

class TlsContext {
 public:
  // Reads the files named by the settings, with the rules for `clients`' certificates. An error
  // names the directive, the file and the reason.
  static Result<std::shared_ptr<const TlsContext>> load(const Settings& settings,
                                                        TlsAuthClients clients);

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
