#include "engine/script/lua_value.h"

#include "engine/reply.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_sandbox.h"

namespace sluice {

// --- Errors ---

void push_error(lua_State* lua, Bytes message, bool from_command) {
  while (!message.empty() && (message.back() == '\r' || message.back() == '\n')) {
    message.remove_suffix(1);
  }
  lua_createtable(lua, 0, 2);
  if (message.find(' ') == Bytes::npos) {
    lua_pushliteral(lua, "ERR ");
    lua_pushlstring(lua, message.data(), message.size());
    lua_concat(lua, 2);
  } else {
    lua_pushlstring(lua, message.data(), message.size());
  }
  lua_setfield(lua, -2, "err");
  if (!from_command) return;
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
}

int raise_error(lua_State* lua, Bytes message) {
  lua_createtable(lua, 0, 3);
  lua_pushliteral(lua, "ERR ");
  lua_pushlstring(lua, message.data(), message.size());
  lua_concat(lua, 2);
  lua_setfield(lua, -2, "err");
  return lua_error(lua);
}

int describe_error(lua_State* lua) {
  // The function that failed; where that is one of C's, its caller is who the author wants to see.
  lua_Debug info{};
  bool found = lua_getstack(lua, 1, &info) == 1 && lua_getinfo(lua, "Sl", &info) != 0;
  if (found && Bytes(info.what) == "C") {
    info = {};
    found = lua_getstack(lua, 2, &info) == 1 && lua_getinfo(lua, "Sl", &info) != 0;
  }
  if (!lua_istable(lua, 1) || is_protected(lua, 1)) {
    const char* text = lua_tostring(lua, 1);
    if (text == nullptr) {
      text = lua_isboolean(lua, 1) ? (lua_toboolean(lua, 1) ? "true" : "false")
                                   : luaL_typename(lua, 1);
    }
    lua_createtable(lua, 0, 3);
    // LuaJIT says where for every error but this one.
    if (found && Bytes(text) == "stack overflow") {
      lua_pushfstring(lua, "ERR %s:%d: %s", info.short_src, info.currentline, text);
    } else {
      lua_pushfstring(lua, "ERR %s", text);
    }
    lua_setfield(lua, -2, "err");
  } else {
    lua_settop(lua, 1);
  }
  if (found) {
    // By raw sets: the table is the script's and may have a metatable.
    lua_pushliteral(lua, "source");
    lua_pushstring(lua, info.source);
    lua_rawset(lua, -3);
    lua_pushliteral(lua, "line");
    lua_pushinteger(lua, info.currentline);
    lua_rawset(lua, -3);
  }
  return 1;
}

bool string_field(lua_State* lua, const char* name, Bytes& value) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  const bool found = lua_isstring(lua, -1) != 0;
  if (found) value = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return found;
}

std::string error_text(lua_State* lua, Bytes sha) {
  if (!lua_istable(lua, -1)) {
    const char* text = lua_tostring(lua, -1);
    return "ERR Error running script " + std::string(sha) + ", " +
           std::string(Bytes(text == nullptr ? "execution failure" : text).substr(0, 100));
  }
  Bytes field;
  std::string text = string_field(lua, "err", field)
                         ? std::string(field)
                         : "ERR The script raised a table without a field 'err'";
  Bytes source;
  if (!string_field(lua, "source", source)) return text;
  lua_pushliteral(lua, "line");
  lua_rawget(lua, -2);
  const int line = static_cast<int>(lua_tointeger(lua, -1));
  lua_pop(lua, 1);
  text += " script: ";
  text += sha;
  text += ", on ";
  text += source;
  text += ':';
  text += std::to_string(line);
  text += '.';
  return text;
}

bool is_counted_error(lua_State* lua) {
  if (!lua_istable(lua, -1)) return false;
  lua_pushliteral(lua, "ignore_error_stats_update");
  lua_rawget(lua, -2);
  const bool counted = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return counted;
}

// --- Results ---

int64_t to_integer(double number) {
  constexpr double kLimit = 9223372036854775808.0;
  if (!(number > -kLimit && number < kLimit)) return INT64_MIN;
  return static_cast<int64_t>(number);
}

namespace {

// The field `name` of the table on top, pushed if it has this type.
bool push_field(lua_State* lua, const char* name, int type) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  if (lua_type(lua, -1) == type) return true;
  lua_pop(lua, 1);
  return false;
}

std::string without_line_ends(Bytes text) {
  std::string result(text);
  for (char& c : result) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  return result;
}

