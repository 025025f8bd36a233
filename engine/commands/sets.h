// Handlers of the set family; the rows that name them are in sets_rows.cc.
#pragma once

#include <cstdint>

namespace sluice {

struct Call;

// What a command computes of several sets, or of several sorted sets.
enum class SetOperation : uint8_t { kUnion, kIntersection, kDifference };

// sets.cc
void sadd_command(Call& call);
void srem_command(Call& call);
void smove_command(Call& call);
void sismember_command(Call& call);
void smismember_command(Call& call);
void smembers_command(Call& call);
void spop_command(Call& call);
void srandmember_command(Call& call);
void sscan_command(Call& call);

// sets_algebra.cc
void sinter_command(Call& call);
void sinterstore_command(Call& call);
void sintercard_command(Call& call);
void sunion_command(Call& call);
void sunionstore_command(Call& call);
void sdiff_command(Call& call);
void sdiffstore_command(Call& call);

}  // namespace sluice
