// LuaMachine: one Lua state with the scripts compiled in it, and what the running script may do.
//
// Each Execution (so each I/O thread) has its own; only its thread runs it. `busy`, `wrote`,
// `killed` and the memory figure are read or set by other threads and are atomics.
//
// Memory: an allocator counts; past the limit allocations fail, which raises "not enough memory" in
// the script. The limit is suspended while a command runs: its handler must never be unwound
// halfway. Time: a count hook looks at the clock every hundred thousand instructions (the JIT is
// off, else it would never fire); past the threshold everybody else is told BUSY, and the hook lets
// the I/O thread serve its sockets, so that SCRIPT KILL arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/client.h"
#include "engine/commands/call.h"
#include "engine/script/lua_reply.h"
#include "engine/script/script.h"

struct lua_Debug;

namespace sluice {

class ScriptEngine;

// A script in one state: its source, and the function's place in the registry.
struct CompiledScript {
  std::shared_ptr<const Script> script;
  int function = 0;
};

class LuaMachine {
 public:
  LuaMachine(Engine& engine, ScriptEngine& scripts);
  ~LuaMachine();
  LuaMachine(const LuaMachine&) = delete;
  LuaMachine& operator=(const LuaMachine&) = delete;

  // The machine of a state or of one of its coroutines.
  static LuaMachine& of(lua_State* lua);

  // --- Scripts ---

  // By the forty digits in lower case, or by the text. Null: not compiled here.
  const CompiledScript* find(Bytes sha) const;
  const CompiledScript* find_body(Bytes body) const;
  // Null with the whole error message in `error`.
  const CompiledScript* compile(const std::shared_ptr<const Script>& script, std::string& error);
  // Begins with a new state, without scripts, if the shared cache has been flushed since;
  // `generation` counts flushes.
  void follow_flush(uint64_t generation);

  // Runs a script for EVAL and its relatives: `call.args` from 3 on are `key_count` keys and the
  // arguments. Writes one reply.
  void run(Call& call, const CompiledScript& compiled, size_t key_count, bool read_only);

  // --- For the functions of `redis` ---

  // Runs the command on the Lua stack and leaves its answer there, or raises.
  int call_command(lua_State* lua, bool raise_errors);
  int check_command(lua_State* lua);
  void set_protocol(int protocol) { client_.protocol = protocol; }
  Engine& engine() { return engine_; }

  // How many C functions that call back into Lua are open. Lua's own stack bounds recursion among
  // Lua functions; recursion through C needs a bound of its own, that of Lua 5.1.
  static constexpr int kMaxDepth = 200;
  int depth = 0;

  // The pseudo-random sequence of Redis's math.random.
  uint32_t next_random() {
    random_ = (random_ * 0x5DEECE66DULL + 0xB) & 0xFFFFFFFFFFFFULL;
    return static_cast<uint32_t>(random_ >> 17);
  }
  void seed_random(uint32_t seed) { random_ = static_cast<uint64_t>(seed) << 16 | 0x330E; }

  // --- For other threads ---

  bool busy() const { return busy_.load(std::memory_order_acquire); }
  bool wrote() const { return wrote_.load(std::memory_order_acquire); }
  bool killed() const { return killed_.load(std::memory_order_acquire); }
  void kill() { killed_.store(true, std::memory_order_release); }
  uint64_t memory_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  void open_state();
  static void* allocate(void* self, void* block, size_t old_size, size_t new_size);
  static void count_hook(lua_State* lua, lua_Debug* debug);
  void on_count(lua_State* lua);
  void set_array(int name_slot, std::span<const Bytes> values);
  // The arguments of redis.call as views. Empty: fine; else the error.
  Bytes collect_arguments(lua_State* lua);
  const Command* look_up() const;
  // What may stand against a command inside the script. Empty: nothing.
  std::string refusal(const Command* command);
  std::string refuse_rights(const Command& command);
  void finish_run();

  Engine& engine_;
  ScriptEngine& scripts_;
  lua_State* lua_ = nullptr;

  struct ShaHash {
    size_t operator()(const Sha1Text& sha) const;
  };
  std::unordered_map<Sha1Text, CompiledScript, ShaHash> compiled_;
  // By the hash of the text, so that EVAL of a known text needs no SHA-1.
  std::unordered_map<uint64_t, const CompiledScript*> by_body_;
  mutable const CompiledScript* last_ = nullptr;
  uint64_t generation_ = 0;

  // --- The running script ---
  Call* call_ = nullptr;
  const Script* script_ = nullptr;
  uint32_t flags_ = 0;
  bool read_only_ = false;
  int64_t begin_us_ = 0;
  // Who runs the commands: the caller's rights, but a database and a protocol of the script's own.
  Client client_;
  LuaReply reply_;
  lua_State* reply_stack_ = nullptr;
  std::vector<Bytes> args_;
  // Texts of number arguments.
  struct NumberText {
    char text[32];
  };
  std::vector<NumberText> numbers_;

  uint64_t random_ = 0x1234ABCD330EULL;
  std::atomic<uint64_t> used_bytes_{0};
  uint64_t limit_bytes_ = 0;
  bool limited_ = false;
  std::atomic<bool> busy_{false};
  std::atomic<bool> wrote_{false};
  std::atomic<bool> killed_{false};
};

}  // namespace sluice
