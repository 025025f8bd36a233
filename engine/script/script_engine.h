// ScriptEngine: all scripts and function libraries of the server, and the Lua machines that run
// them.
//
// The texts are shared by all threads, by SHA-1, under one mutex. Each Execution has its own
// LuaMachines, made at its first script or function, with their own compiled functions. Running a
// known script takes no lock: the machine has it, and a counter of flushes tells whether it is
// still valid.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/execution/scripts.h"
#include "engine/script/function_library.h"
#include "engine/script/script.h"

namespace sluice {

class Engine;
class Execution;
class LuaMachine;
class Reply;
struct Call;
struct Command;
struct Effect;
struct CompiledScript;
enum class ScriptOrigin : uint8_t;

// What FUNCTION RESTORE does with existing libraries: removes them all; keeps them and refuses one
// of the same name; or replaces that one.
enum class RestorePolicy : uint8_t { kFlush, kAppend, kReplace };

class ScriptEngine final : public Scripts {
 public:
  explicit ScriptEngine(Engine& engine);
  ~ScriptEngine() override;
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;

  // EVAL, EVALSHA and their _RO forms: checks the arguments, runs the script, writes one reply.
  void run(Call& call, bool by_sha, bool read_only);
  // Compiles and keeps a script; returns its SHA-1.
  Result<std::string> load(Execution& execution, Bytes body);
  // By forty digits in either case. Thread-safe.
  bool exists(Bytes sha) const;
  void flush(Execution& execution);
  // Drops compiled scripts and libraries of this thread that have been flushed.
  void follow_flush(Execution& execution);
  // Kills the scripts, or the functions, for which other clients get BUSY. Refused if none
  // runs, or if it has written.
  Status kill(bool functions);
  Bytes busy_error() const override;

  // The shards of the declared keys if the script's first line is `#!lua` without
  // allow-cross-slot-keys and it has accessed no other keys so far, else all. A function's name
  // counts as a key: so its reply waits until the library is durable.
  ShardMask shards(Execution& execution, const Command& command,
                   std::span<const Bytes> args) override;
  ScriptWrites declared_writes(Execution& execution, const Command& command,
                               std::span<const Bytes> args) override;

  // --- Functions (script_functions.cc) ---
  // Changes need all shards locked.

  // FCALL and FCALL_RO: checks the arguments, runs the function, writes one reply.
  void run_function(Call& call, bool read_only);
  // Returns the library's name.
  Result<std::string> load_library(Call& call, Bytes code, bool replace);
  // Adds all of these libraries or none.
  Status restore_libraries(Call& call, std::span<const std::string> codes, RestorePolicy policy);
  // Returns false if no library has this name.
  bool delete_library(Call& call, Bytes name);
  void flush_libraries(Call& call);
  // FUNCTION STATS.
  void reply_function_stats(Call& call) const;
  // All libraries. Thread-safe. Keep the pointer while you use it: another thread may set new ones,
  // and a loop over functions()->libraries would release it before its first iteration.
  std::shared_ptr<const FunctionSet> functions() const;
  void for_each_library(const VisitLibrary& visit) const override;
  bool replay_library(const Effect& effect) override;

  // For INFO. Thread-safe.
  size_t script_count() const;
  uint64_t script_bytes() const;
  // For the machines of scripts, or of functions.
  uint64_t machine_bytes(bool functions) const;
  uint64_t library_bytes() const;

  // Called by machines that evict a script: its compiled code, or an empty text.
  void keep_code(const Script& script, std::string code);
  // Called by machines when a run has become slow, and when it has ended.
  void enter_busy(LuaMachine& machine, const Call& call, int64_t begin_us);
  void leave_busy(LuaMachine& machine);
  // Grows while a run takes long but is within its limit: machines count their looks at it.
  std::atomic<uint64_t>& looks() { return looks_; }

 private:
  // The machines of one Execution; null until the first use.
  struct Machines {
    std::unique_ptr<LuaMachine> scripts;
    std::unique_ptr<LuaMachine> functions;
  };
  // A run that has taken longer than the threshold.
  struct BusyRun {
    LuaMachine* machine;
    std::vector<std::string> command;
    int64_t begin_us;
  };

  using ScriptMap = std::unordered_map<std::string, KeptScript>;

  // REQUIRES: forty lower-case digits.
  static size_t place_of(Bytes sha);
  Machines& machines(Execution& execution);
  LuaMachine& machine(Execution& execution);
  LuaMachine& function_machine(Execution& execution);
  ShardMask script_shards(Execution& execution, bool by_sha, std::span<const Bytes> args);
  ShardMask function_shards(Execution& execution, std::span<const Bytes> args);
  Bytes busy_text() const REQUIRES(mutex_);
  void set_functions(std::shared_ptr<const FunctionSet> functions);
  Result<const CompiledScript*> find(LuaMachine& machine, Bytes sha);
  Result<const CompiledScript*> find_or_compile(LuaMachine& machine, Bytes body,
                                                ScriptOrigin origin);
  // The script that EVAL (its text) or EVALSHA names.
  Result<const CompiledScript*> find_named(LuaMachine& machine, bool by_sha, Bytes name);
  KeptScript find_shared(Bytes sha) const;

  Engine& engine_;
  // Distinguishes engines that lived at the same address.
  const uint64_t serial_;
  // Counts flushes. A machine with a smaller number drops its functions.
  std::atomic<uint64_t> generation_{0};
  mutable Mutex mutex_;
  // By the first byte of the SHA-1, so that adding a script never rehashes all the others.
  std::array<ScriptMap, 256> scripts_ GUARDED_BY(mutex_);
  size_t script_count_ GUARDED_BY(mutex_) = 0;
  uint64_t script_bytes_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<const Execution*, Machines> machines_ GUARDED_BY(mutex_);
  std::vector<BusyRun> busy_runs_ GUARDED_BY(mutex_);
  std::shared_ptr<const FunctionSet> functions_ GUARDED_BY(mutex_);
  // Counts changes of functions_.
  std::atomic<uint64_t> functions_generation_{1};
  std::atomic<uint64_t> looks_{0};
};

// The engine's Scripts. REQUIRES: it was made with a ScriptEngine (CompleteEngine).
ScriptEngine& script_engine(Engine& engine);

}  // namespace sluice
