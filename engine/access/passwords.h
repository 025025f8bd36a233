// Passwords of users: SHA-256 as hexadecimal text, comparison in constant time, and random secrets.
// Thread-safe.
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

inline constexpr size_t kPasswordHashSize = 64;

// The hash that is stored instead of the password: 64 lower-case hexadecimal digits.
std::string hash_password(Bytes password);
// Four hexadecimal digits of the text's SHA-256, by which machines find out whether their texts
// differ, without showing them. The mark lies in etcd. A password is in a text as its own mark:
// however often the rest of the text changes, no more than 16 bits of its hash are told, which a
// guess of it passes once in 65,536 times. So they must not become more, and clients must not see
// them.
std::string difference_mark(Bytes text);
// Puts the marks of hashed passwords, ` #` and the hash, in the place of these.
void put_marks_for_hashes(std::string& text);
// Whether the text has the form of such a hash.
bool is_password_hash(Bytes text);
// Whether the hashes are equal, in constant time. REQUIRES: both are password hashes.
bool same_hash(Bytes a, Bytes b);
// Returns `digits` random hexadecimal digits, suitable for a secret.
std::string random_hex(size_t digits);

}  // namespace sluice
