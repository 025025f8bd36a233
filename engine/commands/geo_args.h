// Arguments and replies that commands of the geo family share.
#pragma once

#include <optional>

#include "engine/execution/call.h"
#include "engine/structures/geohash.h"

namespace sluice {

// Each returns false with the error replied.
bool parse_place(const Call& call, size_t argument, geohash::Place& place);
bool parse_unit(const Call& call, size_t argument, double& unit_m);

// The place of a member, or nothing if it does not exist.
std::optional<geohash::Place> find_place(const SortedSet& sorted, Bytes member);

void reply_place(Call& call, const geohash::Place& place);
void reply_distance(Call& call, double distance);

}  // namespace sluice
