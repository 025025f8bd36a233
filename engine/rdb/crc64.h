// CRC-64 of RDB files and DUMP payloads: the Jones polynomial, reflected, starting with 0. Pure.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice::rdb {

// `before`: the CRC of the bytes before these.
uint64_t crc64(Bytes bytes, uint64_t before = 0);

}  // namespace sluice::rdb
