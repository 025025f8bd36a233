// What the plain arrays of RESP2 stand for in the replies of Q.*: maps, and numbers that are text.
//
// With that they are what RESP3 has, so resp_to_json gives the members that HTTP.md promises. Pure
// functions; each takes a reply of the command that it names.
#pragma once

#include "net/resp/resp_value.h"

namespace sluice::cli {

// One map: Q.ADD, Q.GET (or null), Q.NACK, Q.TOUCH, Q.CONFIG GET, Q.STATS without BY.
RespValue as_map(RespValue reply);
// An array of maps: Q.POP (none where it is null), the second element of Q.LIST.
RespValue as_maps(RespValue reply);
// A map of maps: Q.STATS with BY.
RespValue as_map_of_maps(RespValue reply);
// Maps of seq, time, type, id and fields: Q.EVENTS.
RespValue as_events(RespValue reply);

// The text of a map's member; empty where it is null or not there.
std::string text_of(const RespValue& map, Bytes name);
// The number of a map's member; `otherwise` where it is null or not there.
int64_t integer_of(const RespValue& map, Bytes name, int64_t otherwise = 0);
// The number of a member of a member: number_of(stats, "wait_ms", "p50").
double number_of(const RespValue& map, Bytes name, Bytes member);

}  // namespace sluice::cli
