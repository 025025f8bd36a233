// The world that scripts live in: which functions there are, and that nobody can change them.
//
// LuaJIT has no read-only tables, so every shared table (the globals, `redis`, `string`, ...) is
// seen by scripts as an empty *protected* table, whose metatable reads from the real one and
// refuses writes. Invariant: no script ever holds a real table; each function that works on raw
// tables (next, pairs, rawget, rawset, getmetatable, setmetatable, table.insert) knows protected
// ones. What is not listed here does not exist for scripts: no files, no processes, no bytecode, no
// `debug`, `jit`, `ffi`, `require`.
#pragma once

#include <cstdint>

struct lua_State;

namespace sluice {

// What a state runs: scripts of EVAL, or functions of FUNCTION LOAD, which get KEYS and ARGV as
// arguments and miss a few functions of `redis` that old scripts need.
enum class SandboxKind : uint8_t { kScripts, kFunctions };

// Fills a new state and makes the protected globals its environment. Leaves the real globals, where
// KEYS and ARGV go, on the stack.
void build_sandbox(lua_State* lua, SandboxKind kind);

// Pushes the globals that the code of a library sees while it is loaded: a small `redis` and
// nothing else.
void push_loading_globals(lua_State* lua);

// Changes what the protected globals show: the real table at `index`, a positive one.
void show_globals(lua_State* lua, int index);

// The value at this stack index is a protected table.
bool is_protected(lua_State* lua, int index);

// Puts the real table in place of the protected one at `index`, a positive one. For what only reads
// it: scripts never get hold of it.
void unprotect(lua_State* lua, int index);

// Puts a protected view in place of the table on top of the stack.
void protect_table(lua_State* lua);

// Raises "Attempt to modify a readonly table".
int raise_readonly(lua_State* lua);

// The base functions that behave as in Redis's Lua where LuaJIT's differ, or that must know
// protected tables (lua_base.cc). Registers them over the ones in the globals table on top of the
// stack.
void replace_base_functions(lua_State* lua);

// Puts an encoder that keeps to script-memory-limit into the table of cjson on top of the stack
// (lua_json.cc).
void replace_json_encoder(lua_State* lua);

// The functions of strings and tables that look at the clock while they work (lua_patterns.cc,
// lua_texts.cc). Each registers its own over the ones in the table on top of the stack.
void replace_pattern_functions(lua_State* lua);
void replace_text_functions(lua_State* lua);
void replace_table_functions(lua_State* lua);

// Counts a C function that is about to call back into Lua; returns the depth to go back to. What
// raises past such a function is caught by another one, which goes back to its own depth, or ends
// the script.
int enter_callback(lua_State* lua);

// The tables `redis` (redis_api.cc), `cmsgpack` and `struct` on top of the stack, not yet
// protected.
void push_redis_table(lua_State* lua, SandboxKind kind);
// The `redis` of push_loading_globals().
void push_loading_redis_table(lua_State* lua);
void push_msgpack_table(lua_State* lua);
void push_struct_table(lua_State* lua);

}  // namespace sluice
