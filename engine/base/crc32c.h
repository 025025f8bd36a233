// CRC-32C (Castagnoli), the checksum of everything that Sluice writes to disk.
//
// Uses the SSE4.2 instruction where the processor has it (asked once, at run time) and tables
// elsewhere; both give the same value. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

// The checksum of what `crc` covers followed by `size` more bytes. Start with 0.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size);

inline uint32_t crc32c(Bytes bytes) { return crc32c_extend(0, bytes.data(), bytes.size()); }

// The same by tables only; tests compare the two.
uint32_t crc32c_extend_portable(uint32_t crc, const void* data, size_t size);

}  // namespace sluice
