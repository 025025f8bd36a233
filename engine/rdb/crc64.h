// CRC-64 as RDB files and DUMP payloads have it: the Jones polynomial, reflected, beginning with 0.
// Pure.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice::rdb {

uint64_t crc64(Bytes bytes);

}  // namespace sluice::rdb
