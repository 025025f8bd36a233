// The arguments that LMPOP, BLMPOP, ZMPOP and BZMPOP share:
// `numkeys key [key ...] <first | second> [COUNT count]`.
#pragma once

#include <cstdint>
#include <span>

#include "engine/execution/call.h"

namespace sluice {

struct MultiPopRequest {
  std::span<const Bytes> keys;
  bool first_word = true;  // LEFT or MIN, not RIGHT or MAX
  uint64_t count = 1;
};

// Returns false with the error replied.
bool parse_multi_pop(const Call& call, size_t numkeys_at, Bytes first_word, Bytes second_word,
                     MultiPopRequest& request);

}  // namespace sluice
