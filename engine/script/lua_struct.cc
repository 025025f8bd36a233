// The library `struct`: C records for scripts, by a format.
//
// `<` and `>` choose the byte order, `!n` the alignment; `x` is a zero byte; b B h H l L T i I
// (with a size after i and I) are integers, lower case if signed; f d are numbers; s is a text that
// ends with a zero byte; cN is a text of N bytes, c0 one of a known size (all of it when packing,
// the number before it when unpacking).
#include <algorithm>
#include <bit>

#include "engine/base/characters.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_result.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/script_buffer.h"

namespace sluice {

namespace {

constexpr size_t kMaxIntegerSize = 32;
constexpr int kDefaultAlignment = 8;

// Converts a number as the processor does, even if it does not fit into 64 unsigned bits, as in
// Redis.
uint64_t to_unsigned(double number) {
  constexpr double kHalf = 9223372036854775808.0;
  if (!(number >= kHalf)) return static_cast<uint64_t>(to_integer(number));
  return static_cast<uint64_t>(to_integer(number - kHalf)) ^ (uint64_t{1} << 63);
}

// Walks through a format, up to its first NUL.
class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), at_(text) {}

  // One option: its letter, its size (0: it depends on the data, or the option has none), and the
  // padding that aligns it in a record of `position` bytes.
  struct Option {
    char letter;
    size_t size;
    size_t padding;
  };

  bool done() const { return *at_ == '\0'; }

  Option next(size_t position) {
    const char letter = *at_++;
    const size_t size = size_of(letter);
    return {letter, size, padding(letter, size, position)};
  }

  // Handles a letter that is not a value: byte order, alignment, blank. Raises an error for others.
  void control(char letter) {
    switch (letter) {
      case ' ':
        return;
      case '<':
      case '>':
        lowest_first_ = letter == '<';
        return;
      case '!': {
        const int alignment = number(kDefaultAlignment);
        if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
          luaL_error(lua_, "alignment %d is not a power of 2", alignment);
        }
        alignment_ = static_cast<size_t>(alignment);
        return;
      }
      default:
        luaL_argerror(lua_, 1, lua_pushfstring(lua_, "invalid format option '%c'", letter));
    }
  }

  bool lowest_first() const { return lowest_first_; }

 private:
  // The number at this place, or `otherwise`.
  int number(int otherwise) {
    if (!is_digit(*at_)) return otherwise;
    int64_t result = 0;
    while (is_digit(*at_)) {
      result = 10 * result + (*at_++ - '0');
      if (result > INT32_MAX) luaL_error(lua_, "integral size overflow");
    }
    return static_cast<int>(result);
  }

  size_t size_of(char letter) {
    switch (letter) {
      case 'b':
      case 'B':
      case 'x':
        return 1;
      case 'h':
      case 'H':
        return 2;
      case 'f':
        return 4;
      case 'l':
      case 'L':
      case 'T':
      case 'd':
        return 8;
      case 'c':
        return static_cast<size_t>(number(1));
      case 'i':
      case 'I': {
        const int size = number(4);
        if (static_cast<size_t>(size) > kMaxIntegerSize) {
          luaL_error(lua_, "integral size %d is larger than limit of %d", size,
                     static_cast<int>(kMaxIntegerSize));
        }
        return static_cast<size_t>(size);
      }
      default:
        return 0;
    }
  }

  // Sizes that are not powers of two are padded by the same arithmetic, as in Redis.
  size_t padding(char letter, size_t size, size_t position) const {
    if (size == 0 || letter == 'c') return 0;
    const size_t alignment = std::min(size, alignment_);
    if (alignment <= 1) return 0;
    return (alignment - (position & (alignment - 1))) & (alignment - 1);
  }

  lua_State* lua_;
  const char* at_;
  size_t alignment_ = 1;
  bool lowest_first_ = true;
};

// --- Packing ---

void pack_float(ScriptBuffer& buffer, double number, size_t size, bool lowest_first) {
  const uint64_t bits = size == sizeof(float) ? std::bit_cast<uint32_t>(static_cast<float>(number))
                                              : std::bit_cast<uint64_t>(number);
  append_integer(buffer, bits, size, lowest_first);
}

// Packs the argument `index`. Returns false if the letter takes no argument.
bool pack_value(lua_State* lua, ScriptBuffer& buffer, const Format::Option& option, int index,
                bool lowest_first) {
  switch (option.letter) {
    case 'b':
    case 'B':
    case 'h':
    case 'H':
    case 'l':
    case 'L':
    case 'T':
    case 'i':
    case 'I': {
      const double number = luaL_checknumber(lua, index);
      const uint64_t bits =
          number < 0 ? static_cast<uint64_t>(to_integer(number)) : to_unsigned(number);
      append_integer(buffer, bits, option.size, lowest_first);
      return true;
    }
    case 'f':
    case 'd':
      pack_float(buffer, luaL_checknumber(lua, index), option.size, lowest_first);
      return true;
    case 'c':
    case 's': {
      size_t size = 0;
      const char* const text = luaL_checklstring(lua, index, &size);
      const size_t wanted = option.size == 0 ? size : option.size;
      luaL_argcheck(lua, size >= wanted, index + 1, "string too short");
      buffer.append({text, wanted});
      if (option.letter == 's') buffer.append_byte(0);
      return true;
    }
    default:
      return false;
  }
}

