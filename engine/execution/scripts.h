// Scripts: the interface to scripts and functions for dispatch, checkpoints and recovery.
// ScriptEngine (engine/script/script_engine.h) implements it; the engine owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/base/bytes.h"
#include "engine/keyspace/shard.h"

namespace sluice {

class Engine;
class Execution;
struct Command;
struct Effect;

// kUndeclared: a script without flags, or one that cannot run.
enum class ScriptWrites : uint8_t { kUndeclared, kNothing, kData };

class Scripts {
 public:
  virtual ~Scripts() = default;

  // The shards that EVAL, EVALSHA, FCALL or a variant with these arguments needs.
  virtual ShardMask shards(Execution& execution, const Command& command,
                           std::span<const Bytes> args) = 0;
  // Whether the script or function has declared that it writes.
  virtual ScriptWrites declared_writes(Execution& execution, const Command& command,
                                       std::span<const Bytes> args) = 0;
  // The error of other commands while a script or a function is slow. Thread-safe.
  virtual Bytes busy_error() const = 0;

  // Visits libraries as records hold them: name, functions, code (EffectEncoder::function_put).
  // Thread-safe.
  using VisitLibrary = std::function<void(Bytes name, Bytes functions, Bytes code)>;
  virtual void for_each_library(const VisitLibrary& visit) const = 0;
  // Applies a record of a library. Returns false if it is damaged.
  virtual bool replay_library(const Effect& effect) = 0;
};

using MakeScripts = std::unique_ptr<Scripts> (*)(Engine& engine);

}  // namespace sluice
