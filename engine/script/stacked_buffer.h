// StackedBuffer: the output of a C function that is called from Lua and may call back into Lua, so
// that several may exist at a time.
//
// Short texts are inside the object; longer ones are in a userdata of the state, which
// script-memory-limit counts and which the collector frees after an error halfway. It takes one
// slot of the stack. There is no destructor: none runs when Lua raises an error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/base/bytes.h"
#include "engine/script/lua_headers.h"

namespace sluice {

class StackedBuffer {
 public:
  explicit StackedBuffer(lua_State* lua) : lua_(lua) {
    luaL_checkstack(lua, 2, "too many arguments");
    lua_pushnil(lua);
    slot_ = lua_gettop(lua);
  }
  StackedBuffer(const StackedBuffer&) = delete;
  StackedBuffer& operator=(const StackedBuffer&) = delete;

  void append(Bytes bytes) { std::memcpy(extend(bytes.size()), bytes.data(), bytes.size()); }
  void append_byte(unsigned char value) { *extend(1) = static_cast<char>(value); }

  // Room for `count` more bytes, to be written by the caller. May use one free slot of the stack.
  char* extend(size_t count) {
    if (count > capacity_ - size_) grow(size_ + count);
    char* const at = data_ + size_;
    size_ += count;
    return at;
  }

  size_t size() const { return size_; }
  // Pushes the bytes as a string.
  void push() const { lua_pushlstring(lua_, data_, size_); }

 private:
  void grow(size_t least) {
    const size_t wanted = std::max(least, 2 * capacity_);
    char* const larger = static_cast<char*>(lua_newuserdata(lua_, wanted));
    std::memcpy(larger, data_, size_);
    lua_replace(lua_, slot_);
    data_ = larger;
    capacity_ = wanted;
  }

  lua_State* lua_;
  size_t size_ = 0;
  size_t capacity_ = sizeof(inline_);
  int slot_ = 0;
  char inline_[512];
  char* data_ = inline_;
};

}  // namespace sluice
