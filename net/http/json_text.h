// Arbitrary bytes in JSON, which supports Unicode text only.
//
// Encoding: valid UTF-8 is a string. Other bytes become, as a member `x` of an object, null with
// `x_base64` beside it; as an element of an array, an object {"base64": "..."}; as the name of a
// member, "base64:" and the name's base64. Requests may use both forms.
//
// Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "net/resp/resp_value.h"

namespace sluice {

// Maximum nesting of arrays and objects in input. The library copies and writes values recursively,
// so deeper ones could exhaust the stack.
inline constexpr size_t kMaxJsonDepth = 64;

// Parses JSON input. The result is discarded (is_discarded()) if it is malformed or nested too
// deeply.
nlohmann::json parse_json(Bytes text);

// The member `name` of the object that parse_json() would return, in a part of its time; an empty
// object in place of an array or object. Nothing if it returns no object, or one without the
// member.
std::optional<nlohmann::json> parse_member(Bytes text, Bytes name);

bool is_utf8(Bytes bytes);
std::string to_base64(Bytes bytes);
// Nothing if malformed. Accepts the alphabets of RFC 4648 with and without padding.
std::optional<std::string> from_base64(Bytes text);

// In the form of an array's element.
nlohmann::json text_to_json(Bytes bytes);
std::string name_to_json(Bytes name);
void put_bytes(nlohmann::json& object, const std::string& name, Bytes bytes);

// Converts a reply of the engine; its maps become objects.
nlohmann::json resp_to_json(const RespValue& value);
// Converts a reply of Q.CONFIG GET to a map; numeric values become numbers.
nlohmann::json config_to_json(const RespValue& config);
// Sets the member `name` of `object` to a reply's value.
void put_value(nlohmann::json& object, const std::string& name, const RespValue& value);

// Appends the text of resp_to_json(value), with the members of maps in their order: lists of jobs
// are read often, and a tree of values for them would take most of the time.
void append_json(const RespValue& value, std::string& to);
// Appends `"name":value`, as put_value() sets it. The name must need no escape.
void append_member(Bytes name, const RespValue& value, std::string& to);

// Compact output. Never fails, because invalid UTF-8 has been encoded before.
std::string dump_json(const nlohmann::json& value);

}  // namespace sluice
