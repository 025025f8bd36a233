// Compiling the source of scripts, of functions, and of loadstring and load, within bounds.
//
// The compiler blocks the thread, and some sources take time out of all proportion to their length.
// So a source that is compiled for the first time has a limit in bytes and one in processor time. A
// source that was compiled once must compile on other threads, too, and has no limits.
#pragma once

#include <cstddef>

#include "engine/base/bytes.h"

struct lua_State;

namespace sluice {

constexpr size_t kMostSourceBytes = 1U << 20;

// kPlain: the source as it is. kLua51: the code of a script or of a library, which is Lua 5.1
// (as_lua51).
enum class SourceDialect { kPlain, kLua51 };

// Pushes the function, or the error message. Returns Lua's status. The end of a running script is
// also an error here, and is raised again at the next instruction.
int load_source(lua_State* lua, Bytes code, const char* name, SourceDialect dialect, bool bounded);

}  // namespace sluice
