// cjson.encode for scripts: the output of Debian's library, built in a ScriptBuffer.
//
// The library's own buffer is not covered by script-memory-limit, has lengths of 32 bits, and ends
// the process when it cannot allocate. Its other functions are kept; this encoder shares their
// settings.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

#include "engine/base/check.h"
#include "engine/base/hex.h"
#include "engine/base/numbers.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/script_buffer.h"

namespace sluice {

namespace {

enum class InvalidNumbers : uint8_t { kRefused, kWritten, kNull };

// The settings of one table `cjson`, and the library's functions that are replaced in it. Lives in
// a userdata of the state.
struct JsonSettings {
  lua_CFunction sparse_array;
  lua_CFunction max_depth;
  lua_CFunction number_precision;
  lua_CFunction invalid_numbers;
  lua_CFunction make_new;
  lua_CFunction decode;
  int sparse_ratio = 2;
  int sparse_safe = 10;
  int deepest = 1000;
  int precision = 14;
  bool sparse_convert = false;
  InvalidNumbers invalid = InvalidNumbers::kRefused;
};

// The first upvalue of the functions here is the library's own settings, which its functions read;
// the second is these.
JsonSettings& settings_of(lua_State* lua) {
  return *static_cast<JsonSettings*>(lua_touserdata(lua, lua_upvalueindex(2)));
}

// --- Encoding ---

// The size of a character in the output, and the text of its escape, if it has one.
struct Escape {
  char text[7] = "";
  uint8_t size = 1;
};

constexpr std::array<Escape, 256> make_escapes() {
  std::array<Escape, 256> escapes{};
  const auto set_code = [&](unsigned c) {
    escapes[c] = {{'\\', 'u', '0', '0', kHexDigits[c >> 4], kHexDigits[c & 15], 0}, 6};
  };
  for (unsigned c = 0; c < 0x20; ++c) set_code(c);
  set_code(0x7F);
  const auto set_short = [&](unsigned char c, char letter) {
    escapes[c] = {{'\\', letter, 0, 0, 0, 0, 0}, 2};
  };
  set_short('\b', 'b');
  set_short('\t', 't');
  set_short('\n', 'n');
  set_short('\f', 'f');
  set_short('\r', 'r');
  set_short('"', '"');
  set_short('\\', '\\');
  set_short('/', '/');
  return escapes;
}
constexpr std::array<Escape, 256> kEscapes = make_escapes();

// Without destructor: Lua's errors pass through.
class JsonEncoder {
 public:
  JsonEncoder(lua_State* lua, const JsonSettings& settings)
      : lua_(lua), settings_(settings), buffer_(lua) {}

  // Writes the value on top of the stack.
  void value(int depth) {
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return string(-1);
      case LUA_TNUMBER:
        return number(-1);
      case LUA_TBOOLEAN:
        return buffer_.append(lua_toboolean(lua_, -1) != 0 ? "true" : "false");
      case LUA_TTABLE:
        return table(depth + 1);
      case LUA_TNIL:
        return buffer_.append("null");
      case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(lua_, -1) == nullptr) return buffer_.append("null");
        [[fallthrough]];
      default:
        refuse(-1, "type not supported");
    }
  }

  void finish() { buffer_.push(); }

 private:
  void refuse(int index, const char* reason) {
    luaL_error(lua_, "Cannot serialise %s: %s", luaL_typename(lua_, index), reason);
  }

  void string(int index) {
    size_t size = 0;
    const char* const text = lua_tolstring(lua_, index, &size);
    size_t written = 2;
    for (size_t i = 0; i < size; ++i) written += kEscapes[static_cast<unsigned char>(text[i])].size;
    buffer_.pay(size / 16);
    buffer_.append_byte('"');
    if (written == size + 2) {
      buffer_.append({text, size});
    } else {
      escaped({text, size}, buffer_.extend(written - 2));
    }
    buffer_.append_byte('"');
  }

  static void escaped(Bytes text, char* to) {
    for (const char c : text) {
      const Escape& escape = kEscapes[static_cast<unsigned char>(c)];
      if (escape.size == 1) {
        *to++ = c;
      } else {
        std::memcpy(to, escape.text, escape.size);
        to += escape.size;
      }
    }
  }

