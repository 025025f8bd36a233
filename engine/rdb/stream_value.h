// Streams in RDB's format: their entries as Redis's listpacks, and their groups.
//
// A listpack keeps deleted entries. Here a node only counts them; so they are written as entries
// without fields, of 10 bytes each.
#pragma once

#include <cstdint>
#include <string>

#include "engine/structures/stream.h"

namespace sluice::rdb {

class Reader;

// Reads into an empty stream. Returns false for damage.
bool read_stream(uint8_t type, Reader& from, Stream& stream);
// Writes its type as well.
void put_stream(std::string& to, const Stream& stream);

}  // namespace sluice::rdb
