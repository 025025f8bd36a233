// The directives of TLS, in the order of conf/sluice.conf. Names and defaults are those of
// redis-server 7.0.15, except those for HTTP and the time limit of a handshake.
#include "net/config/config_special.h"
#include "net/config/config_table.h"

namespace sluice {

std::vector<Directive> tls_directives();

namespace {

using enum DirectiveKind;
using enum ChangeRule;
using enum ValueType;
using config_special::set_choice;

// A directive that net/tls/tls_context.h depends on. CONFIG SET of any of them creates a new
// context.
Directive tls_text(const char* name, std::string Settings::*member, const char* summary) {
  return {.name = name, .reload = true, .binding = member, .summary = summary};
}

Directive tls_flag(const char* name, const char* default_value, bool Settings::*member,
                   const char* summary) {
  return {.name = name,
          .default_value = default_value,
          .reload = true,
          .binding = member,
          .summary = summary};
}

Directive tls_number(const char* name, const char* default_value, int64_t Settings::*member,
                     const char* summary) {
  return {.name = name,
          .default_value = default_value,
          .high = kMaxInt,
          .reload = true,
          .binding = member,
          .summary = summary};
}

std::vector<Directive> port_rows() {
  return {
      {.name = "tls-port",
       .change = kRestart,
       .default_value = "0",
       .may_differ = true,
       .parse = config_special::parse_port<&Settings::tls_port>,
       .expected = "a number from 0 to 65535 (0 = no TLS), or auto",
       .summary = "TCP port with TLS; 0 = none, auto = any free one"},
      {.name = "http-tls-port",
       .kind = kOurs,
       .change = kRestart,
       .default_value = "0",
       .may_differ = true,
       .parse = config_special::parse_port<&Settings::http_tls_port>,
       .expected = "a number from 0 to 65535 (0 = no HTTPS), or auto",
       .summary = "port of the HTTP service with TLS; 0 = none, auto = any free one"},
  };
}

std::vector<Directive> client_rows() {
  return {
      {.name = "tls-auth-clients",
       .default_value = "yes",
       .choices = "no, yes, optional",
       .reload = true,
       .binding = &set_choice<&Settings::tls_auth_clients>,
       .summary = "whether clients of tls-port need a certificate signed by a tls-ca-cert"},
      {.name = "http-tls-auth-clients",
       .kind = kOurs,
       .default_value = "no",
       .choices = "no, yes, optional",
       .reload = true,
       .binding = &set_choice<&Settings::http_tls_auth_clients>,
       .summary = "whether clients of http-tls-port, which have tokens, also need a certificate"},
      {.name = "tls-handshake-timeout",
       .kind = kOurs,
       .default_value = "10",
       .low = 1,
       .high = 3600,
       .binding = &Settings::tls_handshake_timeout_s,
       .summary = "seconds for a client of tls-port to finish its handshake"},
  };
}

std::vector<Directive> file_rows() {
  return {
      may_differ(
          tls_text("tls-cert-file", &Settings::tls_cert_file, "certificate of the server, in PEM")),
      may_differ(tls_text("tls-key-file", &Settings::tls_key_file, "its private key, in PEM")),
      may_differ(secret(tls_text("tls-key-file-pass", &Settings::tls_key_file_pass,
                                 "password of the key, if any"))),
      may_differ(tls_text("tls-ca-cert-file", &Settings::tls_ca_cert_file,
                          "authorities for clients' certificates, in PEM")),
      may_differ(tls_text("tls-ca-cert-dir", &Settings::tls_ca_cert_dir,
                          "directory of authorities, named by hash")),
  };
}

std::vector<Directive> rule_rows() {
  return {
      tls_text("tls-protocols", &Settings::tls_protocols, "versions; empty = TLSv1.2 TLSv1.3"),
      tls_text("tls-ciphers", &Settings::tls_ciphers, "ciphers up to TLSv1.2, in OpenSSL's syntax"),
      tls_text("tls-ciphersuites", &Settings::tls_ciphersuites, "the same for TLSv1.3"),
      tls_flag("tls-prefer-server-ciphers", "no", &Settings::tls_prefer_server_ciphers,
               "prefer the server's order of ciphers"),
      tls_flag("tls-session-caching", "yes", &Settings::tls_session_caching,
               "cache sessions, so that returning clients save a handshake"),
      tls_number("tls-session-cache-size", "20480", &Settings::tls_session_cache_size,
                 "number of cached sessions; 0 = no limit"),
      tls_number("tls-session-cache-timeout", "300", &Settings::tls_session_cache_timeout_s,
                 "seconds after which a session expires"),
      may_differ(tls_text("tls-dh-params-file", &Settings::tls_dh_params_file,
                          "Diffie-Hellman parameters, in PEM; empty = OpenSSL's")),
  };
}

}  // namespace

std::vector<Directive> tls_directives() {
  std::vector<Directive> all;
  for (const auto part : {port_rows, file_rows, client_rows, rule_rows}) {
    for (Directive& row : part()) all.push_back(row);
  }
  return all;
}

}  // namespace sluice
