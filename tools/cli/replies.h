// Converts the plain arrays of RESP2 in the replies of Q commands: to maps, and texts to numbers.
//
// The result is what RESP3 would return, so resp_to_json produces the members documented in
// HTTP.md. Pure functions; each takes a reply of the commands that it names.
#pragma once

#include "net/resp/resp_value.h"

namespace sluice::cli {

// The COUNT of Q.LOG: the bytes of a log that are read at once.
inline constexpr const char* kLogBytes = "65536";

// One map: Q.ADD, Q.GET (or null), Q.NACK, Q.TOUCH, Q.CONFIG GET and TRY, Q.STATS without BY.
RespValue as_map(RespValue reply);
// An array of maps: Q.POP (empty if null), the second element of Q.LIST.
RespValue as_maps(RespValue reply);
// A map of maps: Q.STATS with BY.
RespValue as_map_of_maps(RespValue reply);
// Maps of seq, time, type, id and fields: Q.EVENTS.
RespValue as_events(RespValue reply);

// The text of a map's member; empty if it is null or missing.
std::string text_of(const RespValue& map, Bytes name);
// The number of a map's member, 0 or 1 for no and yes; `otherwise` if it is null or missing.
int64_t integer_of(const RespValue& map, Bytes name, int64_t otherwise = 0);
// The number of a member of a member: number_of(stats, "wait_ms", "p50").
double number_of(const RespValue& map, Bytes name, Bytes member);
// The value of a line "name:value" of INFO; empty if it is missing.
std::string info_field(const std::string& info, const std::string& name);

}  // namespace sluice::cli
