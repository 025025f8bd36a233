// The library `cmsgpack`: MessagePack for scripts.
//
// It writes and reads what Redis's library does: the old MessagePack with strings only (no binary
// and no extension types), whole numbers as the shortest integer, other numbers as a float if that
// is exact.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/script/lua_headers.h"
#include "engine/script/lua_result.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/script_buffer.h"

namespace sluice {

namespace {

// Tables at deeper levels are packed as nil.
constexpr int kMaxNesting = 16;

// The codes of MessagePack. The first kinds include their number or length.
enum Code : unsigned {
  kFixedMap = 0x80,
  kFixedArray = 0x90,
  kFixedString = 0xA0,
  kNil = 0xC0,
  kFalse = 0xC2,
  kTrue = 0xC3,
  kFloat32 = 0xCA,
  kFloat64 = 0xCB,
  kUnsigned8 = 0xCC,
  kUnsigned16 = 0xCD,
  kUnsigned32 = 0xCE,
  kUnsigned64 = 0xCF,
  kSigned8 = 0xD0,
  kSigned16 = 0xD1,
  kSigned32 = 0xD2,
  kSigned64 = 0xD3,
  kString8 = 0xD9,
  kString16 = 0xDA,
  kString32 = 0xDB,
  kArray16 = 0xDC,
  kArray32 = 0xDD,
  kMap16 = 0xDE,
  kMap32 = 0xDF,
  kNegative = 0xE0,
};

// --- Packing ---

void append_coded(ScriptBuffer& buffer, Code code, uint64_t value, size_t size) {
  buffer.append_byte(code);
  append_integer(buffer, value, size, false);
}

void pack_integer(ScriptBuffer& buffer, int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= 0) {
    if (value <= 0x7F) return buffer.append_byte(static_cast<unsigned>(value));
    if (value <= 0xFF) return append_coded(buffer, kUnsigned8, bits, 1);
    if (value <= 0xFFFF) return append_coded(buffer, kUnsigned16, bits, 2);
    if (value <= 0xFFFFFFFF) return append_coded(buffer, kUnsigned32, bits, 4);
    return append_coded(buffer, kUnsigned64, bits, 8);
  }
  if (value >= -32) return buffer.append_byte(bits & 0xFF);
  if (value >= INT8_MIN) return append_coded(buffer, kSigned8, bits, 1);
  if (value >= INT16_MIN) return append_coded(buffer, kSigned16, bits, 2);
  if (value >= INT32_MIN) return append_coded(buffer, kSigned32, bits, 4);
  append_coded(buffer, kSigned64, bits, 8);
}

void pack_number(ScriptBuffer& buffer, double number) {
  const int64_t whole = to_integer(number);
  if (static_cast<double>(whole) == number) return pack_integer(buffer, whole);
  const auto shorter = static_cast<float>(number);
  if (static_cast<double>(shorter) == number) {
    append_coded(buffer, kFloat32, std::bit_cast<uint32_t>(shorter), 4);
  } else {
    append_coded(buffer, kFloat64, std::bit_cast<uint64_t>(number), 8);
  }
}

// Appends the head of a value with a length: inside of `fixed` below `fixed_limit`, else after the
// code for 16 or 32 bits.
void pack_length(ScriptBuffer& buffer, size_t length, Code fixed, size_t fixed_limit, Code code16) {
  if (length < fixed_limit) return buffer.append_byte(fixed | static_cast<unsigned>(length));
  if (length <= 0xFFFF) return append_coded(buffer, code16, length, 2);
  append_coded(buffer, static_cast<Code>(code16 + 1), length, 4);
}

void pack_string(ScriptBuffer& buffer, Bytes text) {
  constexpr size_t kFixedLimit = 32;
  if (text.size() >= kFixedLimit && text.size() <= 0xFF) {
    append_coded(buffer, kString8, text.size(), 1);
  } else {
    pack_length(buffer, text.size(), kFixedString, kFixedLimit, kString16);
  }
  buffer.append(text);
}

// Whether the table on top of the stack is an array, with the keys 1 to `count` in any order.
// Otherwise it is a map.
bool is_array(lua_State* lua, ScriptBuffer& buffer, size_t& count) {
  bool numbered = true;
  double highest = 0;
  count = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    buffer.pay(1);
    ++count;
    if (!numbered) continue;
    const double key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
    numbered = key > 0 && key <= INT32_MAX && key == std::trunc(key);
    highest = std::max(highest, key);
  }
  return numbered && highest == static_cast<double>(count);
}

void pack_top(lua_State* lua, ScriptBuffer& buffer, int level);

