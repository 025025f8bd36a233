// Handlers of the hash family; the rows that name them are in hashes_rows.cc.
#pragma once

namespace sluice {

struct Call;

void hset_command(Call& call);
void hmset_command(Call& call);
void hsetnx_command(Call& call);
void hget_command(Call& call);
void hmget_command(Call& call);
void hgetall_command(Call& call);
void hkeys_command(Call& call);
void hvals_command(Call& call);
void hdel_command(Call& call);
void hexists_command(Call& call);
void hstrlen_command(Call& call);
void hincrby_command(Call& call);
void hincrbyfloat_command(Call& call);
void hrandfield_command(Call& call);
void hscan_command(Call& call);

}  // namespace sluice
