#include "net/tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "net/config/config_special.h"

namespace sluice {

namespace {

// Callback of PEM_read that never asks on the terminal.
int give_password(char* buffer, int size, int /*writing*/, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || text.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(buffer, text.data(), text.size());
  return static_cast<int>(text.size());
}

struct Protocol {
  const char* name;
  uint64_t off;
};
constexpr Protocol kProtocols[] = {{"TLSv1", SSL_OP_NO_TLSv1},
                                   {"TLSv1.1", SSL_OP_NO_TLSv1_1},
                                   {"TLSv1.2", SSL_OP_NO_TLSv1_2},
                                   {"TLSv1.3", SSL_OP_NO_TLSv1_3}};

Status set_protocols(SSL_CTX* context, const Settings& settings) {
  uint64_t off = SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1;
  if (!settings.tls_protocols.empty()) {
    for (const Protocol& protocol : kProtocols) off |= protocol.off;
    const std::vector<std::string> names = config_special::split_value(settings.tls_protocols);
    for (const std::string& name : names) {
      const Protocol* found = std::find_if(
          std::begin(kProtocols), std::end(kProtocols),
          [&](const Protocol& protocol) { return equals_ignore_case(protocol.name, name); });
      if (found == std::end(kProtocols)) {
        return invalid(
            "tls-protocols: Invalid tls-protocols specified. Use a combination of 'TLSv1', "
            "'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'.");
      }
      off &= ~found->off;
    }
  }
  SSL_CTX_set_options(context, off);
  return {};
}

Status set_ciphers(SSL_CTX* context, const Settings& settings) {
  const std::string& ciphers = settings.tls_ciphers;
  if (!ciphers.empty() && SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) {
    return invalid("tls-ciphers: Failed to configure ciphers: " + ciphers);
  }
  const std::string& suites = settings.tls_ciphersuites;
  if (!suites.empty() && SSL_CTX_set_ciphersuites(context, suites.c_str()) != 1) {
    return invalid("tls-ciphersuites: Failed to configure ciphersuites: " + suites);
  }
  if (settings.tls_prefer_server_ciphers) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  }
  return {};
}

Status set_certificate(SSL_CTX* context, const Settings& settings) {
  const std::string& certificate = settings.tls_cert_file;
  const std::string& key = settings.tls_key_file;
  if (certificate.empty()) return invalid("No tls-cert-file configured!");
  if (key.empty()) return invalid("No tls-key-file configured!");
  std::string password = settings.tls_key_file_pass;
  SSL_CTX_set_default_passwd_cb(context, give_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, &password);
  Status status;
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    status = tls_error("tls-cert-file: Failed to load certificate: " + certificate);
  } else if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    status = tls_error("tls-key-file: Failed to load private key: " + key);
  }
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  return status;
}

Status set_clients(SSL_CTX* context, const Settings& settings, TlsAuthClients clients) {
  const std::string& file = settings.tls_ca_cert_file;
  const std::string& directory = settings.tls_ca_cert_dir;
  if (clients == TlsAuthClients::kNo) {
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  } else if (file.empty() && directory.empty()) {
    return invalid(
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients or "
        "http-tls-auth-clients is enabled!");
  } else {
    const int strict = clients == TlsAuthClients::kYes ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | strict, nullptr);
  }
  if (!file.empty() && SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
    return tls_error("tls-ca-cert-file: Failed to load CA certificates: " + file);
  }
  if (!directory.empty() && SSL_CTX_load_verify_dir(context, directory.c_str()) != 1) {
    return tls_error("tls-ca-cert-dir: Failed to use CA directory: " + directory);
  }
  return {};
}

Status set_dh_parameters(SSL_CTX* context, const Settings& settings) {
  const std::string& path = settings.tls_dh_params_file;
  if (path.empty()) {
    SSL_CTX_set_dh_auto(context, 1);
    return {};
  }
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> file(BIO_new_file(path.c_str(), "r"),
                                                             &::BIO_free_all);
  EVP_PKEY* parameters = nullptr;
  if (file != nullptr) parameters = PEM_read_bio_Parameters(file.get(), nullptr);
  if (parameters != nullptr && SSL_CTX_set0_tmp_dh_pkey(context, parameters) == 1) return {};
  EVP_PKEY_free(parameters);
  return tls_error("tls-dh-params-file: Failed to load DH parameters: " + path);
}

void set_sessions(SSL_CTX* context, const Settings& settings) {
  // Required with or without a cache: otherwise clients with certificates could not resume a
  // session.
  static constexpr unsigned char kName[] = "sluice";
  SSL_CTX_set_session_id_context(context, kName, sizeof(kName) - 1);
  if (!settings.tls_session_caching) {
    // Also issue no tickets, which would let clients keep sessions.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return;
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
  SSL_CTX_sess_set_cache_size(context, settings.tls_session_cache_size);
  SSL_CTX_set_timeout(context, settings.tls_session_cache_timeout_s);
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const Settings& settings,
                                                           TlsAuthClients clients) {
  ERR_clear_error();
  Handle handle(SSL_CTX_new(TLS_server_method()));
  CHECK(handle != nullptr);
  SSL_CTX* const context = handle.get();
  // An end without close_notify is accepted: RESP and HTTP messages carry their length.
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_SINGLE_DH_USE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Idle connections keep no buffers; one system call reads all records that have arrived.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  Status status = set_certificate(context, settings);
  if (status.ok()) status = set_clients(context, settings, clients);
  if (status.ok()) status = set_protocols(context, settings);
  if (status.ok()) status = set_ciphers(context, settings);
  if (status.ok()) status = set_dh_parameters(context, settings);
  if (!status.ok()) return status;
  set_sessions(context, settings);
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(handle)));
}

TlsState TlsContext::open() const {
  TlsState state(SSL_new(handle_.get()));
  CHECK(state != nullptr);
  SSL_set_accept_state(state.get());
  return state;
}

std::string TlsContext::warning() const {
  const X509* certificate = SSL_CTX_get0_certificate(handle_.get());
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) return "has expired";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) return "is not valid yet";
  return "";
}

}  // namespace sluice
