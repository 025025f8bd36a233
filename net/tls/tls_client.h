// TlsClientContext: the trusted authorities and the own certificate, used where this process is the
// client of a TLS connection.
//
// Immutable, any thread. A connection keeps the context that it was opened with.
#pragma once

#include <memory>
#include <string>

#include "net/tls/tls_context.h"

namespace sluice {

struct TlsClientRules {
  // Trusted authorities in PEM; both empty: the system's store.
  std::string ca_file;
  std::string ca_directory;
  // The client's own certificate and key in PEM; both empty: none.
  std::string certificate_file;
  std::string key_file;
  std::string ciphers;       // up to TLSv1.2; empty: OpenSSL's default
  std::string ciphersuites;  // TLSv1.3; empty: OpenSSL's default
  bool verify = true;        // false: any server is accepted
};

class TlsClientContext {
 public:
  // Reads the files. An error names the file or list and the reason.
  static Result<std::shared_ptr<const TlsClientContext>> load(const TlsClientRules& rules);

  // Creates the state of one connection, which begins the handshake. The server's certificate must
  // be valid for `name`, a host name or an address; a host name is also sent as SNI. REQUIRES: not
  // empty.
  TlsState open(const std::string& name) const;

 private:
  using Handle = std::unique_ptr<ssl_ctx_st, TlsFree>;
  explicit TlsClientContext(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

// Why the server's certificate was rejected, preceded by a colon; empty if it was not.
std::string certificate_refusal(const ssl_st* state);

}  // namespace sluice