  void number(int index) {
    constexpr double kExact = 1e14;
    constexpr int kDigitsOfExact = 14;
    const double number = lua_tonumber(lua_, index);
    if (!std::isfinite(number) && settings_.invalid != InvalidNumbers::kWritten) {
      if (settings_.invalid == InvalidNumbers::kNull) return buffer_.append("null");
      refuse(index, "must not be NaN or Inf");
    }
    // "-nan" is never written.
    if (std::isnan(number)) return buffer_.append("nan");
    char text[40];
    if (settings_.precision == kDigitsOfExact && std::fabs(number) < kExact &&
        number == std::trunc(number) && !(number == 0 && std::signbit(number))) {
      return buffer_.append({text, format_i64(text, static_cast<int64_t>(number))});
    }
    const int size = std::snprintf(text, sizeof(text), "%.*g", settings_.precision, number);
    buffer_.append({text, static_cast<size_t>(size)});
  }

  void table(int depth) {
    // The size of a table's hidden part is unknown here, so each table counts as this much work.
    constexpr size_t kTableWork = 1000;
    // Slots for a key, a value, and the text of an error.
    if (depth > settings_.deepest || lua_checkstack(lua_, 3) == 0) {
      luaL_error(lua_, "Cannot serialise, excessive nesting (%d)", depth);
    }
    buffer_.pay(kTableWork);
    const int length = array_length();
    if (length > 0) {
      array(length, depth);
    } else {
      object(depth);
    }
  }

  void array(int length, int depth) {
    buffer_.append_byte('[');
    for (int i = 1; i <= length; ++i) {
      buffer_.pay(1);
      if (i != 1) buffer_.append_byte(',');
      lua_rawgeti(lua_, -1, i);
      value(depth);
      lua_pop(lua_, 1);
    }
    buffer_.append_byte(']');
  }

  void object(int depth) {
    buffer_.append_byte('{');
    bool first = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      buffer_.pay(1);
      if (!first) buffer_.append_byte(',');
      first = false;
      switch (lua_type(lua_, -2)) {
        case LUA_TNUMBER:
          buffer_.append_byte('"');
          number(-2);
          buffer_.append("\":");
          break;
        case LUA_TSTRING:
          string(-2);
          buffer_.append_byte(':');
          break;
        default:
          refuse(-2, "table key must be a number or string");
      }
      value(depth);
    }
    buffer_.append_byte('}');
  }

  // The highest index of the table on top of the stack. Not positive: it is an object.
  int array_length() {
    int highest = 0;
    int64_t items = 0;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      buffer_.pay(1);
      const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
      if (!(key >= 1) || key != std::floor(key)) {
        lua_pop(lua_, 2);
        return -1;
      }
      // An index that does not fit into an int becomes what the processor's conversion gives.
      if (key > highest) highest = key <= INT32_MAX ? static_cast<int>(key) : INT32_MIN;
      ++items;
    }
    if (settings_.sparse_ratio == 0 || highest <= items * settings_.sparse_ratio ||
        highest <= settings_.sparse_safe) {
      return highest;
    }
    if (!settings_.sparse_convert) refuse(-1, "excessively sparse array");
    return -1;
  }

  lua_State* lua_;
  const JsonSettings& settings_;
  ScriptBuffer buffer_;
};

int json_encode(lua_State* lua) {
  luaL_argcheck(lua, lua_gettop(lua) == 1, 1, "expected 1 argument");
  JsonEncoder encoder(lua, settings_of(lua));
  encoder.value(0);
  encoder.finish();
  return 1;
}

// --- Decoding ---

// The most bytes of Lua's memory for each character of the text: a table, the slot of a field or
// item while its table grows, half of a string's header.
constexpr std::array<uint8_t, 256> make_decoded_bytes() {
  std::array<uint8_t, 256> bytes{};
  bytes['['] = bytes['{'] = 128;
  bytes[':'] = 80;
  bytes[','] = 24;
  bytes['"'] = 24;
  return bytes;
}
constexpr std::array<uint8_t, 256> kDecodedBytes = make_decoded_bytes();

