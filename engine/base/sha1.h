// SHA-1, as bytes or as forty lower-case hexadecimal digits: the names of scripts, digests. Any
// thread.
#pragma once

#include <array>

#include "engine/base/bytes.h"

namespace sluice {

using Sha1 = std::array<unsigned char, 20>;
using Sha1Text = std::array<char, 40>;

Sha1 sha1(Bytes bytes);
Sha1Text hex_of(const Sha1& sha);
Sha1Text sha1_hex(Bytes bytes);
// The same in pieces, with a call of `look` between two of them. It may jump out.
Sha1Text sha1_hex(Bytes bytes, void (*look)(void* context), void* look_context);

inline Bytes view(const Sha1Text& sha) { return {sha.data(), sha.size()}; }

}  // namespace sluice
