// The environment of scripts: the available functions, protected from changes.
//
// LuaJIT has no read-only tables, so scripts see every shared table (the globals, `redis`,
// `string`, ...) as an empty *protected* table, whose metatable reads from the real one and refuses
// writes. Invariant: no script ever holds a real table; each function that works on raw tables
// (next, pairs, rawget, rawset, getmetatable, setmetatable, table.insert) handles protected ones.
// Scripts have only what is listed here: no files, no processes, no bytecode, no `debug`, `jit`,
// `ffi`, `require`.
#pragma once

#include <cstdint>

struct lua_State;

namespace sluice {

// What a state runs: scripts of EVAL, or functions of FUNCTION LOAD, which get KEYS and ARGV as
// arguments and lack a few functions of `redis` that old scripts need.
enum class SandboxKind : uint8_t { kScripts, kFunctions };

// Fills a new state and makes the protected globals its environment. Leaves the real globals, which
// get KEYS and ARGV, on the stack.
void build_sandbox(lua_State* lua, SandboxKind kind);

// Pushes the globals for the code of a library while it is loaded: only a small `redis`.
void push_loading_globals(lua_State* lua);

// Makes the protected globals read the real table at `index`, a positive one.
void show_globals(lua_State* lua, int index);

// Whether the value at this stack index is a protected table.
bool is_protected(lua_State* lua, int index);

// Replaces the protected table at `index`, a positive one, by the real one. For code that only
// reads it and never passes it to a script.
void unprotect(lua_State* lua, int index);

// Replaces the table on top of the stack by a protected view of it.
void protect_table(lua_State* lua);

// Adds a function to the table on top of the stack.
void set_function(lua_State* lua, const char* name, int (*function)(lua_State*));

// Raises "Attempt to modify a readonly table".
int raise_readonly(lua_State* lua);

// Replaces the base functions that behave differently in LuaJIT than in Redis's Lua, or that must
// handle protected tables (lua_base.cc), in the globals table on top of the stack.
void replace_base_functions(lua_State* lua);

// Puts an encoder that respects script-memory-limit into the table of cjson on top of the stack
// (lua_json.cc).
void replace_json_encoder(lua_State* lua);

// Replace the functions of strings and tables by ones that check the clock while they work
// (lua_patterns.cc, lua_texts.cc), in the table on top of the stack.
void replace_pattern_functions(lua_State* lua);
void replace_text_functions(lua_State* lua);
void replace_table_functions(lua_State* lua);

// Counts a C function that is about to call back into Lua, and returns the depth to restore. An
// error that passes the function is caught by another one, which restores its own depth, or ends
// the script.
int enter_callback(lua_State* lua);

// Push the tables `redis` (redis_api.cc), `cmsgpack` and `struct`, not yet protected.
void push_redis_table(lua_State* lua, SandboxKind kind);
// The `redis` of push_loading_globals().
void push_loading_redis_table(lua_State* lua);
void push_msgpack_table(lua_State* lua);
void push_struct_table(lua_State* lua);

}  // namespace sluice
