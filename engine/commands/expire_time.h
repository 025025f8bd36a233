// Expiry times in arguments: relative or absolute, in seconds or milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

struct Call;

enum class ExpireUnit : unsigned char {
  kNone,
  kSeconds,
  kMilliseconds,
  kUnixSeconds,
  kUnixMilliseconds,
};

// Parses the argument to unix milliseconds. Returns false with the error replied if it is not a
// positive integer, or overflows 64 bits ("invalid expire time in 'set' command").
bool parse_expire_time(const Call& call, size_t argument, ExpireUnit unit, int64_t& expire_ms);

}  // namespace sluice
