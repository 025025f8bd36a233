// The payload of FUNCTION DUMP: the code of each library as in an RDB file, and the footer. Plain
// functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice::rdb {

// Strings are not compressed.
std::string write_functions(const std::vector<Bytes>& codes);

enum class FunctionsFault : uint8_t { kNone, kFooter, kCutShort, kOtherType };
FunctionsFault read_functions(Bytes payload, uint64_t max_string_bytes,
                              std::vector<std::string>& codes);

}  // namespace sluice::rdb
