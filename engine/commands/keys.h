// Handlers of the key family; the rows that name them are in keys_rows.cc.
#pragma once

#include <span>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

class Entry;
struct Call;
struct KeyPosition;

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
// Whether the journal takes a move of the value to this key, which is small where names are enough.
// Replies the refusal, and returns false.
bool journal_takes_move(const Call& call, Bytes to, const Entry& entry);
void flushdb_command(Call& call);
void flushall_command(Call& call);

// copy.cc
void copy_command(Call& call);
void move_command(Call& call);
void swapdb_command(Call& call);

// dump.cc
void dump_command(Call& call);
void restore_command(Call& call);

// object.cc
void object_encoding_command(Call& call);
void object_refcount_command(Call& call);
void object_idletime_command(Call& call);
void object_freq_command(Call& call);
// The encoding that Redis would use for the value, as in OBJECT ENCODING.
Bytes encoding_name(const Entry& entry);
// The reply of OBJECT REFCOUNT.
int64_t reference_count(const Entry& entry);

// sort.cc
void sort_command(Call& call);
void sort_ro_command(Call& call);
// The key of SORT's last STORE.
void find_sort_destination(std::span<const Bytes> args, std::vector<KeyPosition>& positions);

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
