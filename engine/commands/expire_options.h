// Times of expiry as commands take them: relative or absolute, seconds or milliseconds.
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

// The argument as unix milliseconds. False with the error replied: no integer, not positive, or
// beyond what 64 bits hold ("invalid expire time in 'set' command").
bool parse_expire_time(const Call& call, size_t argument, ExpireUnit unit, int64_t& expire_ms);

}  // namespace sluice
