// LuaMachine: one Lua state with the scripts compiled in it, and the permissions of the running
// script.
//
// Each Execution (so each I/O thread) has its own, one for scripts and one for functions; only its
// thread runs them. `busy`, `wrote`, `killed` and the memory figure are atomics, because other
// threads read or set them.
//
// Memory: LuaMemory counts and limits it. The output of encoders and the reply count as well. The
// limit is suspended while a command runs, since its handler must never be unwound halfway; an
// answer that does not fit is dropped (LuaReply). Garbage is collected in Lua's own steps, which
// allocations pay for, and completely after a run that has left much; compiled scripts have a limit
// (CompiledScripts). Time: a count hook checks the clock every hundred thousand instructions (the
// JIT is off, else the hook would never fire), and more often if a script requests much memory or
// has large blocks, since single instructions take long then. C functions that take long check the
// clock themselves. Above the threshold other clients get BUSY, and each check lets the I/O thread
// serve its sockets, so that SCRIPT KILL arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/base/status.h"
#include "engine/clients/client.h"
#include "engine/execution/call.h"
#include "engine/script/compiled_scripts.h"
#include "engine/script/function_library.h"
#include "engine/script/look_pace.h"
#include "engine/script/lua_memory.h"
#include "engine/script/lua_reply.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/script.h"

struct lua_Debug;

namespace sluice {

class ScriptEngine;

// The pseudo-random sequence of Redis's math.random.
class LuaRandom {
 public:
  void seed(uint32_t seed) { state_ = static_cast<uint64_t>(seed) << 16 | 0x330E; }
  uint32_t next() {
    state_ = (state_ * 0x5DEECE66DULL + 0xB) & 0xFFFFFFFFFFFFULL;
    return static_cast<uint32_t>(state_ >> 17);
  }

 private:
  uint64_t state_ = 0x1234ABCD330EULL;
};

class LuaMachine {
 public:
  LuaMachine(Engine& engine, ScriptEngine& scripts, SandboxKind kind);
  ~LuaMachine();
  LuaMachine(const LuaMachine&) = delete;
  LuaMachine& operator=(const LuaMachine&) = delete;

  // The machine of a state or of one of its coroutines.
  static LuaMachine& of(lua_State* lua);

  // --- Scripts ---

  // The scripts that are compiled here.
  CompiledScripts& compiled() { return compiled_; }
  // May evict scripts that were used less recently.
  Result<const CompiledScript*> compile(const KeptScript& script, ScriptOrigin origin);
  // Begins with a new state without scripts if the shared cache has been flushed since;
  // `generation` counts flushes.
  void follow_flush(uint64_t generation);

  // Runs a script for EVAL and its variants: `call.args` from 3 on are `key_count` keys and the
  // arguments. Writes one reply.
  void run(Call& call, const CompiledScript& compiled, size_t key_count, bool read_only);

  // --- Functions (lua_library.cc) ---

  // Runs the code of a library to learn its functions.
  Result<std::shared_ptr<FunctionLibrary>> load_library(Bytes code);
  // The Lua function of a place in functions(), for run_function. Runs its library's code at the
  // first use here.
  Result<int> function_reference(const FunctionSet::Place& place);
  // Runs a function for FCALL, like run().
  void run_function(Call& call, const FunctionSet::Place& place, int reference, size_t key_count,
                    bool read_only);
  // The libraries that this machine has, and their generation. follow_functions() removes what no
  // longer exists.
  const FunctionSet& functions() const { return *functions_; }
  uint64_t functions_generation() const { return functions_generation_; }
  void follow_functions(uint64_t generation, std::shared_ptr<const FunctionSet> set);

  // --- For the functions of `redis` ---

  int register_function(lua_State* lua);

  // Runs the command on the Lua stack and leaves its answer there, or raises an error.
  int call_command(lua_State* lua, bool raise_errors);
  int check_command(lua_State* lua);
  void set_protocol(int protocol) { client_.protocol = protocol; }
  // Checks the clock, and serves sockets if the script has been running for long. Raises an error
  // if the script was killed. Called by the hook, and by C functions that take long.
  void look(lua_State* lua);
  // The same for code that must not raise. Returns false if the script was killed.
  bool keep_serving();
  Engine& engine() { return engine_; }

  // The number of active C functions that call back into Lua. Lua's own stack bounds recursion of
  // Lua functions; recursion through C needs its own bound, which is that of Lua 5.1.
  static constexpr int kMaxDepth = 200;
  int depth = 0;

