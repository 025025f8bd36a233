// Durations as people write them: 5s, 1h30m, 250ms. The commands take milliseconds; what stands
// before them (tools/cli, net/admin) takes both.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

// Milliseconds of numbers with units (ms, s, m, h, d), or of a number alone. Nothing: it is
// neither, or more than 2^53 - 1.
std::optional<int64_t> parse_duration_ms(Bytes text);

// A text of parts between ':' and '/' ("20/1s:40"), with those that have units as milliseconds
// ("20/1000:40"). Whatever is no duration stays as it is.
std::string with_plain_durations(Bytes text);

}  // namespace sluice
