#include "engine/script/lua_memory.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/script/lua_headers.h"

namespace sluice {

namespace {

constexpr size_t kSmallestBuffer = 256;
// A buffer up to this size is kept for the next use.
constexpr size_t kKeptBuffer = 64U << 10;

// By the state's own allocator, so that the buffer counts as what the script has requested.
char* reallocate(lua_State* lua, const LuaMemory::Buffer& buffer, size_t capacity) {
  void* self = nullptr;
  const lua_Alloc allocate = lua_getallocf(lua, &self);
  return static_cast<char*>(allocate(self, buffer.data, buffer.capacity, capacity));
}

}  // namespace

void LuaMemory::raise_error(lua_State* lua) {
  // Only a refused allocation raises an error with Lua's status for it.
  allowed_bytes_ = 0;
  lua_newuserdata(lua, 1);
  CHECK(false);
}

// --- Garbage ---

void LuaMemory::collect(lua_State* lua) {
  lua_gc(lua, LUA_GCCOLLECT, 0);
  collected_bytes_ = bytes();
}

bool LuaMemory::collect_for(lua_State* lua, uint64_t more) {
  // A complete collection costs time proportional to the limit at most, so that much must have been
  // allocated since the last one.
  constexpr uint64_t kPart = 8;
  if (more > limit_bytes_ || bytes() < collected_bytes_ + limit_bytes_ / kPart) return false;
  collect(lua);
  return bytes() + more <= limit_bytes_;
}

// --- The buffer ---

void LuaMemory::grow_buffer(lua_State* lua, size_t wanted) {
  // The result will exist beside the buffer.
  if (!make_room(lua, 2 * wanted - buffer_.capacity)) {
    trim_buffer(lua);
    raise_error(lua);
  }
  size_t capacity = std::max({wanted, 2 * buffer_.capacity, kSmallestBuffer});
  if (!make_room(lua, capacity - buffer_.capacity)) {
    // Near the limit the buffer must not grow byte by byte.
    const uint64_t left = limit_bytes_ - std::min(bytes(), limit_bytes_);
    capacity = std::max<size_t>(wanted, buffer_.capacity + left / 2);
  }
  char* const larger = reallocate(lua, buffer_, capacity);
  if (larger == nullptr) {
    trim_buffer(lua);
    raise_error(lua);
  }
  buffer_ = {larger, capacity};
}

void LuaMemory::fit_buffer(lua_State* lua, size_t size) {
  if (size == 0 || size == buffer_.capacity) return;
  char* const smaller = reallocate(lua, buffer_, size);
  if (smaller != nullptr) buffer_ = {smaller, size};
}

void LuaMemory::trim_buffer(lua_State* lua) {
  if (buffer_.capacity <= kKeptBuffer) return;
  reallocate(lua, buffer_, 0);
  buffer_ = {};
}

}  // namespace sluice
