// ScriptBuffer: the output of a C function that is called from Lua.
//
// The bytes live in the machine's one buffer, which script-memory-limit counts and which survives
// an error that is raised halfway. So a machine has at most one ScriptBuffer at a time: its user
// must not call back into the script.
#pragma once

#include <cstddef>
#include <cstring>

#include "engine/base/bytes.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"

namespace sluice {

class ScriptBuffer {
 public:
  // Raises an error if there is no room on the stack, or no memory. There is no destructor: none
  // runs when Lua raises an error.
  explicit ScriptBuffer(lua_State* lua)
      : lua_(lua), machine_(LuaMachine::of(lua)), memory_(machine_.memory()) {
    luaL_checkstack(lua, 2, "too many arguments");
    if (memory_.buffer().data == nullptr) memory_.grow_buffer(lua, 1);
  }

  void append(Bytes bytes) { std::memcpy(extend(bytes.size()), bytes.data(), bytes.size()); }
  void append_byte(unsigned value) { *extend(1) = static_cast<char>(value); }
  void append_zeros(size_t count) { std::memset(extend(count), 0, count); }

  // Room for `count` more bytes, to be written by the caller. Raises an error if there is no
  // memory.
  char* extend(size_t count) {
    if (count > memory_.buffer().capacity - size_) memory_.grow_buffer(lua_, size_ + count);
    char* const at = memory_.buffer().data + size_;
    size_ += count;
    return at;
  }

  // Counts the work since the last call, in values or a similar unit: a long piece of work checks
  // the clock now and then, as Lua's instructions do. Raises an error if the script was killed.
  void pay(size_t work) { machine_.pay(lua_, work); }

  size_t size() const { return size_; }
  // Pushes the bytes as a string, and ends the use of the buffer.
  void push() {
    if (!memory_.make_room(lua_, size_)) memory_.fit_buffer(lua_, size_);
    lua_pushlstring(lua_, memory_.buffer().data, size_);
    memory_.trim_buffer(lua_);
  }

 private:
  lua_State* lua_;
  LuaMachine& machine_;
  LuaMemory& memory_;
  size_t size_ = 0;
};

// Appends `size` bytes of `value`, at most eight, with the lowest byte first or last.
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
