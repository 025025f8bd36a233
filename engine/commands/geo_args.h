// Arguments and replies that commands of the geo family share.
#pragma once

#include "engine/execution/call.h"
#include "engine/structures/geohash.h"

namespace sluice {

// Each returns false with the error replied.
bool parse_place(const Call& call, size_t argument, geohash::Place& place);
bool parse_unit(const Call& call, size_t argument, double& unit_m);

// Sets the place of a member. Returns false if it does not exist.
bool find_place(const SortedSet& sorted, Bytes member, geohash::Place& place);

void reply_place(Call& call, const geohash::Place& place);
void reply_distance(Call& call, double distance);

}  // namespace sluice
