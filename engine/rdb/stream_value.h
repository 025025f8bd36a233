// Streams in RDB's format: their entries as the listpacks in which Redis keeps them, and their
// groups.
//
// A listpack keeps deleted entries. Here a node only counts them; so they are written as entries
// that have no fields, and take 10 bytes each.
#pragma once

#include <cstdint>
#include <string>

#include "engine/structures/stream.h"

namespace sluice::rdb {

class Reader;

// Into an empty stream. False: damaged.
bool read_stream(uint8_t type, Reader& from, Stream& stream);
// With its type.
void put_stream(std::string& to, const Stream& stream);

}  // namespace sluice::rdb
