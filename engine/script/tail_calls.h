// Rewrites `return f(x)` to `return (f(x))` where that means the same.
//
// LuaJIT turns `return f(x)` into a jump, also where f is a C function; if that function raises,
// the line that called it is gone, and with it the ` script: <sha>, on @user_script:<line>.` that
// clients know from Redis. Parentheses keep the call a call. They also cut the results to one, so
// they are added only outside of functions (a script has one result) and around functions that have
// one. Line numbers stay as they are. Pure; any thread.
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

std::string without_tail_calls(Bytes code);

}  // namespace sluice
