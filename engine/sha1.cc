#include "engine/sha1.h"

#include <openssl/evp.h>

#include <memory>

#include "engine/base/check.h"

namespace sluice {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

constexpr size_t kPieceBytes = 1U << 20;

// Looking the algorithm up takes longer than hashing a script, so it is done once.
const EVP_MD* algorithm() {
  static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  return sha1;
}

Sha1Text finish(EVP_MD_CTX* context) {
  unsigned char digest[20];
  unsigned int size = sizeof(digest);
  CHECK(EVP_DigestFinal_ex(context, digest, &size) == 1 && size == sizeof(digest));
  constexpr char kDigits[] = "0123456789abcdef";
  Sha1Text text;
  for (size_t i = 0; i < sizeof(digest); ++i) {
    text[2 * i] = kDigits[digest[i] >> 4];
    text[2 * i + 1] = kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace

Sha1Text sha1_hex(Bytes bytes) {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(algorithm() != nullptr && context != nullptr);
  CHECK(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr) == 1 &&
        EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  return finish(context.get());
}

Sha1Text sha1_hex(Bytes bytes, void (*look)(void* context), void* look_context) {
  if (bytes.size() <= kPieceBytes) return sha1_hex(bytes);
  // One of its own, since others may hash on this thread while `look` serves them.
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(algorithm() != nullptr && context != nullptr);
  CHECK(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr) == 1);
  for (; !bytes.empty(); look(look_context)) {
    const Bytes piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    CHECK(EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1);
  }
  return finish(context.get());
}

}  // namespace sluice
