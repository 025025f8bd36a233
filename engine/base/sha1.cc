#include "engine/base/sha1.h"

#include <openssl/evp.h>

#include <memory>

#include "engine/base/check.h"
#include "engine/base/hex.h"

namespace sluice {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

constexpr size_t kPieceBytes = 1U << 20;

// Looking the algorithm up takes longer than hashing a script, so the result is kept.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  return fetched;
}

Sha1 finish(EVP_MD_CTX* context) {
  Sha1 sha;
  unsigned int size = sha.size();
  CHECK(EVP_DigestFinal_ex(context, sha.data(), &size) == 1 && size == sha.size());
  return sha;
}

}  // namespace

Sha1Text hex_of(const Sha1& sha) {
  Sha1Text text;
  for (size_t i = 0; i < sha.size(); ++i) {
    text[2 * i] = kHexDigits[sha[i] >> 4];
    text[2 * i + 1] = kHexDigits[sha[i] & 15];
  }
  return text;
}

Sha1 sha1(Bytes bytes) {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(algorithm() != nullptr && context != nullptr);
  CHECK(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr) == 1 &&
        EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  return finish(context.get());
}

Sha1Text sha1_hex(Bytes bytes) { return hex_of(sha1(bytes)); }

Sha1Text sha1_hex(Bytes bytes, void (*look)(void* context), void* look_context) {
  if (bytes.size() <= kPieceBytes) return sha1_hex(bytes);
  // This function has a context of its own, because `look` may hash on this thread, too.
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  CHECK(algorithm() != nullptr && context != nullptr);
  CHECK(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr) == 1);
  for (; !bytes.empty(); look(look_context)) {
    const Bytes piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    CHECK(EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1);
  }
  return hex_of(finish(context.get()));
}

}  // namespace sluice
