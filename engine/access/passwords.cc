#include "engine/access/passwords.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/hex.h"

namespace sluice {

namespace {

constexpr size_t kMarkSize = 4;

std::string hex(const unsigned char* bytes, size_t digits) {
  std::string text;
  append_hex(text, Bytes(reinterpret_cast<const char*>(bytes), (digits + 1) / 2));
  text.resize(digits);
  return text;
}

}  // namespace

std::string hash_password(Bytes password) {
  unsigned char digest[kPasswordHashSize / 2];
  unsigned int size = sizeof(digest);
  const bool hashed =
      EVP_Digest(password.data(), password.size(), digest, &size, EVP_sha256(), nullptr) == 1;
  CHECK(hashed && size == sizeof(digest));
  return hex(digest, kPasswordHashSize);
}

std::string difference_mark(Bytes text) { return hash_password(text).substr(0, kMarkSize); }

void put_marks_for_hashes(std::string& text) {
  for (size_t at = text.find(" #"); at != std::string::npos; at = text.find(" #", at + 1)) {
    const size_t hash = at + 2;
    if (!is_password_hash(Bytes(text).substr(hash, kPasswordHashSize))) continue;
    text.erase(hash + kMarkSize, kPasswordHashSize - kMarkSize);
  }
}

bool is_password_hash(Bytes text) {
  return text.size() == kPasswordHashSize && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool same_hash(Bytes a, Bytes b) {
  CHECK(a.size() == kPasswordHashSize && b.size() == kPasswordHashSize);
  return CRYPTO_memcmp(a.data(), b.data(), kPasswordHashSize) == 0;
}

std::string random_hex(size_t digits) {
  std::vector<unsigned char> bytes((digits + 1) / 2);
  CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return hex(bytes.data(), digits);
}

}  // namespace sluice
