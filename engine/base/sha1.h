// SHA-1, as bytes or as forty lower-case hexadecimal digits: names of scripts, digests.
// Thread-safe.
#pragma once

#include <array>

#include "engine/base/bytes.h"

namespace sluice {

using Sha1 = std::array<unsigned char, 20>;
using Sha1Text = std::array<char, 40>;

Sha1 sha1(Bytes bytes);
Sha1Text hex_of(const Sha1& sha);
Sha1Text sha1_hex(Bytes bytes);
// Hashes in pieces and calls `look` between two of them. `look` may leave by longjmp.
Sha1Text sha1_hex(Bytes bytes, void (*look)(void* context), void* look_context);

inline Bytes view(const Sha1Text& sha) { return {sha.data(), sha.size()}; }

}  // namespace sluice
