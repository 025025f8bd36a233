#include "net/tls/tls_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <utility>

#include "engine/base/check.h"

namespace sluice {

namespace {

Status set_authorities(SSL_CTX* context, const TlsClientRules& rules) {
  SSL_CTX_set_verify(context, rules.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  const std::string& file = rules.ca_file;
  const std::string& directory = rules.ca_directory;
  if (file.empty() && directory.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) == 1) return {};
    return tls_error("Failed to use the system's CA certificates");
  }
  if (!file.empty() && SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
    return tls_error("Failed to load CA certificates: " + file);
  }
  if (!directory.empty() && SSL_CTX_load_verify_dir(context, directory.c_str()) != 1) {
    return tls_error("Failed to use CA directory: " + directory);
  }
  return {};
}

Status set_certificate(SSL_CTX* context, const TlsClientRules& rules) {
  const std::string& certificate = rules.certificate_file;
  const std::string& key = rules.key_file;
  if (certificate.empty() && key.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return tls_error("Failed to load certificate: " + certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return tls_error("Failed to load private key: " + key);
  }
  return {};
}

Status set_ciphers(SSL_CTX* context, const TlsClientRules& rules) {
  const std::string& ciphers = rules.ciphers;
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) {
    return invalid("Failed to configure ciphers: " + ciphers);
  }
  const std::string& suites = rules.ciphersuites;
  if (!suites.empty() && SSL_CTX_set_ciphersuites(context, suites.c_str()) != 1) {
    return invalid("Failed to configure ciphersuites: " + suites);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::load(
    const TlsClientRules& rules) {
  ERR_clear_error();
  Handle handle(SSL_CTX_new(TLS_client_method()));
  CHECK(handle != nullptr);
  SSL_CTX* const context = handle.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // An end without close_notify is accepted: RESP and HTTP messages carry their length.
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  Status status = set_authorities(context, rules);
  if (status.ok()) status = set_certificate(context, rules);
  if (status.ok()) status = set_ciphers(context, rules);
  ERR_clear_error();
  if (!status.ok()) return status;
  return std::shared_ptr<const TlsClientContext>(new TlsClientContext(std::move(handle)));
}

TlsState TlsClientContext::open(const std::string& name) const {
  // Without a name OpenSSL would accept every certificate that is signed.
  CHECK(!name.empty());
  TlsState state(SSL_new(handle_.get()));
  CHECK(state != nullptr);
  SSL_set_connect_state(state.get());
  X509_VERIFY_PARAM* const expected = SSL_get0_param(state.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1) {
    CHECK(X509_VERIFY_PARAM_set1_host(expected, name.c_str(), name.size()) == 1);
    // A name that is too long belongs to no host, and no certificate will match it.
    SSL_set_tlsext_host_name(state.get(), name.c_str());
  }
  ERR_clear_error();
  return state;
}

std::string certificate_refusal(const ssl_st* state) {
  // If any server is accepted, the result of the verification is not the reason.
  if (SSL_get_verify_mode(state) == SSL_VERIFY_NONE) return "";
  const long result = SSL_get_verify_result(state);
  return result == X509_V_OK ? "" : std::string(": ") + X509_verify_cert_error_string(result);
}

}  // namespace sluice
