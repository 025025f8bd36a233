// ScriptBuffer: bytes that a C function called from Lua puts together.
//
// They live in a userdata of the state, so that script-memory-limit counts them and an error that
// is raised halfway leaves nothing behind. It takes one slot of the stack for itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/base/bytes.h"
#include "engine/script/lua_headers.h"

namespace sluice {

class ScriptBuffer {
 public:
  // Raises when there is no room on the stack or no memory. No destructor: nothing runs where Lua
  // raises.
  explicit ScriptBuffer(lua_State* lua) : lua_(lua) {
    luaL_checkstack(lua, 2, "too many arguments");
    data_ = static_cast<char*>(lua_newuserdata(lua, capacity_));
    slot_ = lua_gettop(lua);
  }

  void append(Bytes bytes) { std::memcpy(grow(bytes.size()), bytes.data(), bytes.size()); }
  void append_byte(unsigned value) { *grow(1) = static_cast<char>(value); }
  void append_zeros(size_t count) { std::memset(grow(count), 0, count); }

  size_t size() const { return size_; }
  // Pushes the bytes as a string.
  void push() const { lua_pushlstring(lua_, data_, size_); }

 private:
  // `count` more bytes, to be written by the caller. One free slot of the stack is used for it.
  char* grow(size_t count) {
    if (count > capacity_ - size_) {
      const size_t wanted = std::max(size_ + count, 2 * capacity_);
      char* const larger = static_cast<char*>(lua_newuserdata(lua_, wanted));
      std::memcpy(larger, data_, size_);
      lua_replace(lua_, slot_);
      data_ = larger;
      capacity_ = wanted;
    }
    char* const at = data_ + size_;
    size_ += count;
    return at;
  }

  lua_State* lua_;
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 256;
  int slot_ = 0;
};

// `size` bytes of `value`, at most eight, the lowest first or last.
inline void append_integer(ScriptBuffer& buffer, uint64_t value, size_t size, bool lowest_first) {
  for (size_t i = 0; i < size; ++i) {
    const size_t byte = lowest_first ? i : size - 1 - i;
    buffer.append_byte(byte < sizeof(value) ? (value >> (8 * byte)) & 0xFF : 0);
  }
}

// The lowest eight of `bytes` as a number.
inline uint64_t read_integer(Bytes bytes, bool lowest_first) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t at = lowest_first ? bytes.size() - 1 - i : i;
    value = value << 8 | static_cast<unsigned char>(bytes[at]);
  }
  return value;
}

}  // namespace sluice