int struct_pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  // A missing argument is read as this nil and reported as one.
  lua_pushnil(lua);
  ScriptBuffer buffer(lua);
  int index = 2;
  while (!format.done()) {
    buffer.pay(1);
    const Format::Option option = format.next(buffer.size());
    buffer.append_zeros(option.padding);
    if (option.letter == 'x') {
      buffer.append_byte(0);
    } else if (pack_value(lua, buffer, option, index, format.lowest_first())) {
      ++index;
    } else {
      format.control(option.letter);
    }
  }
  buffer.push();
  return 1;
}

// --- Unpacking ---

// Pushes an integer. Sizes above eight bytes keep the lowest ones; the sign bit is then where the
// processor's shift puts it, as in Redis.
void push_integer(lua_State* lua, Bytes bytes, bool lowest_first, bool has_sign) {
  uint64_t value = read_integer(bytes, lowest_first);
  if (!has_sign) return lua_pushnumber(lua, static_cast<double>(value));
  const uint64_t sign = ~uint64_t{0} << ((8 * bytes.size() - 1) & 63);
  if ((value & sign) != 0) value |= sign;
  lua_pushnumber(lua, static_cast<double>(static_cast<int64_t>(value)));
}

void push_float(lua_State* lua, Bytes bytes, bool lowest_first) {
  const uint64_t bits = read_integer(bytes, lowest_first);
  lua_pushnumber(lua, bytes.size() == sizeof(float)
                          ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                          : std::bit_cast<double>(bits));
}

constexpr const char* kDataTooShort = "data string too short";

// Takes the number that was unpacked before a `c0`, which is its size, off the stack.
size_t take_previous_size(lua_State* lua, int& results) {
  if (results == 0 || lua_isnumber(lua, -1) == 0) {
    luaL_error(lua, "format 'c0' needs a previous size");
  }
  const uint64_t size = to_unsigned(lua_tonumber(lua, -1));
  lua_pop(lua, 1);
  --results;
  return size;
}

// Pushes one value of `data` (the whole record) at `position`. Returns its size; `results` counts
// the pushed values.
size_t unpack_value(lua_State* lua, Format& format, const Format::Option& option, Bytes data,
                    size_t position, int& results) {
  const Bytes bytes = data.substr(position, option.size);
  switch (option.letter) {
    case 'b':
    case 'h':
    case 'l':
    case 'i':
      push_integer(lua, bytes, format.lowest_first(), true);
      break;
    case 'B':
    case 'H':
    case 'L':
    case 'T':
    case 'I':
      push_integer(lua, bytes, format.lowest_first(), false);
      break;
    case 'f':
    case 'd':
      push_float(lua, bytes, format.lowest_first());
      break;
    case 'x':
      return option.size;
    case 'c': {
      const size_t size = option.size == 0 ? take_previous_size(lua, results) : option.size;
      luaL_argcheck(lua, size <= data.size() - position, 2, kDataTooShort);
      lua_pushlstring(lua, data.data() + position, size);
      ++results;
      return size;
    }
    case 's': {
      const size_t end = data.find('\0', position);
      if (end == Bytes::npos) luaL_error(lua, "unfinished string in data");
      lua_pushlstring(lua, data.data() + position, end - position);
      ++results;
      return end - position + 1;
    }
    default:
      format.control(option.letter);
      return 0;
  }
  ++results;
  return option.size;
}

int struct_unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, 2, &size);
  auto position = static_cast<size_t>(luaL_optinteger(lua, 3, 1));
  luaL_argcheck(lua, position != 0, 3, "offset must be 1 or greater");
  --position;
  lua_settop(lua, 2);
  int results = 0;
  while (!format.done()) {
    const Format::Option option = format.next(position);
    position += option.padding;
    luaL_argcheck(lua, option.size <= size && position <= size - option.size, 2, kDataTooShort);
    luaL_checkstack(lua, 2, "too many results");
    position += unpack_value(lua, format, option, {text, size}, position, results);
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(position + 1));
  return results + 1;
}

int struct_size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t position = 0;
  while (!format.done()) {
    const Format::Option option = format.next(position);
    if (option.letter == 's') {
      return luaL_argerror(lua, 1, "option 's' has no fixed size");
    }
    if (option.letter == 'c' && option.size == 0) {
      return luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    }
    // Letters without a meaning are ignored here.
    if (!is_letter_or_digit(option.letter)) format.control(option.letter);
    position += option.padding + option.size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(position));
  return 1;
}

}  // namespace

void push_struct_table(lua_State* lua) {
  lua_newtable(lua);
  const luaL_Reg functions[] = {
      {"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}};
  for (const luaL_Reg& row : functions) {
    lua_pushcfunction(lua, row.func);
    lua_setfield(lua, -2, row.name);
  }
}

}  // namespace sluice
