// RespValue: a reply of the engine as a tree, for consumers that do not forward it as bytes.
//
// Plain data. It is parsed from the engine's own output, so malformed input is a broken invariant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct RespValue {
  enum class Kind : uint8_t { kNull, kInteger, kDouble, kBoolean, kText, kError, kArray, kMap };

  Kind kind = Kind::kNull;
  int64_t integer = 0;  // kInteger; kBoolean: 0 or 1
  double number = 0;
  std::string text;              // kText, kError: the whole message with its code
  std::vector<RespValue> items;  // kArray; kMap: names and values alternating

  bool is_null() const { return kind == Kind::kNull; }
  bool is_error() const { return kind == Kind::kError; }
  bool is_map() const { return kind == Kind::kMap; }
  // The value of a map's member; null if it is missing.
  const RespValue* find(Bytes name) const;
  // The same for a member that must exist.
  const RespValue& at(Bytes name) const;
  // An integer or a double; 0 for anything else.
  double as_number() const;
};

// Parses the first value of `bytes`, RESP2 or RESP3, and moves `bytes` after it. Pushes and
// attributes do not occur in replies. REQUIRES: a complete value.
RespValue parse_resp_value(Bytes& bytes);

}  // namespace sluice
