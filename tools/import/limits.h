// Limits of an import, whatever it reads.
#pragma once

#include <cstdint>

namespace sluice::import {

// The largest value that an import takes; clients' values are at most proto-max-bulk-len.
inline constexpr uint64_t kMaxStringBytes = (uint64_t{1} << 31) - 1;

}  // namespace sluice::import