void pack_table(lua_State* lua, ScriptBuffer& buffer, int level) {
  constexpr size_t kFixedLimit = 16;
  // The size of a table's hidden part is unknown here, so each table counts as this much work.
  constexpr size_t kTableWork = 1000;
  buffer.pay(kTableWork);
  if (is_protected(lua, lua_gettop(lua))) unprotect(lua, lua_gettop(lua));
  size_t count = 0;
  if (is_array(lua, buffer, count)) {
    pack_length(buffer, count, kFixedArray, kFixedLimit, kArray16);
    for (size_t i = 1; i <= count; ++i) {
      lua_rawgeti(lua, -1, static_cast<int>(i));
      pack_top(lua, buffer, level + 1);
    }
    return;
  }
  pack_length(buffer, count, kFixedMap, kFixedLimit, kMap16);
  lua_pushnil(lua);
  while (lua_next(lua, -2) != 0) {
    lua_pushvalue(lua, -2);
    pack_top(lua, buffer, level + 1);
    pack_top(lua, buffer, level + 1);
  }
}

// Packs the value on top of the stack and removes it.
void pack_top(lua_State* lua, ScriptBuffer& buffer, int level) {
  // Slots for a table, a key, a value, and a buffer that grows.
  luaL_checkstack(lua, 8, "in function mp_encode_lua_type");
  buffer.pay(1);
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      size_t size = 0;
      const char* const text = lua_tolstring(lua, -1, &size);
      pack_string(buffer, {text, size});
      break;
    }
    case LUA_TBOOLEAN:
      buffer.append_byte(lua_toboolean(lua, -1) != 0 ? kTrue : kFalse);
      break;
    case LUA_TNUMBER:
      pack_number(buffer, lua_tonumber(lua, -1));
      break;
    case LUA_TTABLE:
      if (level < kMaxNesting) {
        pack_table(lua, buffer, level);
        break;
      }
      [[fallthrough]];
    default:
      buffer.append_byte(kNil);
  }
  lua_pop(lua, 1);
}

int msgpack_pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  if (lua_checkstack(lua, count) == 0) {
    return luaL_argerror(lua, 0, "Too many arguments for MessagePack pack.");
  }
  ScriptBuffer buffer(lua);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    pack_top(lua, buffer, 0);
  }
  buffer.push();
  return 1;
}

// --- Unpacking ---

class Unpacker {
 public:
  enum class Failure { kNone, kMissingBytes, kBadFormat };

  Unpacker(lua_State* lua, Bytes input) : lua_(lua), input_(input) {}

  size_t left() const { return input_.size(); }
  Failure failure() const { return failure_; }

  // Pushes the next value. Returns false with the reason in `failure`; the values on the stack are
  // then meaningless. Recursion is bounded by the stack, at eight thousand values.
  bool value() {
    luaL_checkstack(lua_, 1,
                    "too many return values at once; use unpack_one or unpack_limit instead.");
    Bytes first;
    if (!take(1, first)) return false;
    const auto code = static_cast<unsigned char>(first[0]);
    if (code < kFixedMap || code >= kNegative) return integer(static_cast<signed char>(code));
    if (code < kFixedArray) return map(code & 0x0F);
    if (code < kFixedString) return array(code & 0x0F);
    if (code < kNil) return string(code & 0x1F);
    return coded(code);
  }

 private:
  bool fail(Failure failure) {
    failure_ = failure;
    return false;
  }

  bool take(size_t size, Bytes& taken) {
    if (size > input_.size()) return fail(Failure::kMissingBytes);
    taken = input_.substr(0, size);
    input_.remove_prefix(size);
    return true;
  }

  bool take_number(size_t size, uint64_t& number) {
    Bytes taken;
    if (!take(size, taken)) return false;
    number = read_integer(taken, false);
    return true;
  }

  bool integer(int64_t number) {
    lua_pushnumber(lua_, static_cast<double>(number));
    return true;
  }

  // Reads `bits` as a signed integer in two's complement.
  bool signed_integer(uint64_t bits, size_t size) {
    const size_t unused = 64 - 8 * size;
    return integer(static_cast<int64_t>(bits << unused) >> unused);
  }

  bool floating(double number) {
    lua_pushnumber(lua_, number);
    return true;
  }

  bool string(size_t size) {
    Bytes text;
    if (!take(size, text)) return false;
    lua_pushlstring(lua_, text.data(), text.size());
    return true;
  }

  bool array(size_t count) {
    // A wrong length must not cause a large allocation.
    constexpr size_t kMostReserved = 256;
    lua_createtable(lua_, static_cast<int>(std::min({count, left(), kMostReserved})), 0);
    luaL_checkstack(lua_, 1, "in function mp_decode_to_lua_array");
    for (size_t i = 1; i <= count; ++i) {
      // The index takes a slot, so that the stack ends at the same depth as in Redis.
      lua_pushnumber(lua_, static_cast<double>(i));
      if (!value()) return false;
      lua_rawset(lua_, -3);
    }
    return true;
  }

