// Handlers of the string family; the rows that name them are in strings_rows.cc.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;

void get_command(Call& call);
void set_command(Call& call);
// What SET does to its key: it reads it with GET and IFEQ only.
uint32_t set_key_flags(std::span<const Bytes> args);
void setnx_command(Call& call);
void setex_command(Call& call);
void psetex_command(Call& call);
void mget_command(Call& call);
void mset_command(Call& call);
void msetnx_command(Call& call);
void getset_command(Call& call);
void getdel_command(Call& call);
void delifeq_command(Call& call);
void getex_command(Call& call);
void append_command(Call& call);
void strlen_command(Call& call);
void incr_command(Call& call);
void decr_command(Call& call);
void incrby_command(Call& call);
void decrby_command(Call& call);
void incrbyfloat_command(Call& call);
void setrange_command(Call& call);
void getrange_command(Call& call);
void lcs_command(Call& call);

}  // namespace sluice
