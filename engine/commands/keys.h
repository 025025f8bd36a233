// Handlers of the key family; the rows that name them are in keys_rows.cc.
#pragma once

namespace sluice {

struct Call;

// keys.cc
void del_command(Call& call);
void exists_command(Call& call);
void touch_command(Call& call);
void type_command(Call& call);
void rename_command(Call& call);
void renamenx_command(Call& call);
void keys_command(Call& call);
void scan_command(Call& call);
void randomkey_command(Call& call);
void dbsize_command(Call& call);
void flushdb_command(Call& call);
void flushall_command(Call& call);

// copy.cc
void copy_command(Call& call);
void move_command(Call& call);
void swapdb_command(Call& call);

// expire.cc
void expire_command(Call& call);
void pexpire_command(Call& call);
void expireat_command(Call& call);
void pexpireat_command(Call& call);
void ttl_command(Call& call);
void pttl_command(Call& call);
void expiretime_command(Call& call);
void pexpiretime_command(Call& call);
void persist_command(Call& call);

}  // namespace sluice
