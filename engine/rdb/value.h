// One value in RDB's format: what DUMP writes and RESTORE reads, and what an RDB file holds behind
// each key. Version 10, as redis-server 7.0.15 has it; every older encoding is read too.
//
// Plain functions of their arguments. Decoding takes any bytes, and checks sizes before it
// allocates anything for them. An element that costs one byte there is a std::string here, and a
// compressed string may grow up to the limit that the caller sets.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"

namespace sluice::rdb {

class Reader;

inline constexpr uint16_t kVersion = 10;

// A decoded value. No element stands in it twice, no collection is empty, no score is NaN.
struct Value {
  Type type = Type::kString;
  std::string string;
  std::vector<std::string> items;                           // list, set; in order
  std::vector<std::pair<std::string, std::string>> fields;  // hash; in order
  std::vector<std::pair<std::string, double>> scored;       // sorted set
};

// Reads the value of RDB's type number `type` from the front. False: damaged, or of a type that is
// not here (modules, streams).
bool read_value(uint8_t type, Reader& from, Value& value);

// A whole payload of DUMP.
enum class PayloadFault : uint8_t { kNone, kFooter, kData };
PayloadFault read_payload(Bytes payload, uint64_t max_string_bytes, Value& value);

// Whether RDB has a form for this type.
bool can_write(Type type);
// The payload that DUMP replies. Small values are packed as Redis would keep them; strings are not
// compressed. REQUIRES: can_write(entry.type()).
std::string write_payload(const Entry& entry);

}  // namespace sluice::rdb
