// LuaMachine's memory: the limits of its state and its C functions, and when garbage is collected.
#include <algorithm>
#include <cstdlib>

#include "engine/base/check.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"

namespace sluice {

namespace {

// What a run may leave for Lua's own steps to collect.
constexpr uint64_t kCollectAboveBytes = 32U << 20;
constexpr size_t kSmallestBuffer = 256;
// A buffer up to this size is kept for the next use.
constexpr size_t kKeptBuffer = 64U << 10;

}  // namespace

void* LuaMachine::allocate(void* self, void* block, size_t old_size, size_t new_size) {
  auto& machine = *static_cast<LuaMachine*>(self);
  const uint64_t used = machine.used_bytes_.load(std::memory_order_relaxed) - old_size + new_size;
  if (new_size == 0) {
    std::free(block);
    machine.used_bytes_.store(used, std::memory_order_relaxed);
    return nullptr;
  }
  machine.note_allocation(old_size, new_size);
  if (new_size > old_size && used > machine.allowed_bytes_) {
    // The refusal that raise_memory_error() needs has happened.
    machine.allowed_bytes_ = machine.limit_bytes_;
    return nullptr;
  }
  void* result = std::realloc(block, new_size);
  if (result != nullptr) machine.used_bytes_.store(used, std::memory_order_relaxed);
  return result;
}

void LuaMachine::raise_memory_error(lua_State* lua) {
  // Only a refused allocation raises an error with Lua's status for it.
  allowed_bytes_ = 0;
  lua_newuserdata(lua, 1);
  CHECK(false);
}

// --- The buffer ---

void LuaMachine::grow_buffer(lua_State* lua, size_t wanted) {
  // The result will exist beside the buffer.
  if (!make_room(lua, 2 * wanted - buffer_.capacity)) {
    trim_buffer();
    raise_memory_error(lua);
  }
  size_t capacity = std::max({wanted, 2 * buffer_.capacity, kSmallestBuffer});
  if (!make_room(lua, capacity - buffer_.capacity)) {
    // Near the limit the buffer must not grow byte by byte.
    const uint64_t left = limit_bytes_ - std::min(memory_bytes(), limit_bytes_);
    capacity = std::max<size_t>(wanted, buffer_.capacity + left / 2);
  }
  void* const larger = allocate(this, buffer_.data, buffer_.capacity, capacity);
  if (larger == nullptr) {
    trim_buffer();
    raise_memory_error(lua);
  }
  buffer_ = {static_cast<char*>(larger), capacity};
}

void LuaMachine::fit_buffer(size_t size) {
  if (size == 0 || size == buffer_.capacity) return;
  void* const smaller = allocate(this, buffer_.data, buffer_.capacity, size);
  if (smaller != nullptr) buffer_ = {static_cast<char*>(smaller), size};
}

void LuaMachine::trim_buffer() {
  if (buffer_.capacity <= kKeptBuffer) return;
  allocate(this, buffer_.data, buffer_.capacity, 0);
  buffer_ = {};
}

// --- Garbage ---

void LuaMachine::collect(lua_State* lua) {
  lua_gc(lua, LUA_GCCOLLECT, 0);
  collected_bytes_ = memory_bytes();
}

bool LuaMachine::collect_for(lua_State* lua, uint64_t bytes) {
  // A complete collection costs time proportional to the limit at most, so that much must have been
  // allocated since the last one.
  constexpr uint64_t kPart = 8;
  if (bytes > limit_bytes_ || memory_bytes() < collected_bytes_ + limit_bytes_ / kPart) {
    return false;
  }
  collect(lua);
  return memory_bytes() + bytes <= limit_bytes_;
}

void LuaMachine::collect_after_run() {
  // Lua's own steps let the state grow to twice what it holds. Anything above that was left by this
  // run, and a complete collection costs about as much as that run did.
  give_up_scripts(limit_bytes_ / kCompiledPart);  // the limit may have been lowered
  const uint64_t held = std::min(std::max(collected_bytes_, compiled_.bytes()), limit_bytes_ / 2);
  const uint64_t much = std::min(2 * held + kCollectAboveBytes, (held + limit_bytes_) / 2);
  const uint64_t least = held + limit_bytes_ / 16;
  if (memory_bytes() <= std::max(much, least)) return;
  collect(lua_);
  if (kind_ == SandboxKind::kFunctions || memory_bytes() <= limit_bytes_ / 4) return;
  // The compiled scripts take more than was counted.
  give_up_scripts(0);
  collect(lua_);
}

void LuaMachine::look_after_work(lua_State* lua) {
  work_ = 0;
  look(lua);
}

}  // namespace sluice
