#include "engine/script/lua_result.h"

#include "engine/reply/reply.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_sandbox.h"

namespace sluice {

void push_list(lua_State* lua, std::span<const Bytes> values) {
  lua_createtable(lua, static_cast<int>(values.size()), 0);
  int index = 0;
  for (const Bytes value : values) {
    lua_pushlstring(lua, value.data(), value.size());
    lua_rawseti(lua, -2, ++index);
  }
}

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
  // The function that failed. If that is a C function, its caller is what the author of the script
  // needs.
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
    // LuaJIT adds the place to every error but this one.
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
    // By raw sets: the script's table may have a metatable.
    lua_pushliteral(lua, "source");
    lua_pushstring(lua, info.source);
    lua_rawset(lua, -3);
    lua_pushliteral(lua, "line");
    lua_pushinteger(lua, info.currentline);
    lua_rawset(lua, -3);
  }
  return 1;
}

std::optional<Bytes> string_field(lua_State* lua, const char* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, -2);
  const char* value = lua_tostring(lua, -1);
  lua_pop(lua, 1);
  return value != nullptr ? std::optional<Bytes>(value) : std::nullopt;
}

std::string error_text(lua_State* lua, Bytes sha) {
  if (!lua_istable(lua, -1)) {
    const char* text = lua_tostring(lua, -1);
    return "ERR Error running script " + std::string(sha) + ", " +
           std::string(Bytes(text == nullptr ? "execution failure" : text).substr(0, 100));
  }
  std::string text(
      string_field(lua, "err").value_or("ERR The script raised a table without a field 'err'"));
  const auto source = string_field(lua, "source");
  if (!source) return text;
  lua_pushliteral(lua, "line");
  lua_rawget(lua, -2);
  const int line = static_cast<int>(lua_tointeger(lua, -1));
  lua_pop(lua, 1);
  text += " script: ";
  text += sha;
  text += ", on ";
  text += *source;
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

// Pushes the field `name` of the table on top if it has this type.
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

// Whether the table is short and all its keys are numbers, so that it has none of the named fields.
// Seven look-ups cost more than checking three keys.
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

// Writes one result of a script. Stops if the reply becomes too large, and if the script is killed.
class ResultWriter {
 public:
  ResultWriter(lua_State* lua, Reply& reply, int script_protocol, uint64_t room)
      : lua_(lua), reply_(reply), script_protocol_(script_protocol), room_(room) {}

  bool stopped() const { return stopped_; }

  // Reserves room for the encoding around `values` values. Returns false if it does not fit.
  bool take_values(size_t values) { return take(values * kAround); }

  // Writes and removes the value on top of the stack, for which room was reserved. After the writer
  // has stopped, the values on the stack are meaningless.
  void value() {
    if (++values_ % kValuesPerLook == 0) look();
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING: {
        size_t size = 0;
        const char* text = lua_tolstring(lua_, -1, &size);
        if (take(size)) reply_.bulk({text, size});
        break;
      }
      case LUA_TNUMBER:
        reply_.integer(to_integer(lua_tonumber(lua_, -1)));
        break;
      case LUA_TBOOLEAN:
        boolean(lua_toboolean(lua_, -1) != 0);
        break;
      case LUA_TTABLE:
        table();
        break;
      default:
        reply_.null();
    }
    if (!stopped_) lua_pop(lua_, 1);
  }

 private:
  // Type, length and line ends of a value.
  static constexpr size_t kAround = 16;
  static constexpr uint64_t kValuesPerLook = 100'000;
  static constexpr int kSlotsOfTable = 4;
  // A script that is compiled meanwhile uses the same stack.
  static constexpr int kSlotsOfLook = LUA_MINSTACK;

  void look() {
    if (!LuaMachine::of(lua_).keep_serving()) stopped_ = true;
  }

  bool take(size_t bytes) {
    if (stopped_ || bytes > room_) {
      stopped_ = true;
    } else {
      room_ -= bytes;
    }
    return !stopped_;
  }

  void boolean(bool value) {
    if (script_protocol_ == 3) {
      reply_.boolean(value);
    } else if (value) {
      reply_.integer(1);
    } else {
      reply_.null();
    }
  }

  void table() {
    // A table may contain itself; the limit of the stack bounds that.
    if (lua_checkstack(lua_, kSlotsOfTable + kSlotsOfLook) == 0) {
      reply_.error("ERR reached lua stack limit");
    } else if (has_only_numbered_keys(lua_) || !typed_table()) {
      array();
    }
  }

  // The number of values of the table on top of the stack: up to the first nil, or all fields. Room
  // for each is reserved while counting, which also bounds a table that contains itself.
  size_t take_items() {
    size_t count = 0;
    for (;; ++count) {
      lua_rawgeti(lua_, -1, static_cast<int>(count + 1));
      const bool end = lua_isnil(lua_, -1);
      lua_pop(lua_, 1);
      if (end || !take_values(1)) return count;
    }
  }
  size_t take_fields(size_t values_of_each) {
    size_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      if (!take_values(values_of_each)) return count;
      ++count;
    }
    return count;
  }

  void array() {
    const size_t count = take_items();
    if (stopped_) return;
    reply_.array(count);
    for (size_t i = 1; i <= count && !stopped_; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      value();
    }
  }

  void map() {
    const size_t count = take_fields(2);
    if (stopped_) return;
    reply_.map(count);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pushvalue(lua_, -2);
      value();
      if (stopped_) return;
      value();
      if (stopped_) return;
    }
  }

  void set() {
    const size_t count = take_fields(1);
    if (stopped_) return;
    reply_.set(count);
    lua_pushnil(lua_);
    while (lua_next(lua_, -2) != 0) {
      lua_pop(lua_, 1);
      lua_pushvalue(lua_, -1);
      value();
      if (stopped_) return;
    }
  }

  bool verbatim() {
    Bytes format;
    if (!push_field(lua_, "format", LUA_TSTRING)) return false;
    format = lua_tostring(lua_, -1);
    lua_pop(lua_, 1);
    if (!push_field(lua_, "string", LUA_TSTRING)) return false;
    size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    if (take(size)) reply_.verbatim(format, {text, size});
    lua_pop(lua_, 1);
    return true;
  }

  // Writes a table with one of the fields that name a type. Leaves the stack as it was.
  bool typed_table() {
    if (push_field(lua_, "err", LUA_TSTRING)) {
      const Bytes message = lua_tostring(lua_, -1);
      lua_insert(lua_, -2);  // the table on top, the message kept alive below it
      if (take(message.size())) {
        is_counted_error(lua_) ? reply_.repeat_error(message) : reply_.error(message);
      }
      lua_insert(lua_, -2);
    } else if (push_field(lua_, "ok", LUA_TSTRING)) {
      const Bytes text = lua_tostring(lua_, -1);
      if (take(text.size())) reply_.simple(without_line_ends(text));
    } else if (push_field(lua_, "double", LUA_TNUMBER)) {
      reply_.number(lua_tonumber(lua_, -1));
    } else if (push_field(lua_, "big_number", LUA_TSTRING)) {
      size_t size = 0;
      const char* digits = lua_tolstring(lua_, -1, &size);
      if (take(size)) reply_.big_number(without_line_ends({digits, size}));
    } else {
      if (push_field(lua_, "verbatim_string", LUA_TTABLE)) {
        const bool written = verbatim();
        lua_pop(lua_, 1);
        if (written) return true;
      }
      if (push_field(lua_, "map", LUA_TTABLE)) {
        map();
      } else if (push_field(lua_, "set", LUA_TTABLE)) {
        set();
      } else {
        return false;
      }
    }
    if (!stopped_) lua_pop(lua_, 1);
    return true;
  }

  lua_State* lua_;
  Reply& reply_;
  const int script_protocol_;
  uint64_t room_;
  uint64_t values_ = 0;
  bool stopped_ = false;
};

}  // namespace

bool reply_value(lua_State* lua, Reply& reply, int script_protocol, uint64_t room) {
  const int top = lua_gettop(lua);
  // A script cannot run another one, so this is a client's reply.
  ByteBuffer& out = static_cast<RespReply&>(reply).out();
  const size_t mark = out.size();
  ResultWriter writer(lua, reply, script_protocol, room);
  if (writer.take_values(1)) writer.value();
  if (!writer.stopped()) return true;
  lua_settop(lua, top);
  out.resize(mark);
  return false;
}

}  // namespace sluice
