// Scripts: what dispatch, checkpoints and recovery need of scripts and functions. ScriptEngine
// (engine/script/script_engine.h) implements it, and the engine owns it.
#pragma once

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

class Scripts {
 public:
  virtual ~Scripts() = default;

  // The shards that EVAL, EVALSHA, FCALL or a relative with these arguments needs.
  virtual ShardMask shards(Execution& execution, const Command& command,
                           std::span<const Bytes> args) = 0;
  // False: the script or function has declared that it writes nothing.
  virtual bool may_change_data(Execution& execution, const Command& command,
                               std::span<const Bytes> args) = 0;
  // The error of other commands while a script or a function is slow. Any thread.
  virtual Bytes busy_error() const = 0;

  // Libraries as records hold them: name, functions, code (EffectEncoder::function_put). Any
  // thread.
  using VisitLibrary = std::function<void(Bytes name, Bytes functions, Bytes code)>;
  virtual void for_each_library(const VisitLibrary& visit) const = 0;
  // Applies a record about a library. False: damaged.
  virtual bool replay_library(const Effect& effect) = 0;
};

using MakeScripts = std::unique_ptr<Scripts> (*)(Engine& engine);

}  // namespace sluice
