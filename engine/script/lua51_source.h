// Rewrites a script so that LuaJIT runs it as the Lua 5.1 inside Redis does. Line numbers stay.
//
// Tail calls: LuaJIT turns `return f(x)` into a jump, also where f is a C function; if that
// function raises, the line that called it is gone, and with it the ` script: <sha>, on
// @user_script:<line>.` that clients know from Redis. `return (f(x))` keeps the call a call. It
// also cuts the results to one, so it is written only outside of functions (a script has one
// result) and for functions that have one. Escapes: in strings, `\.` means `.` and `\x41` means
// `x41`. The first line: one that begins with `#` is no comment, and bytecode is text (with errors
// in it).
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

std::string as_lua51(Bytes code);

}  // namespace sluice