  bool map(size_t count) {
    lua_newtable(lua_);
    for (size_t i = 0; i < count; ++i) {
      if (!value() || !value()) return false;
      if (lua_isnil(lua_, -2)) {
        lua_pushliteral(lua_, "table index is nil");
        lua_error(lua_);
      }
      if (lua_type(lua_, -2) == LUA_TNUMBER && std::isnan(lua_tonumber(lua_, -2))) {
        lua_pushliteral(lua_, "table index is NaN");
        lua_error(lua_);
      }
      lua_rawset(lua_, -3);
    }
    return true;
  }

  // Values with a code of their own.
  bool coded(unsigned code) {
    switch (code) {
      case kNil:
        lua_pushnil(lua_);
        return true;
      case kFalse:
      case kTrue:
        lua_pushboolean(lua_, code == kTrue ? 1 : 0);
        return true;
      default:
        break;
    }
    const size_t size = number_size(code);
    if (size == 0) return fail(Failure::kBadFormat);
    uint64_t number = 0;
    if (!take_number(size, number)) return false;
    if (code == kFloat32) return floating(std::bit_cast<float>(static_cast<uint32_t>(number)));
    if (code == kFloat64) return floating(std::bit_cast<double>(number));
    if (code >= kMap16) return map(number);
    if (code >= kArray16) return array(number);
    if (code >= kString8) return string(number);
    if (code >= kSigned8) return signed_integer(number, size);
    // The largest ones become negative, as in Redis.
    return integer(static_cast<int64_t>(number));
  }

  // The bytes of a number or a length after the code; 0 if there is no such code.
  static size_t number_size(unsigned code) {
    switch (code) {
      case kUnsigned8:
      case kSigned8:
      case kString8:
        return 1;
      case kUnsigned16:
      case kSigned16:
      case kString16:
      case kArray16:
      case kMap16:
        return 2;
      case kFloat32:
      case kUnsigned32:
      case kSigned32:
      case kString32:
      case kArray32:
      case kMap32:
        return 4;
      case kFloat64:
      case kUnsigned64:
      case kSigned64:
        return 8;
      default:
        return 0;
    }
  }

  lua_State* lua_;
  Bytes input_;
  Failure failure_ = Failure::kNone;
};

// Unpacks `limit` values of the text at index 1 from `offset` on. A limit of 0 means all, without
// returning where they end.
int unpack_some(lua_State* lua, int64_t limit, int64_t offset) {
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 1, &size);
  if (offset < 0 || limit < 0) {
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  if (static_cast<uint64_t>(offset) > size) {
    return luaL_error(lua, "Start offset %d greater than input length %d.",
                      static_cast<int>(offset), static_cast<int>(size));
  }
  const bool all = limit == 0 && offset == 0;
  Unpacker unpacker(lua, Bytes(text, size).substr(static_cast<size_t>(offset)));
  int count = 0;
  while (unpacker.left() != 0 && (all || count < limit)) {
    if (!unpacker.value()) {
      return luaL_error(lua, "%s",
                        unpacker.failure() == Unpacker::Failure::kMissingBytes
                            ? "Missing bytes in input."
                            : "Bad data format in input.");
    }
    ++count;
  }
  if (all) return count;
  luaL_checkstack(lua, 1, "in function mp_unpack_full");
  const size_t end = size - unpacker.left();
  lua_pushinteger(lua, unpacker.left() == 0 ? -1 : static_cast<lua_Integer>(end));
  lua_insert(lua, 2);
  return count + 1;
}

int msgpack_unpack(lua_State* lua) { return unpack_some(lua, 0, 0); }

int msgpack_unpack_one(lua_State* lua) {
  const int64_t offset = luaL_optinteger(lua, 2, 0);
  lua_settop(lua, 1);
  return unpack_some(lua, 1, offset);
}

int msgpack_unpack_limit(lua_State* lua) {
  const int64_t limit = luaL_checkinteger(lua, 2);
  const int64_t offset = luaL_optinteger(lua, 3, 0);
  lua_settop(lua, 1);
  return unpack_some(lua, limit, offset);
}

}  // namespace

void push_msgpack_table(lua_State* lua) {
  lua_newtable(lua);
  const luaL_Reg functions[] = {{"pack", msgpack_pack},
                                {"unpack", msgpack_unpack},
                                {"unpack_one", msgpack_unpack_one},
                                {"unpack_limit", msgpack_unpack_limit}};
  for (const luaL_Reg& row : functions) {
    lua_pushcfunction(lua, row.func);
    lua_setfield(lua, -2, row.name);
  }
  // Scripts may read the library's name and version; these are those of the library in Redis.
  const char* const texts[][2] = {{"_NAME", "cmsgpack"},
                                  {"_VERSION", "lua-cmsgpack 0.4.0"},
                                  {"_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"},
                                  {"_DESCRIPTION", "MessagePack C implementation for Lua"}};
  for (const auto& [name, text] : texts) {
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, name);
  }
}

}  // namespace sluice
