// SHA-1 as forty lower-case hexadecimal digits: the names of scripts. Any thread.
#pragma once

#include <array>

#include "engine/base/bytes.h"

namespace sluice {

using Sha1Text = std::array<char, 40>;

Sha1Text sha1_hex(Bytes bytes);
// The same in pieces, with a call of `look` between two of them. It may jump out.
Sha1Text sha1_hex(Bytes bytes, void (*look)(void* context), void* look_context);

inline Bytes view(const Sha1Text& sha) { return {sha.data(), sha.size()}; }

}  // namespace sluice
