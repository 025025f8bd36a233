// Rewrites a script so that LuaJIT runs it like Redis's Lua 5.1. Line numbers do not change.
//
// Tail calls: LuaJIT turns `return f(x)` into a jump, even if f is a C function. If that function
// raises an error, the line of the call is lost, and with it the ` script: <sha>, on
// @user_script:<line>.` that clients expect from Redis. `return (f(x))` prevents the tail call. It
// also cuts the results to one, so it is written only outside of functions (a script has one
// result) and for functions that have one result. Escapes: in strings, `\.` means `.` and `\x41`
// means `x41`. The first line: one that begins with `#` is not a comment, and bytecode is text
// (with errors in it).
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

std::string as_lua51(Bytes code);

}  // namespace sluice
