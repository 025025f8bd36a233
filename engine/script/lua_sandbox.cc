#include "engine/script/lua_sandbox.h"

#include <span>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "engine/script/lua_headers.h"

namespace sluice {

namespace {

// Its address marks the metatables of protected tables. Scripts never see these metatables.
const char kMarker = 0;
constexpr int kMarkerIndex = 1;

constexpr Bytes kGlobals[] = {
    "_VERSION", "assert",     "collectgarbage", "error",    "gcinfo",   "getmetatable", "ipairs",
    "load",     "loadstring", "next",           "pairs",    "pcall",    "rawequal",     "rawget",
    "rawset",   "select",     "setmetatable",   "tonumber", "tostring", "type",         "unpack",
    "xpcall",   "bit",        "coroutine",      "math",     "string",   "table"};
constexpr Bytes kStringLibrary[] = {"byte", "char",  "dump",  "find", "format",  "gmatch", "gsub",
                                    "len",  "lower", "match", "rep",  "reverse", "sub",    "upper"};
constexpr Bytes kTableLibrary[] = {"concat", "foreach", "foreachi", "getn",
                                   "insert", "maxn",    "remove",   "sort"};
constexpr Bytes kMathLibrary[] = {"abs",   "acos", "asin",  "atan",  "atan2", "ceil",  "cos",
                                  "cosh",  "deg",  "exp",   "floor", "fmod",  "frexp", "huge",
                                  "ldexp", "log",  "log10", "max",   "min",   "modf",  "pi",
                                  "pow",   "rad",  "sin",   "sinh",  "sqrt",  "tan",   "tanh"};
constexpr Bytes kCoroutineLibrary[] = {"create", "resume", "running", "status", "wrap", "yield"};
constexpr Bytes kBitLibrary[] = {"arshift", "band", "bnot", "bor",    "bswap", "bxor",
                                 "lshift",  "rol",  "ror",  "rshift", "tobit", "tohex"};
constexpr Bytes kCjsonLibrary[] = {"_NAME",
                                   "_VERSION",
                                   "decode",
                                   "decode_invalid_numbers",
                                   "decode_max_depth",
                                   "encode",
                                   "encode_invalid_numbers",
                                   "encode_keep_buffer",
                                   "encode_max_depth",
                                   "encode_number_precision",
                                   "encode_sparse_array",
                                   "new",
                                   "null"};

void open_library(lua_State* lua, const char* name, lua_CFunction open) {
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

// Removes everything that is not in the list from the table on top.
void keep_only(lua_State* lua, std::span<const Bytes> names) {
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    lua_pop(lua, 1);
    bool listed = false;
    if (lua_type(lua, -1) == LUA_TSTRING) {
      const Bytes key = lua_tostring(lua, -1);
      for (const Bytes name : names) listed = listed || name == key;
    }
    if (listed) continue;
    lua_pushvalue(lua, -1);
    lua_pushnil(lua);
    lua_rawset(lua, -4);
  }
}

void keep_only_in(lua_State* lua, const char* library, std::span<const Bytes> names) {
  lua_getfield(lua, -1, library);
  CHECK(lua_istable(lua, -1));
  keep_only(lua, names);
  lua_pop(lua, 1);
}

int missing_global(lua_State* lua) {
  const int type = lua_type(lua, 2);
  if (type != LUA_TSTRING && type != LUA_TNUMBER) {
    return luaL_error(lua, "Second argument to luaProtectedTableError must be a string or number");
  }
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

// Makes reading a missing field of the table on top of the stack an error. Protected views use this
// after the real table.
void refuse_missing(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, missing_global);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
}

int refuse_write(lua_State* lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

// Adds all libraries to the globals table on top of the stack.
void add_libraries(lua_State* lua, SandboxKind kind) {
  open_library(lua, "", luaopen_base);
  open_library(lua, LUA_TABLIBNAME, luaopen_table);
  open_library(lua, LUA_STRLIBNAME, luaopen_string);
  open_library(lua, LUA_MATHLIBNAME, luaopen_math);
  open_library(lua, LUA_BITLIBNAME, luaopen_bit);
  keep_only(lua, kGlobals);
  keep_only_in(lua, "string", kStringLibrary);
  keep_only_in(lua, "table", kTableLibrary);
  keep_only_in(lua, "math", kMathLibrary);
  keep_only_in(lua, "coroutine", kCoroutineLibrary);
  keep_only_in(lua, "bit", kBitLibrary);
  lua_pushcfunction(lua, luaopen_cjson);
  lua_call(lua, 0, 1);
  keep_only(lua, kCjsonLibrary);
  replace_json_encoder(lua);
  lua_setfield(lua, -2, "cjson");
  push_redis_table(lua, kind);
  lua_setfield(lua, -2, "redis");
  push_msgpack_table(lua);
  lua_setfield(lua, -2, "cmsgpack");
  push_struct_table(lua);
  lua_setfield(lua, -2, "struct");
}

}  // namespace

void set_function(lua_State* lua, const char* name, lua_CFunction function) {
  lua_pushcfunction(lua, function);
  lua_setfield(lua, -2, name);
}

int raise_readonly(lua_State* lua) {
  lua_pushliteral(lua, "Attempt to modify a readonly table");
  return lua_error(lua);
}

bool is_protected(lua_State* lua, int index) {
  if (lua_getmetatable(lua, index) == 0) return false;
  lua_rawgeti(lua, -1, kMarkerIndex);
  const bool marked = lua_touserdata(lua, -1) == &kMarker;
  lua_pop(lua, 2);
  return marked;
}

void unprotect(lua_State* lua, int index) {
  lua_getmetatable(lua, index);
  lua_pushliteral(lua, "__index");
  lua_rawget(lua, -2);
  lua_replace(lua, index);
  lua_pop(lua, 1);
}

void protect_table(lua_State* lua) {
  lua_newtable(lua);
  lua_createtable(lua, 1, 2);
  lua_pushlightuserdata(lua, const_cast<char*>(&kMarker));
  lua_rawseti(lua, -2, kMarkerIndex);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

void build_sandbox(lua_State* lua, SandboxKind kind) {
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  add_libraries(lua, kind);
  replace_base_functions(lua);
  for (const char* name :
       {"string", "table", "math", "coroutine", "bit", "cjson", "cmsgpack", "struct", "redis"}) {
    lua_getfield(lua, -1, name);
    protect_table(lua);
    lua_setfield(lua, -2, name);
  }
  if (kind == SandboxKind::kScripts) {
    lua_newtable(lua);
    lua_setfield(lua, -2, "KEYS");
    lua_newtable(lua);
    lua_setfield(lua, -2, "ARGV");
  }
  refuse_missing(lua);
  lua_pushvalue(lua, -1);
  protect_table(lua);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -3, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
}

void push_loading_globals(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  push_loading_redis_table(lua);
  refuse_missing(lua);
  protect_table(lua);
  lua_setfield(lua, -2, "redis");
  refuse_missing(lua);
}

void show_globals(lua_State* lua, int index) {
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, index);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
}

}  // namespace sluice
