// ScriptEngine: all scripts of the server, and the Lua machines that run them.
//
// The texts are shared by all threads, by SHA-1, under one mutex; each Execution has its own
// LuaMachine, made at its first script, with its own compiled functions. The way of a known script
// takes no lock: the machine has it, and a counter of flushes tells whether that is still right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/script/script.h"
#include "engine/shard.h"

namespace sluice {

class Engine;
class Execution;
class LuaMachine;
struct Call;
struct CompiledScript;

class ScriptEngine {
 public:
  explicit ScriptEngine(Engine& engine);
  ~ScriptEngine();
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;

  // EVAL, EVALSHA and their _RO forms: checks the arguments, runs the script, writes one reply.
  void run(Call& call, bool by_sha, bool read_only);
  // Compiles and keeps a script; its SHA-1, or an empty text with the error message in `error`.
  std::string load(Execution& execution, Bytes body, std::string& error);
  // By forty digits in either case. Any thread.
  bool exists(Bytes sha) const;
  void flush();
  // Ends the scripts that others are told BUSY about. Empty: done; else the error message.
  Bytes kill();

  // The shards that EVAL or EVALSHA with these arguments needs: those of the declared keys where
  // the script's first line is `#!lua` without allow-cross-slot-keys and it kept to them so far,
  // else all.
  ShardMask shards(Execution& execution, bool by_sha, std::span<const Bytes> args);

  // For INFO. Any thread.
  size_t script_count() const;
  uint64_t script_bytes() const;
  uint64_t machine_bytes() const;

  // By machines, when their script has become slow, and when it has ended.
  void enter_busy();
  void leave_busy();

 private:
  LuaMachine& machine(Execution& execution);
  const CompiledScript* find(LuaMachine& machine, Bytes sha);
  const CompiledScript* find_or_compile(LuaMachine& machine, Bytes body, std::string& error);
  std::shared_ptr<const Script> find_shared(Bytes sha) const;

  Engine& engine_;
  // Tells engines that lived at the same address apart.
  const uint64_t serial_;
  // Counts flushes; a machine that has seen fewer forgets its functions.
  std::atomic<uint64_t> generation_{0};
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Script>> scripts_ GUARDED_BY(mutex_);
  uint64_t script_bytes_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<const Execution*, std::unique_ptr<LuaMachine>> machines_ GUARDED_BY(mutex_);
  unsigned busy_count_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice
