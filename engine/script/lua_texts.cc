// string.rep and table.concat, where one call may take long: the result is built in pieces, and the
// clock is checked between them. string.sub, string.byte and string.format as Lua 5.1 has them,
// where LuaJIT's own return something else.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/base/check.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/stacked_buffer.h"

namespace sluice {

namespace {

// string.rep builds results up to this size in one buffer, larger ones from blocks of this size.
constexpr size_t kBlockBytes = 1U << 20;
// A string could not hold more blocks.
constexpr size_t kMostBlocks = 2046;

// table.concat passes this many items at a time to Lua's own, but makes no more than kMostParts
// parts.
constexpr int64_t kItemsPerPart = 16 << 10;
constexpr int64_t kMostParts = 1000;

// Pushes the text `count` times. REQUIRES: the text is not empty.
void push_repeated(lua_State* lua, Bytes text, size_t count) {
  StackedBuffer out(lua);
  const size_t size = text.size() * count;
  char* const bytes = out.extend(size);
  std::memcpy(bytes, text.data(), text.size());
  for (size_t done = text.size(); done < size;) {
    const size_t more = std::min(done, size - done);
    std::memcpy(bytes + done, bytes, more);
    done += more;
  }
  out.push();
}

int string_rep(lua_State* lua) {
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  const int wanted = luaL_checkint(lua, 2);
  if (size == 0 || wanted <= 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  const auto count = static_cast<size_t>(wanted);
  const size_t total = size * count;
  if (total <= kBlockBytes) {
    push_repeated(lua, {text, size}, count);
    return 1;
  }
  const size_t in_block = std::max<size_t>(kBlockBytes / size, 1);
  const size_t blocks = count / in_block;
  if (blocks > kMostBlocks) return luaL_error(lua, "resulting string too large");
  luaL_checkstack(lua, static_cast<int>(blocks) + 4, "resulting string too large");
  // The collector may free the first buffer once the block exists.
  push_repeated(lua, {text, size}, count % in_block == 0 ? in_block : count % in_block);
  const int rest = lua_gettop(lua);
  push_repeated(lua, {text, size}, in_block);
  const int block = lua_gettop(lua);
  LuaMachine::of(lua).look(lua);
  if (count % in_block != 0) lua_pushvalue(lua, rest);
  for (size_t i = 0; i < blocks; ++i) lua_pushvalue(lua, block);
  lua_concat(lua, lua_gettop(lua) - block);
  return 1;
}

// Negative positions count from the end. Positions have 64 bits; LuaJIT's functions take one beyond
// 32 bits for a negative one.
int64_t place(int64_t position, size_t size) {
  if (position >= 0) return position;
  return std::max<int64_t>(position + static_cast<int64_t>(size) + 1, 0);
}

int string_sub(lua_State* lua) {
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  const int64_t first = std::max<int64_t>(place(luaL_checkinteger(lua, 2), size), 1);
  const int64_t last =
      std::min(place(luaL_optinteger(lua, 3, -1), size), static_cast<int64_t>(size));
  const int64_t count = std::max<int64_t>(last - first + 1, 0);
  lua_pushlstring(lua, count == 0 ? "" : text + first - 1, static_cast<size_t>(count));
  return 1;
}

int string_byte(lua_State* lua) {
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  const int64_t wanted = place(luaL_optinteger(lua, 2, 1), size);
  const int64_t first = std::max<int64_t>(wanted, 1);
  const int64_t last =
      std::min(place(luaL_optinteger(lua, 3, wanted), size), static_cast<int64_t>(size));
  if (last - first >= INT_MAX) return luaL_error(lua, "string slice too long");
  const int count = static_cast<int>(std::max<int64_t>(last - first + 1, 0));
  luaL_checkstack(lua, count, "string slice too long");
  for (int i = 0; i < count; ++i) {
    lua_pushinteger(lua, static_cast<unsigned char>(text[first - 1 + i]));
  }
  return count;
}

// The length of a conversion to e, E, f, g or G that begins behind the '%', or 0.
size_t float_conversion(Bytes text) {
  size_t at = 0;
  const auto skip = [&](size_t most, Bytes accepted) {
    for (size_t end = at + most; at < end && at < text.size(); ++at) {
      if (accepted.find(text[at]) == Bytes::npos) return;
    }
  };
  skip(5, "-+ #0");
  skip(2, "0123456789");
  if (at < text.size() && text[at] == '.') {
    ++at;
    skip(2, "0123456789");
  }
  const bool found = at < text.size() && Bytes("eEfgG").find(text[at]) != Bytes::npos;
  return found ? at + 1 : 0;
}

// Upvalue 1: LuaJIT's string.format, which rounds a tie away from zero (0.5 by %.0f is 1). Finite
// numbers are converted here, as C does, and reach it as texts.
int string_format(lua_State* lua) {
  const lua_CFunction original = lua_tocfunction(lua, lua_upvalueindex(1));
  const int arguments = lua_gettop(lua);
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  luaL_Buffer changed;
  luaL_buffinit(lua, &changed);
  size_t copied = 0;
  int argument = 1;
  for (size_t at = 0; at < size; ++at) {
    if (text[at] != '%') continue;
    ++at;
    if (at < size && text[at] == '%') continue;
    if (++argument > arguments) break;
    const size_t length = float_conversion(Bytes(text + at, size - at));
    if (length == 0 || lua_isnumber(lua, argument) == 0) continue;
    const double number = lua_tonumber(lua, argument);
    if (!std::isfinite(number)) continue;
    char conversion[16] = {'%'};
    std::memcpy(conversion + 1, text + at, length);
    char converted[512];
    std::snprintf(converted, sizeof(converted), conversion, number);
    lua_pushstring(lua, converted);
    lua_replace(lua, argument);
    luaL_addlstring(&changed, text + copied, at - copied);
    luaL_addchar(&changed, 's');
    copied = at + length;
    at = copied - 1;
  }
  if (copied != 0) {
    luaL_addlstring(&changed, text + copied, size - copied);
    luaL_pushresult(&changed);
    lua_replace(lua, 1);
  }
  lua_settop(lua, arguments);
  return original(lua);
}

// Upvalue 1: LuaJIT's table.concat. It is a C function, called here in this function's own frame,
// so that its errors name table.concat and the script's line.
int table_concat(lua_State* lua) {
  const lua_CFunction original = lua_tocfunction(lua, lua_upvalueindex(1));
  if (!lua_istable(lua, 1)) return original(lua);
  const int64_t first = luaL_optint(lua, 3, 1);
  const int64_t last = luaL_optint(lua, 4, static_cast<int>(lua_objlen(lua, 1)));
  const int64_t in_part = std::max(kItemsPerPart, (last - first) / kMostParts);
  if (last - first < in_part) return original(lua);
  luaL_checkstack(lua, 2 * kMostParts + 8, "too many results to concat");
  lua_settop(lua, 4);
  if (lua_isnil(lua, 2)) {
    lua_pushliteral(lua, "");
    lua_replace(lua, 2);
  }
  for (int64_t from = first; from <= last; from += in_part) {
    LuaMachine::of(lua).look(lua);
    if (from != first) lua_pushvalue(lua, 2);
    lua_pushinteger(lua, from);
    lua_replace(lua, 3);
    lua_pushinteger(lua, std::min(from + in_part - 1, last));
    lua_replace(lua, 4);
    const int top = lua_gettop(lua);
    // It may write its result over the value on top, or push it.
    lua_pushnil(lua);
    original(lua);
    if (lua_gettop(lua) > top + 1) lua_replace(lua, top + 1);
  }
  lua_concat(lua, lua_gettop(lua) - 4);
  return 1;
}

// Puts the function into the table on top of the stack, with LuaJIT's own as its upvalue.
void wrap_function(lua_State* lua, const char* name, lua_CFunction function) {
  lua_getfield(lua, -1, name);
  CHECK(lua_tocfunction(lua, -1) != nullptr);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
}

}  // namespace

void replace_text_functions(lua_State* lua) {
  lua_pushcfunction(lua, string_rep);
  lua_setfield(lua, -2, "rep");
  lua_pushcfunction(lua, string_sub);
  lua_setfield(lua, -2, "sub");
  lua_pushcfunction(lua, string_byte);
  lua_setfield(lua, -2, "byte");
  wrap_function(lua, "format", string_format);
}

void replace_table_functions(lua_State* lua) { wrap_function(lua, "concat", table_concat); }

}  // namespace sluice
