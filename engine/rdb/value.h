// One value in RDB's format: what DUMP writes and RESTORE reads, and what an RDB file holds behind
// each key. Version 10, as redis-server 7.0.15 has it; every older encoding is read too.
//
// Plain functions of their arguments. Decoding takes any bytes, checks sizes before it allocates
// anything for them, and builds the value itself, element by element: no element stands in it
// twice, no collection is empty (a stream may be), no score is NaN. A compressed string may grow up
// to the limit that the caller sets.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"

namespace sluice::rdb {

class Reader;

inline constexpr uint16_t kVersion = 10;

// Reads the value of RDB's type number `type` from the front, as an entry of this key. Null:
// damaged, or of a type that is not here.
OwnedEntry read_value(uint8_t type, Reader& from, Bytes key);
// For messages: what RDB calls a type that is not here (modules). Empty: it is here, or unknown.
Bytes foreign_type_name(uint8_t type);

// A whole payload of DUMP, or of FUNCTION DUMP: what stands in front of the footer, into `content`.
// False: the footer is wrong.
bool check_footer(Bytes payload, Bytes& content);
// Appends the footer to the content.
void put_footer(std::string& payload);

enum class PayloadFault : uint8_t { kNone, kFooter, kData };
PayloadFault read_payload(Bytes payload, uint64_t max_string_bytes, Bytes key, OwnedEntry& value);

// Whether RDB has a form for this type.
bool can_write(Type type);
// The payload that DUMP replies. Small values are packed as Redis would keep them; strings are not
// compressed. REQUIRES: can_write(entry.type()).
std::string write_payload(const Entry& entry);

}  // namespace sluice::rdb
