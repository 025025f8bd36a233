// LuaMemory: the memory of one Lua state and of the C functions that it calls: what is in use, the
// limit of the running script, complete collections of garbage, and the buffer of ScriptBuffer.
//
// The owner's lua_Alloc calls allocate(). Above the limit that refuses, which raises "not enough
// memory" in the script. Only the machine's thread uses it, except for bytes().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

struct lua_State;

namespace sluice {

class LuaMemory {
 public:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  LuaMemory() = default;
  ~LuaMemory() { std::free(buffer_.data); }
  LuaMemory(const LuaMemory&) = delete;
  LuaMemory& operator=(const LuaMemory&) = delete;

  void* allocate(void* block, size_t old_size, size_t new_size) {
    const uint64_t used = bytes() - old_size + new_size;
    if (new_size == 0) {
      std::free(block);
      used_bytes_.store(used, std::memory_order_relaxed);
      return nullptr;
    }
    if (new_size > old_size && used > allowed_bytes_) {
      // The refusal that raise_error() needs has happened.
      allowed_bytes_ = limit_bytes_;
      return nullptr;
    }
    void* result = std::realloc(block, new_size);
    if (result != nullptr) used_bytes_.store(used, std::memory_order_relaxed);
    return result;
  }
  // Thread-safe.
  uint64_t bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

  // The limit of the script that runs.
  uint64_t limit_bytes() const { return limit_bytes_; }
  void set_limit_bytes(uint64_t bytes) { limit_bytes_ = bytes; }
  // Sets the limit of the allocator: the script's limit while Lua runs, kUnlimited while a command
  // does. Returns the one before.
  uint64_t allow(uint64_t bytes) { return std::exchange(allowed_bytes_, bytes); }
  // Raises the error of an allocation above the limit.
  void raise_error(lua_State* lua);

  // Whether this many more bytes fit into the limit, if necessary after collecting garbage.
  bool make_room(lua_State* lua, uint64_t more) {
    return bytes() + more <= limit_bytes_ || collect_for(lua, more);
  }
  bool collect_for(lua_State* lua, uint64_t more);
  void collect(lua_State* lua);
  // A new state has begun.
  void begin_state() { collected_bytes_ = bytes(); }
  // The memory after the last complete collection.
  uint64_t collected_bytes() const { return collected_bytes_; }

  // The bytes of a ScriptBuffer.
  struct Buffer {
    char* data = nullptr;
    size_t capacity = 0;
  };
  const Buffer& buffer() const { return buffer_; }
  // Raises an error if there is no memory.
  void grow_buffer(lua_State* lua, size_t wanted);
  // Frees the buffer's memory after this size.
  void fit_buffer(lua_State* lua, size_t size);
  // Frees a large buffer.
  void trim_buffer(lua_State* lua);

 private:
  std::atomic<uint64_t> used_bytes_{0};
  uint64_t limit_bytes_ = 0;
  uint64_t allowed_bytes_ = kUnlimited;
  uint64_t collected_bytes_ = 0;
  Buffer buffer_;
};

}  // namespace sluice
