// CRC-64 as RDB files and DUMP payloads have it: the Jones polynomial, reflected, beginning with 0.
// Pure.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice::rdb {

// `before`: of the bytes in front of these.
uint64_t crc64(Bytes bytes, uint64_t before = 0);

}  // namespace sluice::rdb
