// TlsClientContext: whom this process believes, and who it says it is, where it is the client of a
// connection over TLS.
//
// Immutable, any thread. A connection keeps what it was opened with.
#pragma once

#include <memory>
#include <string>

#include "net/tls/tls_context.h"

namespace sluice {

struct TlsClientRules {
  // Who may have signed the server's certificate, in PEM; both empty: the system's store.
  std::string ca_file;
  std::string ca_directory;
  // The client's own certificate and key, in PEM; both empty: none.
  std::string certificate_file;
  std::string key_file;
  std::string ciphers;       // up to TLSv1.2; empty: OpenSSL's
  std::string ciphersuites;  // TLSv1.3; empty: OpenSSL's
  bool verify = true;        // false: any server is believed
};

class TlsClientContext {
 public:
  // Reads the files. Null, and `error` says which file or list is bad, and why.
  static std::shared_ptr<const TlsClientContext> load(const TlsClientRules& rules,
                                                      std::string& error);

  // The state of one connection, which begins the handshake. The server's certificate must be one
  // of `name`, a host's name or an address; a name is also sent as SNI. REQUIRES: not empty.
  TlsState open(const std::string& name) const;

 private:
  using Handle = std::unique_ptr<ssl_ctx_st, TlsFree>;
  explicit TlsClientContext(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

// Why the server's certificate was refused, with a colon before it; empty: it was not.
std::string certificate_refusal(const ssl_st* state);

}  // namespace sluice
