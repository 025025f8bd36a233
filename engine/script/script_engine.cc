#include "engine/script/script_engine.h"

#include "engine/base/hex.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/refusal.h"
#include "engine/script/lua_machine.h"
#include "engine/script/script_arguments.h"

namespace sluice {

namespace {

std::atomic<uint64_t> g_next_serial{1};

constexpr Bytes kNoScriptFound = "NOSCRIPT No matching script. Please use EVAL.";

}  // namespace

Result<size_t> parse_key_count(std::span<const Bytes> args, Bytes no_number) {
  const auto number = parse_i64(args[2]);
  if (!number) return refusal(std::string(no_number));
  if (*number > static_cast<int64_t>(args.size()) - 3) {
    return refusal("ERR Number of keys can't be greater than number of args");
  }
  if (*number < 0) return refusal("ERR Number of keys can't be negative");
  return static_cast<size_t>(*number);
}

Status refuse_declared(Engine& engine, uint32_t flags, bool read_only) {
  if ((flags & (kScriptAllowOom | kScriptNoWrites)) == 0) {
    Status growth = refuse_growth(engine, kDenyOom);
    if (!growth.ok()) return growth;
  }
  if (read_only && (flags & kScriptNoWrites) == 0) {
    return refusal("ERR Can not execute a script with write flag using *_ro command.");
  }
  return {};
}

ScriptEngine::ScriptEngine(Engine& engine)
    : engine_(engine),
      serial_(g_next_serial.fetch_add(1, std::memory_order_relaxed)),
      functions_(std::make_shared<FunctionSet>()) {}

ScriptEngine::~ScriptEngine() = default;

ScriptEngine& script_engine(Engine& engine) { return static_cast<ScriptEngine&>(engine.scripts()); }

ScriptEngine::Machines& ScriptEngine::machines(Execution& execution) {
  // An Execution belongs to one thread, which caches its machines.
  struct Last {
    uint64_t serial = 0;
    const Execution* execution = nullptr;
    Machines* machines = nullptr;
  };
  thread_local Last last;
  if (last.serial != serial_ || last.execution != &execution) {
    MutexLock lock(mutex_);
    last = {serial_, &execution, &machines_[&execution]};
  }
  return *last.machines;
}

LuaMachine& ScriptEngine::machine(Execution& execution) {
  Machines& own = machines(execution);
  if (own.scripts == nullptr) {
    MutexLock lock(mutex_);
    own.scripts = std::make_unique<LuaMachine>(engine_, *this, SandboxKind::kScripts);
  }
  own.scripts->follow_flush(generation_.load(std::memory_order_acquire));
  return *own.scripts;
}

size_t ScriptEngine::place_of(Bytes sha) {
  return static_cast<size_t>(hex_value(sha[0]) << 4 | hex_value(sha[1])) & 0xFF;
}

KeptScript ScriptEngine::find_shared(Bytes sha) const {
  if (sha.size() != sizeof(Sha1Text)) return {};
  MutexLock lock(mutex_);
  const std::string key = to_lower(sha);
  const ScriptMap& scripts = scripts_[place_of(key)];
  const auto found = scripts.find(key);
  return found == scripts.end() ? KeptScript{} : found->second;
}

Result<const CompiledScript*> ScriptEngine::find(LuaMachine& machine, Bytes sha) {
  if (const CompiledScript* compiled = machine.compiled().find(sha)) return compiled;
  const KeptScript kept = find_shared(sha);
  if (kept.script == nullptr) return refusal(std::string(kNoScriptFound));
  // The digits were in upper case.
  if (const CompiledScript* compiled = machine.compiled().find(view(kept.script->sha))) {
    return compiled;
  }
  return machine.compile(kept, ScriptOrigin::kKept);
}

Result<const CompiledScript*> ScriptEngine::find_or_compile(LuaMachine& machine, Bytes body,
                                                            ScriptOrigin origin) {
  if (const CompiledScript* compiled = machine.compiled().find_body(body)) return compiled;
  const Result<std::shared_ptr<const Script>> made = make_script(body);
  if (!made.ok()) return made.status();
  const std::shared_ptr<const Script>& script = *made;
  // Two texts may have the same hash.
  Result<const CompiledScript*> compiled = machine.compiled().find(view(script->sha));
  if (*compiled == nullptr) compiled = machine.compile({script, nullptr}, origin);
  if (!compiled.ok()) return compiled;
  MutexLock lock(mutex_);
  if (scripts_[place_of(view(script->sha))]
          .try_emplace(std::string(view(script->sha)), KeptScript{script, nullptr})
          .second) {
    ++script_count_;
    script_bytes_ += script->body.size();
  }
  return compiled;
}

// --- Commands ---

void ScriptEngine::run(Call& call, bool by_sha, bool read_only) {
  if (by_sha && call.args[1].size() != sizeof(Sha1Text)) return call.reply.error(kNoScriptFound);
  const Result<size_t> key_count = parse_key_count(call.args, errors::kNotInteger);
  if (!key_count.ok()) return call.reply.error(key_count.status().message());
  LuaMachine& machine = this->machine(call.execution);
  const Result<const CompiledScript*> found = find_named(machine, by_sha, call.args[1]);
  if (!found.ok()) return call.reply.error(found.status().message());
  const CompiledScript& compiled = **found;
  if (compiled.script->has(kScriptDeclared)) {
    const Status status = refuse_declared(engine_, compiled.script->flags, read_only);
    if (!status.ok()) return call.reply.error(status.message());
  }
  machine.run(call, compiled, *key_count, read_only);
}

Result<const CompiledScript*> ScriptEngine::find_named(LuaMachine& machine, bool by_sha,
                                                       Bytes name) {
  return by_sha ? find(machine, name) : find_or_compile(machine, name, ScriptOrigin::kEval);
}

Result<std::string> ScriptEngine::load(Execution& execution, Bytes body) {
  LuaMachine& machine = this->machine(execution);
  const auto compiled = find_or_compile(machine, body, ScriptOrigin::kKept);
  if (!compiled.ok()) return compiled.status();
  machine.compiled().keep(**compiled);
  return std::string(view((*compiled)->script->sha));
}

bool ScriptEngine::exists(Bytes sha) const { return find_shared(sha).script != nullptr; }

void ScriptEngine::flush(Execution& execution) {
  {
    MutexLock lock(mutex_);
    for (ScriptMap& scripts : scripts_) scripts = ScriptMap();  // clear() keeps the buckets
    script_count_ = 0;
    script_bytes_ = 0;
    generation_.fetch_add(1, std::memory_order_release);
  }
  follow_flush(execution);
  engine_.server().scripts_flushed();
}

void ScriptEngine::follow_flush(Execution& execution) {
  const Machines& own = machines(execution);
  if (own.scripts != nullptr) {
    own.scripts->follow_flush(generation_.load(std::memory_order_acquire));
  }
  if (own.functions != nullptr) function_machine(execution);
}

ShardMask ScriptEngine::shards(Execution& execution, const Command& command,
                               std::span<const Bytes> args) {
  return command.script == ScriptName::kFunction
             ? function_shards(execution, args)
             : script_shards(execution, command.script == ScriptName::kSha, args);
}

ShardMask ScriptEngine::script_shards(Execution& execution, bool by_sha,
                                      std::span<const Bytes> args) {
  // Nearly all scripts lack such a line, which their text shows.
  if (!by_sha && args[1].substr(0, 2) != "#!") return kAllShards;
  const auto compiled = find_named(machine(execution), by_sha, args[1]);
  // It does not exist yet; SCRIPT LOAD before it in the same transaction may change that.
  if (!compiled.ok()) return kAllShards;
  const Script& script = *(*compiled)->script;
  if (!script.has(kScriptDeclared) || script.has(kScriptAllowCrossSlotKeys) ||
      script.reaches_further.load(std::memory_order_relaxed)) {
    return kAllShards;
  }
  const Result<size_t> key_count = parse_key_count(args, errors::kNotInteger);
  if (!key_count.ok()) return 0;
  ShardMask mask = 0;
  for (const Bytes key : args.subspan(3, *key_count)) mask |= 1U << KeyRef(key).shard;
  return mask;
}

void ScriptEngine::keep_code(const Script& script, std::string code) {
  if (code.empty()) return;
  const Bytes sha = view(script.sha);
  MutexLock lock(mutex_);
  ScriptMap& scripts = scripts_[place_of(sha)];
  const auto found = scripts.find(std::string(sha));
  // It has been flushed, or another thread was faster.
  if (found == scripts.end() || found->second.code != nullptr) return;
  script_bytes_ += code.size();
  found->second.code = std::make_shared<const std::string>(std::move(code));
}

// --- Slow scripts ---

void ScriptEngine::enter_busy(LuaMachine& machine, const Call& call, int64_t begin_us) {
  MutexLock lock(mutex_);
  busy_runs_.push_back({&machine, {call.args.begin(), call.args.end()}, begin_us});
  engine_.script_busy.store(true, std::memory_order_release);
}

void ScriptEngine::leave_busy(LuaMachine& machine) {
  MutexLock lock(mutex_);
  std::erase_if(busy_runs_, [&](const BusyRun& run) { return run.machine == &machine; });
  if (busy_runs_.empty()) engine_.script_busy.store(false, std::memory_order_release);
}

namespace {

constexpr Bytes kScriptBusy =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
constexpr Bytes kFunctionBusy =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

}  // namespace

Bytes ScriptEngine::busy_error() const {
  MutexLock lock(mutex_);
  return busy_text();
}

Bytes ScriptEngine::busy_text() const {
  const bool function =
      !busy_runs_.empty() && busy_runs_.front().machine->kind() == SandboxKind::kFunctions;
  return function ? kFunctionBusy : kScriptBusy;
}

Status ScriptEngine::kill(bool functions) {
  MutexLock lock(mutex_);
  bool others = false;
  bool killed = false;
  bool wrote = false;
  for (const BusyRun& run : busy_runs_) {
    if ((run.machine->kind() == SandboxKind::kFunctions) != functions) {
      others = true;
    } else if (run.machine->wrote()) {
      wrote = true;
    } else {
      run.machine->kill();
      killed = true;
    }
  }
  if (killed) return {};
  if (wrote) {
    return refusal(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You "
        "can either wait the script termination or kill the server in a hard way using the "
        "SHUTDOWN NOSAVE command.");
  }
  if (others) return refusal(std::string(functions ? kScriptBusy : kFunctionBusy));
  return refusal("NOTBUSY No scripts in execution right now.");
}

// --- Metrics ---

size_t ScriptEngine::script_count() const {
  MutexLock lock(mutex_);
  return script_count_;
}

uint64_t ScriptEngine::script_bytes() const {
  MutexLock lock(mutex_);
  return script_bytes_;
}

uint64_t ScriptEngine::machine_bytes(bool functions) const {
  MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [execution, own] : machines_) {
    const LuaMachine* const machine = (functions ? own.functions : own.scripts).get();
    if (machine != nullptr) bytes += machine->memory().bytes();
  }
  return bytes;
}

}  // namespace sluice
