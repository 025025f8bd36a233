// Handlers of the list family; the rows that name them are in lists_rows.cc.
#pragma once

namespace sluice {

struct Call;

// lists.cc
void lpush_command(Call& call);
void rpush_command(Call& call);
void lpushx_command(Call& call);
void rpushx_command(Call& call);
void lindex_command(Call& call);
void lrange_command(Call& call);
void lset_command(Call& call);
void linsert_command(Call& call);
void lrem_command(Call& call);
void ltrim_command(Call& call);
void lpos_command(Call& call);

// lists_pop.cc
void lpop_command(Call& call);
void rpop_command(Call& call);
void lmpop_command(Call& call);
void blpop_command(Call& call);
void brpop_command(Call& call);
void blmpop_command(Call& call);
void lmove_command(Call& call);
void rpoplpush_command(Call& call);
void blmove_command(Call& call);
void brpoplpush_command(Call& call);

}  // namespace sluice
