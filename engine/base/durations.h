// Durations as people write them: 5s, 1h30m, 250ms. Commands take milliseconds; the front ends
// (tools/cli, net/admin) take both.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

// Milliseconds of numbers with units (ms, s, m, h, d), or of a number alone, perhaps with a minus
// before them. Returns nothing for any other text and for more than kMaxDurationMs (limits.h).
std::optional<int64_t> parse_duration_ms(Bytes text);

// Splits a text at ':' and '/' ("20/1s:40") and writes its durations in milliseconds
// ("20/1000:40"). Parts that are not durations stay as they are, and so does part i unless bit i of
// `parts` is set.
std::string with_plain_durations(Bytes text, unsigned parts = ~0U);

}  // namespace sluice
