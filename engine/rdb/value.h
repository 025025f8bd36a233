// One value in RDB's format: the payload of DUMP and RESTORE, and what an RDB file holds after each
// key. Version 10, as in redis-server 7.0.15; every older encoding can be read.
//
// Plain functions of their arguments. Decoding accepts any bytes, checks sizes before it allocates
// anything for them, and builds the value itself, element by element: no element occurs twice, no
// collection is empty (a stream may be), no score is NaN. A compressed string may grow up to the
// limit that the caller sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"

namespace sluice::rdb {

class Reader;

inline constexpr uint16_t kVersion = 10;

// Reads the value of RDB's type number `type` from the front, as an entry of this key. Returns null
// for damage and for unsupported types.
OwnedEntry read_value(uint8_t type, Reader& from, Bytes key);
// For messages: RDB's name of an unsupported type (modules). Empty if it is supported or unknown.
Bytes foreign_type_name(uint8_t type);

// The payload of DUMP or FUNCTION DUMP without its footer, or nothing if the footer is wrong.
std::optional<Bytes> check_footer(Bytes payload);
// Appends the footer to the content.
void put_footer(std::string& payload);

enum class PayloadFault : uint8_t { kNone, kFooter, kData };
PayloadFault read_payload(Bytes payload, uint64_t max_string_bytes, Bytes key, OwnedEntry& value);

// Whether RDB has a format for this type.
bool can_write(Type type);
// The payload that DUMP replies. Small values are packed as in Redis; strings are not compressed.
// REQUIRES: can_write(entry.type()).
std::string write_payload(const Entry& entry);

}  // namespace sluice::rdb