  LuaRandom random;

  LuaMemory& memory() { return memory_; }
  const LuaMemory& memory() const { return memory_; }
  // Counts work of a C function, in values or a similar unit. After a certain amount it checks the
  // clock, and raises an error if the script was killed.
  void pay(lua_State* lua, size_t work) {
    work_ += work;
    if (work_ < kWorkPerLook) return;
    work_ = 0;
    look(lua);
  }

  // --- For other threads ---

  bool busy() const { return busy_.load(std::memory_order_acquire); }
  bool wrote() const { return wrote_.load(std::memory_order_acquire); }
  bool killed() const { return killed_.load(std::memory_order_acquire); }
  SandboxKind kind() const { return kind_; }
  void kill() { killed_.store(true, std::memory_order_release); }

 private:
  void open_state();
  static void* allocate(void* self, void* block, size_t old_size, size_t new_size);
  // Called after every allocation. If much was requested, the hook fires at the next instruction.
  void note_allocation(uint64_t old_size, uint64_t new_size);
  void set_hook(int instructions);
  void collect_after_run();
  static void count_hook(lua_State* lua, lua_Debug* debug);
  void set_array(int name_slot, std::span<const Bytes> values);
  // Reads the arguments of redis.call as views. Returns an empty text, or the error.
  Bytes collect_arguments(lua_State* lua);
  // Whether a command may run inside the script. It may be null.
  Status refuse(const Command* command);
  Status refuse_rights(const Command& command);
  // The common part of every run in Lua: begin_run() sets its context, reply_result() handles its
  // status. The result or the error is on the stack then.
  void begin_run(Call& call, uint32_t flags, std::atomic<bool>& reaches_further, bool read_only);
  int lua_call_protected(int arguments);
  bool reply_result();
  void finish_run(int status, Bytes name);
  // Evicts the least recently used scripts until the others take no more than this.
  void give_up_scripts(uint64_t bytes);
  void clean_up();

  // What the code of a library registers, and the references to it in the registry.
  struct Registration {
    FunctionLibrary library;
    std::vector<int> references;
  };
  // `known`: the code has been loaded before, here or elsewhere.
  Status run_library(Registration& registration, bool known);

  // Values that remain at the bottom of the main stack, so that a run accesses them without a
  // look-up.
  static constexpr int kGlobalsSlot = 1;
  static constexpr int kHandlerSlot = 2;
  static constexpr int kKeysSlot = 3;  // the text "KEYS"
  static constexpr int kArgumentsSlot = 4;
  static constexpr int kLoadingGlobalsSlot = 5;  // for the code of a library
  static constexpr int kLastSlot = 5;

  Engine& engine_;
  ScriptEngine& scripts_;
  const SandboxKind kind_;
  lua_State* lua_ = nullptr;

  CompiledScripts compiled_;
  uint64_t generation_ = 0;

  // --- Functions ---
  std::shared_ptr<const FunctionSet> functions_ = std::make_shared<FunctionSet>();
  uint64_t functions_generation_ = 0;
  // For each library whose code has run here: its functions, in its order.
  std::unordered_map<LibraryPointer, std::vector<int>> loaded_;
  Registration* registration_ = nullptr;

  // --- The running script ---
  Call* call_ = nullptr;
  std::atomic<bool>* reaches_further_ = nullptr;
  uint32_t flags_ = 0;
  bool read_only_ = false;
  int64_t begin_us_ = 0;
  // The client of the commands: with the caller's user, but a database and a protocol of its own.
  Client client_;
  LuaReply reply_;
  lua_State* reply_stack_ = nullptr;
  std::vector<Bytes> args_;
  // Texts of number arguments.
  struct NumberText {
    char text[32];
  };
  std::vector<NumberText> numbers_;

  static constexpr size_t kWorkPerLook = 100'000;
  // The part of the limit that compiled scripts may take.
  static constexpr uint64_t kCompiledPart = 8;
  LuaMemory memory_;
  uint64_t given_bytes_ = 0;    // since the hook last fired
  uint64_t largest_bytes_ = 0;  // the largest block asked for in this run
  int hook_instructions_ = 0;
  LookPace pace_;
  int64_t polled_us_ = 0;  // when others were last served
  size_t work_ = 0;
  std::atomic<bool> busy_{false};
  std::atomic<bool> wrote_{false};
  std::atomic<bool> killed_{false};
};

}  // namespace sluice