void reply_map(lua_State* lua, Reply& reply, int script_protocol) {
  const size_t mark = reply.open_array();
  size_t pairs = 0;
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    lua_pushvalue(lua, -2);
    reply_value(lua, reply, script_protocol);
    reply_value(lua, reply, script_protocol);
    ++pairs;
  }
  reply.close_map(mark, pairs);
}

void reply_set(lua_State* lua, Reply& reply, int script_protocol) {
  const size_t mark = reply.open_array();
  size_t count = 0;
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    lua_pop(lua, 1);
    lua_pushvalue(lua, -1);
    reply_value(lua, reply, script_protocol);
    ++count;
  }
  reply.close_set(mark, count);
}

void reply_array(lua_State* lua, Reply& reply, int script_protocol) {
  const size_t mark = reply.open_array();
  size_t count = 0;
  for (;;) {
    lua_rawgeti(lua, -1, static_cast<int>(count + 1));
    if (lua_isnil(lua, -1)) break;
    reply_value(lua, reply, script_protocol);
    ++count;
  }
  lua_pop(lua, 1);
  reply.close_array(mark, count);
}

bool reply_verbatim(lua_State* lua, Reply& reply) {
  Bytes format;
  if (!push_field(lua, "format", LUA_TSTRING)) return false;
  format = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  if (!push_field(lua, "string", LUA_TSTRING)) return false;
  size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  reply.verbatim(format, {text, size});
  lua_pop(lua, 1);
  return true;
}

// A table with one of the fields that name a type. Leaves the stack as it was.
bool reply_typed_table(lua_State* lua, Reply& reply, int script_protocol) {
  if (push_field(lua, "err", LUA_TSTRING)) {
    const Bytes message = lua_tostring(lua, -1);
    lua_insert(lua, -2);  // the table on top, the message alive below it
    is_counted_error(lua) ? reply.repeat_error(message) : reply.error(message);
    lua_insert(lua, -2);
  } else if (push_field(lua, "ok", LUA_TSTRING)) {
    reply.simple(without_line_ends(lua_tostring(lua, -1)));
  } else if (push_field(lua, "double", LUA_TNUMBER)) {
    reply.number(lua_tonumber(lua, -1));
  } else if (push_field(lua, "big_number", LUA_TSTRING)) {
    size_t size = 0;
    const char* digits = lua_tolstring(lua, -1, &size);
    reply.big_number(without_line_ends({digits, size}));
  } else {
    if (push_field(lua, "verbatim_string", LUA_TTABLE)) {
      const bool written = reply_verbatim(lua, reply);
      lua_pop(lua, 1);
      if (written) return true;
    }
    if (push_field(lua, "map", LUA_TTABLE)) {
      reply_map(lua, reply, script_protocol);
    } else if (push_field(lua, "set", LUA_TTABLE)) {
      reply_set(lua, reply, script_protocol);
    } else {
      return false;
    }
  }
  lua_pop(lua, 1);
  return true;
}

// True: a short table whose keys are all numbers, so that none of the named fields is there. Seven
// look-ups cost more than a look at three keys.
bool has_only_numbered_keys(lua_State* lua) {
  constexpr int kMostKeys = 12;
  lua_pushnil(lua);
  for (int i = 0; i < kMostKeys; ++i) {
    if (lua_next(lua, -2) == 0) return true;
    lua_pop(lua, 1);
    if (lua_type(lua, -1) != LUA_TNUMBER) break;
  }
  lua_pop(lua, 1);
  return false;
}

}  // namespace

void reply_value(lua_State* lua, Reply& reply, int script_protocol) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(lua, -1, &size);
      reply.bulk({text, size});
      break;
    }
    case LUA_TNUMBER:
      reply.integer(to_integer(lua_tonumber(lua, -1)));
      break;
    case LUA_TBOOLEAN:
      if (script_protocol == 3) {
        reply.boolean(lua_toboolean(lua, -1) != 0);
      } else if (lua_toboolean(lua, -1) != 0) {
        reply.integer(1);
      } else {
        reply.null();
      }
      break;
    case LUA_TTABLE:
      // A table may contain itself; the stack's limit ends that.
      if (lua_checkstack(lua, 4) == 0) {
        reply.error("ERR reached lua stack limit");
      } else if (has_only_numbered_keys(lua) || !reply_typed_table(lua, reply, script_protocol)) {
        reply_array(lua, reply, script_protocol);
      }
      break;
    default:
      reply.null();
  }
  lua_pop(lua, 1);
}

}  // namespace sluice
