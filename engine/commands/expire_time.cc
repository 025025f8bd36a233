#include "engine/commands/expire_time.h"

#include "engine/execution/call.h"

namespace sluice {

bool parse_expire_time(const Call& call, size_t argument, ExpireUnit unit, int64_t& expire_ms) {
  int64_t value = 0;
  if (!call.integer(argument, value)) return false;
  const bool seconds = unit == ExpireUnit::kSeconds || unit == ExpireUnit::kUnixSeconds;
  const bool relative = unit == ExpireUnit::kSeconds || unit == ExpireUnit::kMilliseconds;
  bool valid = value > 0;
  if (valid && seconds) valid = !__builtin_mul_overflow(value, 1000, &value);
  if (valid && relative) valid = !__builtin_add_overflow(value, call.now_ms(), &value);
  if (!valid) {
    return fail(
        call, "ERR invalid expire time in '" + CommandTable::full_name(call.command) + "' command");
  }
  expire_ms = value;
  return true;
}

}  // namespace sluice
