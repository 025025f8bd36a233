// Compiling the source of scripts, of functions, and of loadstring and load, within bounds.
//
// The compiler holds the thread, and some sources make it slow out of all proportion to their
// length. So a source that is compiled for the first time has a bound in bytes and one in
// processor time. What has been compiled once must compile on other threads too, without bounds.
#pragma once

#include <cstddef>

#include "engine/base/bytes.h"

struct lua_State;

namespace sluice {

constexpr size_t kMostSourceBytes = 1U << 20;

// The source as it is; the code of a script or of a library, which is Lua 5.1 (as_lua51).
enum class SourceDialect { kPlain, kLua51 };

// Pushes the function, or the error message. Returns Lua's status; what ends a running script comes
// as an error too, and is raised again at the next instruction.
int load_source(lua_State* lua, Bytes code, const char* name, SourceDialect dialect, bool bounded);

}  // namespace sluice
