// Handlers of the bitmap family; the rows that name them are in bits_rows.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;

// bits.cc
void setbit_command(Call& call);
void getbit_command(Call& call);
void bitcount_command(Call& call);
void bitpos_command(Call& call);
void bitop_command(Call& call);

// bitfield.cc
void bitfield_command(Call& call);
// What BITFIELD does to its key: with GET alone it only reads.
uint32_t bitfield_key_flags(std::span<const Bytes> args);
void bitfield_ro_command(Call& call);

// The bit offset at this argument, for a field of `field_bits` bits: a number, or (if field_bits is
// not 0) `#n` for the n-th field of that width. Offsets beyond proto-max-bulk-len, the limit of
// strings, are refused. Returns false with the error replied.
bool parse_bit_offset(const Call& call, size_t argument, int field_bits, uint64_t& offset);

}  // namespace sluice
