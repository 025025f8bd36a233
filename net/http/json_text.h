// Arbitrary bytes in JSON, which only knows Unicode text.
//
// The encoding: what is valid UTF-8 is a string. What is not is, as a member `x` of an object, null
// with `x_base64` beside it; as an element of an array, an object {"base64": "..."}; as the name of
// a member, the name's base64 behind "base64:". In requests both forms are taken.
//
// Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "net/resp/resp_value.h"

namespace sluice {

// Arrays and objects within each other that are taken from others. The library copies and writes a
// value by recursion, so a deeper one could exhaust the stack.
inline constexpr size_t kMaxJsonDepth = 64;

// What others say as JSON. Discarded (is_discarded()) where it is malformed or too deep.
nlohmann::json parse_json(Bytes text);

bool is_utf8(Bytes bytes);
std::string to_base64(Bytes bytes);
// Nothing if it is malformed. Takes the alphabets of RFC 4648 with and without padding.
std::optional<std::string> from_base64(Bytes text);

// The form of an array's element.
nlohmann::json text_to_json(Bytes bytes);
std::string name_to_json(Bytes name);
void put_bytes(nlohmann::json& object, const std::string& name, Bytes bytes);

// A reply of the engine, its maps as objects.
nlohmann::json resp_to_json(const RespValue& value);
// What Q.CONFIG GET replies, as a map: values that are numbers are numbers.
nlohmann::json config_to_json(const RespValue& config);
// The member `name` of `object` from a reply's value.
void put_value(nlohmann::json& object, const std::string& name, const RespValue& value);

// Compact. Never fails: what is no UTF-8 has been dealt with before.
std::string dump_json(const nlohmann::json& value);

}  // namespace sluice
