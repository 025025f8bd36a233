#include "engine/sha1.h"

#include <openssl/evp.h>

#include <memory>

#include "engine/base/check.h"

namespace sluice {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Sha1Text sha1_hex(Bytes bytes) {
  // Looking the algorithm up takes longer than hashing a script, so it is done once.
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(algorithm != nullptr && context != nullptr);
  unsigned char digest[20];
  unsigned int size = sizeof(digest);
  const bool hashed = EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1 &&
                      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                      EVP_DigestFinal_ex(context.get(), digest, &size) == 1;
  CHECK(hashed && size == sizeof(digest));
  constexpr char kDigits[] = "0123456789abcdef";
  Sha1Text text;
  for (size_t i = 0; i < sizeof(digest); ++i) {
    text[2 * i] = kDigits[digest[i] >> 4];
    text[2 * i + 1] = kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace sluice