// If an allocation fails while the library decodes, the library leaks a buffer of the text's size.
// So a text that may not fit is refused before.
int json_decode(lua_State* lua) {
  constexpr uint64_t kMostOfOne = 128;
  constexpr uint64_t kStack = 256U << 10;
  if (lua_type(lua, 1) == LUA_TSTRING) {
    LuaMemory& memory = LuaMachine::of(lua).memory();
    size_t size = 0;
    const char* const text = lua_tolstring(lua, 1, &size);
    uint64_t needed = kStack + 2 * size;
    if (memory.bytes() + needed + kMostOfOne * size > memory.limit_bytes()) {
      for (size_t i = 0; i < size; ++i)
        needed += kDecodedBytes[static_cast<unsigned char>(text[i])];
      if (!memory.make_room(lua, needed)) memory.raise_error(lua);
    }
  }
  return settings_of(lua).decode(lua);
}

// --- Settings ---

// The library's function checks the arguments and pushes the resulting setting.

int json_sparse_array(lua_State* lua) {
  JsonSettings& settings = settings_of(lua);
  const int results = settings.sparse_array(lua);
  settings.sparse_convert = lua_toboolean(lua, -3) != 0;
  settings.sparse_ratio = static_cast<int>(lua_tointeger(lua, -2));
  settings.sparse_safe = static_cast<int>(lua_tointeger(lua, -1));
  return results;
}

int json_max_depth(lua_State* lua) {
  JsonSettings& settings = settings_of(lua);
  const int results = settings.max_depth(lua);
  settings.deepest = static_cast<int>(lua_tointeger(lua, -1));
  return results;
}

int json_number_precision(lua_State* lua) {
  JsonSettings& settings = settings_of(lua);
  const int results = settings.number_precision(lua);
  settings.precision = static_cast<int>(lua_tointeger(lua, -1));
  return results;
}

int json_invalid_numbers(lua_State* lua) {
  JsonSettings& settings = settings_of(lua);
  const int results = settings.invalid_numbers(lua);
  if (lua_type(lua, -1) == LUA_TSTRING) {
    settings.invalid = InvalidNumbers::kNull;
  } else {
    settings.invalid =
        lua_toboolean(lua, -1) != 0 ? InvalidNumbers::kWritten : InvalidNumbers::kRefused;
  }
  return results;
}

int json_new(lua_State* lua) {
  const int results = settings_of(lua).make_new(lua);
  replace_json_encoder(lua);
  return results;
}

// Replaces the library's function of this name in the table on top of the stack by `function`, with
// the settings at `index`. Returns the library's.
lua_CFunction replace(lua_State* lua, const char* name, lua_CFunction function, int index) {
  lua_getfield(lua, -1, name);
  const lua_CFunction original = lua_tocfunction(lua, -1);
  CHECK(original != nullptr && lua_getupvalue(lua, -1, 1) != nullptr);
  lua_pushvalue(lua, index);
  lua_pushcclosure(lua, function, 2);
  lua_setfield(lua, -3, name);
  lua_pop(lua, 1);
  return original;
}

}  // namespace

void replace_json_encoder(lua_State* lua) {
  auto* const settings = new (lua_newuserdata(lua, sizeof(JsonSettings))) JsonSettings();
  lua_insert(lua, -2);
  const int index = lua_gettop(lua) - 1;
  replace(lua, "encode", json_encode, index);
  settings->decode = replace(lua, "decode", json_decode, index);
  settings->sparse_array = replace(lua, "encode_sparse_array", json_sparse_array, index);
  settings->max_depth = replace(lua, "encode_max_depth", json_max_depth, index);
  settings->number_precision =
      replace(lua, "encode_number_precision", json_number_precision, index);
  settings->invalid_numbers = replace(lua, "encode_invalid_numbers", json_invalid_numbers, index);
  settings->make_new = replace(lua, "new", json_new, index);
  lua_remove(lua, -2);
}

}  // namespace sluice
