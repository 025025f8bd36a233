// Appends RDB's lengths and strings to a text. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::rdb {

void put_length(std::string& to, uint64_t length);
// Writes an integer of up to 32 bits as such; never compresses.
void put_string(std::string& to, Bytes text);

}  // namespace sluice::rdb
