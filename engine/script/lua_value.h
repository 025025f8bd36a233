// From Lua to the client: results and errors of scripts, by Redis's conversion rules.
//
// Used by one thread on a state that it owns. Nothing here calls metamethods, so nothing here can
// run script code or raise.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

struct lua_State;

namespace sluice {

class Reply;

// Pushes {err = message}. `message` begins with its code, "WRONGTYPE Operation ..."; a message of
// one word gets the code ERR. `from_command`: the command's own statistics count the error already.
void push_error(lua_State* lua, Bytes message, bool from_command);

// Pushes {err = "ERR " + message} and raises it.
int raise_error(lua_State* lua, Bytes message);

// Writes the value on top of the stack as one reply and removes it. `script_protocol`: what the
// script asked for by redis.setresp (it decides how booleans are shown). Looks at the clock while
// it works (LuaMachine::keep_serving). False: it takes more than `room` bytes, or the script has
// been killed; nothing is written, and the value is still there.
bool reply_value(lua_State* lua, Reply& reply, int script_protocol, uint64_t room);

// The message handler of a script's protected call: makes a table {err, source, line} of any error.
int describe_error(lua_State* lua);

// The text that the client gets for such a table (or for whatever else is on top of the stack).
std::string error_text(lua_State* lua, Bytes sha);

// The error (a table on top of the stack) is one that a command has counted already.
bool is_counted_error(lua_State* lua);

// The string field of the table on top of the stack, up to its first NUL as Redis takes it; false:
// there is none. The view stays valid while the table holds the string.
bool string_field(lua_State* lua, const char* name, Bytes& value);

// A number as an integer: what the processor's conversion gives for everything that does not fit,
// as in Redis.
int64_t to_integer(double number);

}  // namespace sluice
