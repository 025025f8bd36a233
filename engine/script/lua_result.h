// Results and errors of scripts, converted to replies by Redis's rules.
//
// Used by one thread on a state that it owns. Nothing here calls metamethods, so nothing here can
// run script code or raise an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/bytes.h"

struct lua_State;

namespace sluice {

class Reply;

// Pushes a table of these strings.
void push_list(lua_State* lua, std::span<const Bytes> values);

// Pushes {err = message}. `message` begins with its code, "WRONGTYPE Operation ..."; a message of
// one word gets the code ERR. `from_command`: the command's own statistics have counted the error.
void push_error(lua_State* lua, Bytes message, bool from_command);

// Pushes {err = "ERR " + message} and raises it.
int raise_error(lua_State* lua, Bytes message);

// Writes the value on top of the stack as one reply and removes it. `script_protocol`: the protocol
// that the script has set by redis.setresp (it decides how booleans are written). Checks the clock
// while it works (LuaMachine::keep_serving). Returns false if the reply takes more than `room`
// bytes or the script was killed; then nothing is written, and the value is still on the stack.
bool reply_value(lua_State* lua, Reply& reply, int script_protocol, uint64_t room);

// The message handler of a script's protected call: makes a table {err, source, line} of any error.
int describe_error(lua_State* lua);

// The error text for the client, from such a table or from any other value on top of the stack.
std::string error_text(lua_State* lua, Bytes sha);

// Whether a command has already counted the error (a table on top of the stack).
bool is_counted_error(lua_State* lua);

// The string field of the table on top of the stack, up to its first NUL like in Redis. The
// view is valid while the table holds the string.
std::optional<Bytes> string_field(lua_State* lua, const char* name);

// Converts a number to an integer as the processor does, even if it does not fit, as in Redis.
int64_t to_integer(double number);

}  // namespace sluice
