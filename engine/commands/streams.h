// Handlers of the stream family; the rows that name them are in streams_rows.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/table/command.h"

namespace sluice {

struct Call;

// streams.cc
void xadd_command(Call& call);
void xtrim_command(Call& call);
void xdel_command(Call& call);
void xrange_command(Call& call);
void xrevrange_command(Call& call);
void xsetid_command(Call& call);

// streams_read.cc
void xread_command(Call& call);
void xreadgroup_command(Call& call);
inline constexpr uint32_t kReadStreamFlags = kKeyRo | kKeyAccess;
void find_read_streams(std::span<const Bytes> args, std::vector<KeyPosition>& positions);

// streams_groups.cc
void xgroup_create_command(Call& call);
void xgroup_setid_command(Call& call);
void xgroup_destroy_command(Call& call);
void xgroup_createconsumer_command(Call& call);
void xgroup_delconsumer_command(Call& call);
void xack_command(Call& call);
void xpending_command(Call& call);

// streams_claim.cc
void xclaim_command(Call& call);
void xautoclaim_command(Call& call);

// streams_info.cc
void xinfo_stream_command(Call& call);
void xinfo_groups_command(Call& call);
void xinfo_consumers_command(Call& call);

}  // namespace sluice
