// Self-signed certificates for TLS tests, created in memory and written as PEM.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

namespace sluice::test {

// Writes `path`.crt and `path`.key; with a password the key is encrypted. If `days` is negative,
// the certificate expired that long ago.
inline void write_certificate(const std::string& path, const std::string& password = "",
                              long days = 1) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509* const x509 = certificate.get();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -30L * 86400);
  X509_gmtime_adj(X509_getm_notAfter(x509), days * 86400);
  X509_set_pubkey(x509, key.get());
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  X509_sign(x509, key.get(), EVP_sha256());
  if (std::FILE* file = std::fopen((path + ".crt").c_str(), "we")) {
    PEM_write_X509(file, x509);
    std::fclose(file);
  }
  if (std::FILE* file = std::fopen((path + ".key").c_str(), "we")) {
    const auto* text = reinterpret_cast<const unsigned char*>(password.data());
    PEM_write_PrivateKey(file, key.get(), password.empty() ? nullptr : EVP_aes_128_cbc(),
                         password.empty() ? nullptr : text, static_cast<int>(password.size()),
                         nullptr, nullptr);
    std::fclose(file);
  }
}

}  // namespace sluice::test
