// Base functions of the sandbox: those where LuaJIT differs from Redis's Lua 5.1, and those that
// must handle protected tables.
#include <algorithm>
#include <cmath>

#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/lua_source.h"
#include "engine/script/stacked_buffer.h"

namespace sluice {

namespace {

// --- Raw tables ---

int base_next(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (is_protected(lua, 1)) unprotect(lua, 1);
  if (lua_next(lua, 1) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

// Upvalue 1: LuaJIT's own `next`, for which its interpreter has fast loops.
int base_pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (is_protected(lua, 1)) {
    lua_pushcfunction(lua, base_next);
  } else {
    lua_pushvalue(lua, lua_upvalueindex(1));
  }
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int base_rawget(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  if (is_protected(lua, 1)) unprotect(lua, 1);
  lua_rawget(lua, 1);
  return 1;
}

int base_rawset(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (is_protected(lua, 1)) return raise_readonly(lua);
  lua_rawset(lua, 1);
  return 1;
}

// Upvalue 1: an empty protected table, for the globals; upvalue 2: one with `__index`, for strings.
int base_getmetatable(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_type(lua, 1) == LUA_TSTRING) {
    lua_pushvalue(lua, lua_upvalueindex(2));
    return 1;
  }
  if (lua_istable(lua, 1) && is_protected(lua, 1)) {
    if (lua_rawequal(lua, 1, LUA_GLOBALSINDEX) != 0) {
      lua_pushvalue(lua, lua_upvalueindex(1));
    } else {
      lua_pushnil(lua);
    }
    return 1;
  }
  if (lua_getmetatable(lua, 1) == 0) {
    lua_pushnil(lua);
  } else {
    luaL_getmetafield(lua, 1, "__metatable");
  }
  return 1;
}

int base_setmetatable(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int type = lua_type(lua, 2);
  luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (is_protected(lua, 1)) return raise_readonly(lua);
  if (luaL_getmetafield(lua, 1, "__metatable") != 0) {
    return luaL_error(lua, "cannot change a protected metatable");
  }
  lua_settop(lua, 2);
  lua_setmetatable(lua, 1);
  return 1;
}

constexpr int kMovesPerLook = 1 << 16;

int table_insert(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (is_protected(lua, 1)) return raise_readonly(lua);
  int end = static_cast<int>(lua_objlen(lua, 1)) + 1;
  switch (lua_gettop(lua)) {
    case 2:
      break;
    case 3: {
      const int position = luaL_checkint(lua, 2);
      if (position > end) end = position;
      for (int i = end; i > position; --i) {
        if (i % kMovesPerLook == 0) LuaMachine::of(lua).look(lua);
        lua_rawgeti(lua, 1, i - 1);
        lua_rawseti(lua, 1, i);
      }
      end = position;
      break;
    }
    default:
      return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  lua_rawseti(lua, 1, end);
  return 0;
}

// LuaJIT's own takes a position that is not whole as it is, and loses another item than it returns.
int table_remove(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int end = static_cast<int>(lua_objlen(lua, 1));
  const int position = luaL_optint(lua, 2, end);
  if (position < 1 || position > end) return 0;
  if (is_protected(lua, 1)) return raise_readonly(lua);
  lua_rawgeti(lua, 1, position);
  for (int i = position; i < end; ++i) {
    if (i % kMovesPerLook == 0) LuaMachine::of(lua).look(lua);
    lua_rawgeti(lua, 1, i + 1);
    lua_rawseti(lua, 1, i);
  }
  lua_pushnil(lua);
  lua_rawseti(lua, 1, end);
  return 1;
}

int table_setn(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  return luaL_error(lua, "'setn' is obsolete");
}

// --- Errors ---

int base_assert(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_toboolean(lua, 1) == 0) {
    return luaL_error(lua, "%s", luaL_optstring(lua, 2, "assertion failed!"));
  }
  return lua_gettop(lua);
}

// Errors of redis.call are tables; scripts written for older versions expect texts.
int base_pcall(lua_State* lua) {
  luaL_checkany(lua, 1);
  const int depth = enter_callback(lua);
  const int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  LuaMachine::of(lua).depth = depth;
  if (status != 0 && lua_istable(lua, -1) && !is_protected(lua, -1)) {
    lua_pushliteral(lua, "err");
    lua_rawget(lua, -2);
    if (lua_isstring(lua, -1) != 0) {
      lua_replace(lua, -2);
    } else {
      lua_pop(lua, 1);
    }
  }
  if (lua_checkstack(lua, 1) == 0) {
    lua_settop(lua, 0);
    lua_pushboolean(lua, 0);
    lua_pushliteral(lua, "stack overflow");
    return 2;
  }
  lua_pushboolean(lua, status == 0 ? 1 : 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

// The message handler of base_xpcall. Upvalue 1: the script's own handler.
int call_handler(lua_State* lua) {
  // SCRIPT KILL raises from the hook, and hooks do not fire until its error has been caught: a
  // handler that never returns could not be stopped.
  lua_settop(lua, 1);
  if (LuaMachine::of(lua).killed()) return 1;
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 1, 1);
  return 1;
}

int base_xpcall(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_pushcclosure(lua, call_handler, 1);
  lua_insert(lua, 1);
  const int depth = enter_callback(lua);
  const int status = lua_pcall(lua, 0, LUA_MULTRET, 1);
  LuaMachine::of(lua).depth = depth;
  lua_pushboolean(lua, status == 0 ? 1 : 0);
  lua_replace(lua, 1);
  return lua_gettop(lua);
}

// --- Recursion through C ---

// Returns null if it can be resumed, else the reason why not.
const char* not_resumable(lua_State* lua, lua_State* coroutine) {
  if (lua == coroutine) return "running";
  switch (lua_status(coroutine)) {
    case LUA_YIELD:
      return nullptr;
    case 0: {
      lua_Debug info;
      if (lua_getstack(coroutine, 0, &info) > 0) return "normal";
      return lua_gettop(coroutine) == 0 ? "dead" : nullptr;
    }
    default:
      return "dead";
  }
}

struct Resumption {
  lua_State* coroutine;
  int count;
};

// lua_resume returns an error as a value and leaves LuaJIT in the state of the hook that raised it:
// hooks, and so SCRIPT KILL, would never fire again. Raising the error again through a protected
// call resets that state.
int resume_raising(lua_State* lua) {
  const auto& resumption = *static_cast<const Resumption*>(lua_touserdata(lua, 1));
  const int status = lua_resume(resumption.coroutine, resumption.count);
  if (status == 0 || status == LUA_YIELD) return 0;
  lua_xmove(resumption.coroutine, lua, 1);
  return lua_error(lua);
}

// Resumes with the values on top of `lua`. Returns the number of results, or -1 with the error on
// top. `raising`: the index of resume_raising(). Creating that function for each call would make
// garbage that is never collected while only coroutines run.
int resume(lua_State* lua, lua_State* coroutine, int count, int raising) {
  const char* const state = not_resumable(lua, coroutine);
  if (state != nullptr) {
    lua_pushfstring(lua, "cannot resume %s coroutine", state);
    return -1;
  }
  if (lua_checkstack(coroutine, count) == 0) luaL_error(lua, "too many arguments to resume");
  const int depth = enter_callback(lua);
  lua_xmove(lua, coroutine, count);
  Resumption resumption{coroutine, count};
  lua_pushvalue(lua, raising);
  lua_pushlightuserdata(lua, &resumption);
  const int status = lua_pcall(lua, 1, 0, 0);
  LuaMachine::of(lua).depth = depth;
  if (status != 0) return -1;
  const int results = lua_gettop(coroutine);
  if (lua_checkstack(lua, results + 1) == 0) luaL_error(lua, "too many results to resume");
  lua_xmove(coroutine, lua, results);
  return results;
}

// Upvalue 1: resume_raising().
int coroutine_resume(lua_State* lua) {
  lua_State* const coroutine = lua_tothread(lua, 1);
  luaL_argcheck(lua, coroutine != nullptr, 1, "coroutine expected");
  const int results = resume(lua, coroutine, lua_gettop(lua) - 1, lua_upvalueindex(1));
  if (results < 0) {
    lua_pushboolean(lua, 0);
    lua_insert(lua, -2);
    return 2;
  }
  lua_pushboolean(lua, 1);
  lua_insert(lua, -results - 1);
  return results + 1;
}

// Upvalue 1: the coroutine; upvalue 2: resume_raising().
int call_coroutine(lua_State* lua) {
  lua_State* const coroutine = lua_tothread(lua, lua_upvalueindex(1));
  const int results = resume(lua, coroutine, lua_gettop(lua), lua_upvalueindex(2));
  if (results >= 0) return results;
  if (lua_isstring(lua, -1) != 0) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

// Upvalue 1: coroutine.create; upvalue 2: resume_raising().
int coroutine_wrap(lua_State* lua) {
  lua_settop(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 1, 1);
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_pushcclosure(lua, call_coroutine, 2);
  return 1;
}

// --- Loading text (never bytecode) ---

int finish_load(lua_State* lua, int status) {
  if (status == 0) return 1;
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

int base_loadstring(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const char* name = luaL_optstring(lua, 2, text);
  if (size != 0 && text[0] == LUA_SIGNATURE[0]) {
    // Loads it as text, like Redis: the lexer reports the error.
    lua_pushliteral(lua, " ");
    lua_pushvalue(lua, 1);
    lua_concat(lua, 2);
    text = lua_tolstring(lua, -1, &size);
  }
  return finish_load(lua, load_source(lua, {text, size}, name, SourceDialect::kPlain, true));
}

// Calls the function at index 1 for pieces of source until it returns no more, and returns them as
// one text: the time of the script's function must not count as the compiler's.
int collect_source(lua_State* lua) {
  StackedBuffer source(lua);
  for (;;) {
    luaL_checkstack(lua, 2, "too many nested functions");
    lua_pushvalue(lua, 1);
    lua_call(lua, 0, 1);
    if (lua_isnil(lua, -1)) break;
    if (lua_isstring(lua, -1) == 0) luaL_error(lua, "reader function must return a string");
    size_t size = 0;
    const char* const piece = lua_tolstring(lua, -1, &size);
    if (size == 0) break;
    if (source.size() + size > kMostSourceBytes) {
      return luaL_error(lua, "the source is longer than %d bytes",
                        static_cast<int>(kMostSourceBytes));
    }
    source.append({piece, size});
    lua_pop(lua, 1);
  }
  source.push();
  return 1;
}

int base_load(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* const name = luaL_optstring(lua, 2, "=(load)");
  lua_settop(lua, 2);
  const int depth = enter_callback(lua);
  lua_pushcfunction(lua, collect_source);
  lua_pushvalue(lua, 1);
  // In a protected call of its own: an error that passes no protected call leaves the hook
  // disabled.
  const int status = lua_pcall(lua, 1, 1, 0);
  LuaMachine::of(lua).depth = depth;
  if (status != 0) return finish_load(lua, status);
  size_t size = 0;
  const char* const text = lua_tolstring(lua, -1, &size);
  return finish_load(lua, load_source(lua, {text, size}, name, SourceDialect::kPlain, true));
}

// --- Others ---

// Scripts may query and run the collector, but not stop it, which would outlast them.
int base_collectgarbage(lua_State* lua) {
  static const char* const kOptions[] = {"collect", "count",    "step",       "stop",
                                         "restart", "setpause", "setstepmul", nullptr};
  const int option = luaL_checkoption(lua, 1, "collect", kOptions);
  const int argument = luaL_optint(lua, 2, 0);
  if (option == 1) {
    const int kilobytes = lua_gc(lua, LUA_GCCOUNT, 0);
    lua_pushnumber(lua, kilobytes + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
  } else if (option == 2) {
    lua_pushboolean(lua, lua_gc(lua, LUA_GCSTEP, argument));
  } else {
    lua_pushinteger(lua, option == 0 ? lua_gc(lua, LUA_GCCOLLECT, 0) : 0);
  }
  return 1;
}

int math_random(lua_State* lua) {
  constexpr lua_Number kRange = 2147483647;
  const lua_Number fraction =
      static_cast<lua_Number>(LuaMachine::of(lua).random.next() % 2147483647U) / kRange;
  switch (lua_gettop(lua)) {
    case 0:
      lua_pushnumber(lua, fraction);
      return 1;
    case 1: {
      const int upper = luaL_checkint(lua, 1);
      luaL_argcheck(lua, 1 <= upper, 1, "interval is empty");
      lua_pushnumber(lua, std::floor(fraction * upper) + 1);
      return 1;
    }
    case 2: {
      const int lower = luaL_checkint(lua, 1);
      const int upper = luaL_checkint(lua, 2);
      luaL_argcheck(lua, lower <= upper, 2, "interval is empty");
      const lua_Number width = static_cast<lua_Number>(upper) - lower + 1;
      lua_pushnumber(lua, std::floor(fraction * width) + lower);
      return 1;
    }
    default:
      return luaL_error(lua, "wrong number of arguments");
  }
}

int math_randomseed(lua_State* lua) {
  LuaMachine::of(lua).random.seed(static_cast<uint32_t>(luaL_checkint(lua, 1)));
  return 0;
}

// Upvalue 1: LuaJIT's own function, which supports more than the eight digits of 32 bits.
int bit_tohex(lua_State* lua) {
  constexpr int kMostDigits = 8;
  luaL_checknumber(lua, 1);
  const int digits = std::clamp(luaL_optint(lua, 2, kMostDigits), -kMostDigits, kMostDigits);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_pushvalue(lua, 1);
  lua_pushinteger(lua, digits);
  lua_call(lua, 2, 1);
  return 1;
}

void alias(lua_State* lua, const char* name, const char* existing) {
  lua_getfield(lua, -1, existing);
  lua_setfield(lua, -2, name);
}

}  // namespace

int enter_callback(lua_State* lua) {
  LuaMachine& machine = LuaMachine::of(lua);
  if (machine.depth >= LuaMachine::kMaxDepth) luaL_error(lua, "C stack overflow");
  return machine.depth++;
}

void replace_base_functions(lua_State* lua) {
  lua_getfield(lua, -1, "next");
  lua_pushcclosure(lua, base_pairs, 1);
  lua_setfield(lua, -2, "pairs");
  set_function(lua, "next", base_next);
  set_function(lua, "rawget", base_rawget);
  set_function(lua, "rawset", base_rawset);
  set_function(lua, "setmetatable", base_setmetatable);
  set_function(lua, "assert", base_assert);
  set_function(lua, "pcall", base_pcall);
  set_function(lua, "xpcall", base_xpcall);
  set_function(lua, "loadstring", base_loadstring);
  set_function(lua, "load", base_load);
  set_function(lua, "collectgarbage", base_collectgarbage);

  lua_newtable(lua);
  protect_table(lua);
  lua_createtable(lua, 0, 1);
  lua_getfield(lua, -3, "string");
  protect_table(lua);
  lua_setfield(lua, -2, "__index");
  protect_table(lua);
  lua_pushcclosure(lua, base_getmetatable, 2);
  lua_setfield(lua, -2, "getmetatable");

  lua_getfield(lua, -1, "string");
  replace_pattern_functions(lua);
  replace_text_functions(lua);
  alias(lua, "gfind", "gmatch");
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "table");
  replace_table_functions(lua);
  set_function(lua, "insert", table_insert);
  set_function(lua, "remove", table_remove);
  set_function(lua, "setn", table_setn);
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "coroutine");
  lua_pushcfunction(lua, resume_raising);
  lua_pushvalue(lua, -1);
  lua_pushcclosure(lua, coroutine_resume, 1);
  lua_setfield(lua, -3, "resume");
  lua_getfield(lua, -2, "create");
  lua_insert(lua, -2);
  lua_pushcclosure(lua, coroutine_wrap, 2);
  lua_setfield(lua, -2, "wrap");
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "bit");
  lua_getfield(lua, -1, "tohex");
  lua_pushcclosure(lua, bit_tohex, 1);
  lua_setfield(lua, -2, "tohex");
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "math");
  alias(lua, "mod", "fmod");
  set_function(lua, "random", math_random);
  set_function(lua, "randomseed", math_randomseed);
  lua_pop(lua, 1);
}

}  // namespace sluice
