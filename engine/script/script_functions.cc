// ScriptEngine's part for functions: the libraries that all threads share, their records, FCALL.
#include "engine/execution/execution.h"
#include "engine/script/lua_machine.h"
#include "engine/script/script_arguments.h"
#include "engine/script/script_engine.h"

namespace sluice {

namespace {

constexpr Bytes kBadKeyCount = "ERR Bad number of keys provided";

void record_library(Call& call, const FunctionLibrary& library) {
  ++call.unit.changes;
  if (!call.unit.recording) return;
  call.unit.record().function_put(library.name, encode_functions(library), library.code);
}

void record_gone(Call& call, Bytes name) {
  ++call.unit.changes;
  if (call.unit.recording) call.unit.record().function_gone(name);
}

}  // namespace

// --- The libraries ---

std::shared_ptr<const FunctionSet> ScriptEngine::functions() const {
  MutexLock lock(mutex_);
  return functions_;
}

void ScriptEngine::set_functions(std::shared_ptr<const FunctionSet> functions) {
  MutexLock lock(mutex_);
  functions_ = std::move(functions);
  functions_generation_.fetch_add(1, std::memory_order_release);
}

LuaMachine& ScriptEngine::function_machine(Execution& execution) {
  Machines& own = machines(execution);
  if (own.functions == nullptr) {
    MutexLock lock(mutex_);
    own.functions = std::make_unique<LuaMachine>(engine_, *this, SandboxKind::kFunctions);
  }
  const uint64_t generation = functions_generation_.load(std::memory_order_acquire);
  if (own.functions->functions_generation() != generation) {
    own.functions->follow_functions(generation, functions());
  }
  return *own.functions;
}

Result<std::string> ScriptEngine::load_library(Call& call, Bytes code, bool replace) {
  auto changed = std::make_shared<FunctionSet>(*functions());
  FunctionLibrary head;
  head.code = code;
  Status status = parse_library_head(head);
  if (!status.ok()) return status;
  if (!replace && changed->libraries.contains(head.name)) {
    return refusal("ERR Library '" + head.name + "' already exists");
  }
  const auto loaded = function_machine(call.execution).load_library(code);
  if (!loaded.ok()) return loaded.status();
  const std::shared_ptr<FunctionLibrary>& library = *loaded;
  const std::string clash = changed->clash(*library);
  if (!clash.empty()) return refusal("ERR Function " + clash + " already exists");
  changed->put(library);
  set_functions(std::move(changed));
  record_library(call, *library);
  return library->name;
}

Status ScriptEngine::restore_libraries(Call& call, std::span<const std::string> codes,
                                       RestorePolicy policy) {
  FunctionSet made;
  for (const std::string& code : codes) {
    FunctionLibrary head;
    head.code = code;
    Status status = parse_library_head(head);
    if (!status.ok()) return status;
    if (made.libraries.contains(head.name))
      return refusal("ERR Library '" + head.name + "' already exists");
    const auto loaded = function_machine(call.execution).load_library(code);
    if (!loaded.ok()) return loaded.status();
    const LibraryPointer library = *loaded;
    const std::string clash = made.clash(*library);
    if (!clash.empty()) return refusal("ERR Function " + clash + " already exists");
    made.put(library);
  }
  const std::shared_ptr<const FunctionSet> old = functions();
  auto changed = std::make_shared<FunctionSet>();
  if (policy != RestorePolicy::kFlush) *changed = *old;
  for (const auto& [name, library] : made.libraries) {
    if (!changed->libraries.contains(name)) continue;
    if (policy != RestorePolicy::kReplace)
      return refusal("ERR Library " + name + " already exists");
    changed->remove(name);
  }
  for (const auto& [name, library] : made.libraries) {
    const std::string clash = changed->clash(*library);
    if (!clash.empty()) return refusal("ERR Function " + clash + " already exists");
    changed->put(library);
  }
  for (const auto& [name, library] : old->libraries) {
    if (!changed->libraries.contains(name)) record_gone(call, name);
  }
  for (const auto& [name, library] : made.libraries) record_library(call, *library);
  set_functions(std::move(changed));
  return {};
}

bool ScriptEngine::delete_library(Call& call, Bytes name) {
  auto changed = std::make_shared<FunctionSet>(*functions());
  if (!changed->libraries.contains(name)) return false;
  changed->remove(name);
  set_functions(std::move(changed));
  record_gone(call, name);
  return true;
}

void ScriptEngine::flush_libraries(Call& call) {
  const std::shared_ptr<const FunctionSet> gone = functions();
  for (const auto& [name, library] : gone->libraries) record_gone(call, name);
  set_functions(std::make_shared<FunctionSet>());
  follow_flush(call.execution);
  engine_.server().scripts_flushed();
}

void ScriptEngine::for_each_library(const VisitLibrary& visit) const {
  const std::shared_ptr<const FunctionSet> set = functions();
  for (const auto& [name, library] : set->libraries) {
    visit(name, encode_functions(*library), library->code);
  }
}

bool ScriptEngine::replay_library(const Effect& effect) {
  auto changed = std::make_shared<FunctionSet>(*functions());
  if (effect.type == EffectType::kFunctionGone) {
    changed->remove(effect.key);
  } else {
    auto library = std::make_shared<FunctionLibrary>();
    library->code = effect.value;
    auto decoded = decode_functions(effect.field);
    if (!parse_library_head(*library).ok() || library->name != effect.key || !decoded) {
      return false;
    }
    library->functions = std::move(*decoded);
    changed->put(library);
  }
  set_functions(std::move(changed));
  return true;
}

uint64_t ScriptEngine::library_bytes() const {
  const std::shared_ptr<const FunctionSet> set = functions();
  uint64_t bytes = 0;
  for (const auto& [name, library] : set->libraries) bytes += library->code.size();
  return bytes;
}

// --- FCALL ---

ShardMask ScriptEngine::function_shards(Execution& execution, std::span<const Bytes> args) {
  const FunctionSet::Place* const place = function_machine(execution).functions().find(args[1]);
  const ShardMask own = 1U << KeyRef(args[1]).shard;
  if (place == nullptr) return own;
  const FunctionLibrary& library = *place->library;
  if ((library.functions[place->index].flags & kScriptAllowCrossSlotKeys) != 0 ||
      library.reaches_further.load(std::memory_order_relaxed)) {
    return kAllShards;
  }
  const Result<size_t> key_count = parse_key_count(args, kBadKeyCount);
  if (!key_count.ok()) return own;
  ShardMask mask = own;
  for (const Bytes key : args.subspan(3, *key_count)) mask |= 1U << KeyRef(key).shard;
  return mask;
}

ScriptWrites ScriptEngine::declared_writes(Execution& execution, const Command& command,
                                           std::span<const Bytes> args) {
  uint32_t flags = 0;
  if (command.script == ScriptName::kFunction) {
    const FunctionSet::Place* const place = function_machine(execution).functions().find(args[1]);
    if (place == nullptr) return ScriptWrites::kUndeclared;
    flags = place->library->functions[place->index].flags;
  } else {
    const bool by_sha = command.script == ScriptName::kSha;
    if (!by_sha && args[1].substr(0, 2) != "#!") return ScriptWrites::kUndeclared;
    const auto compiled = find_named(machine(execution), by_sha, args[1]);
    if (!compiled.ok() || !(*compiled)->script->has(kScriptDeclared)) {
      return ScriptWrites::kUndeclared;
    }
    flags = (*compiled)->script->flags;
  }
  return (flags & kScriptNoWrites) != 0 ? ScriptWrites::kNothing : ScriptWrites::kData;
}

void ScriptEngine::run_function(Call& call, bool read_only) {
  LuaMachine& machine = function_machine(call.execution);
  const FunctionSet::Place* const place = machine.functions().find(call.args[1]);
  if (place == nullptr) return call.reply.error("ERR Function not found");
  const Result<size_t> key_count = parse_key_count(call.args, kBadKeyCount);
  if (!key_count.ok()) return call.reply.error(key_count.status().message());
  const Status status =
      refuse_declared(engine_, place->library->functions[place->index].flags, read_only);
  if (!status.ok()) return call.reply.error(status.message());
  const Result<int> reference = machine.function_reference(*place);
  if (!reference.ok()) return call.reply.error(reference.status().message());
  machine.run_function(call, *place, *reference, *key_count, read_only);
}

void ScriptEngine::reply_function_stats(Call& call) const {
  MutexLock lock(mutex_);
  const BusyRun* running = nullptr;
  for (const BusyRun& run : busy_runs_) {
    if (run.machine->kind() == SandboxKind::kFunctions) running = &run;
  }
  // While a script, and no function, is busy, FUNCTION STATS replies BUSY like other commands.
  if (running == nullptr && !busy_runs_.empty()) return call.reply.error(busy_text());
  Reply& reply = call.reply;
  reply.map(2);
  reply.bulk("running_script");
  if (running == nullptr) {
    reply.null();
  } else {
    reply.map(3);
    reply.bulk("name");
    reply.bulk(running->command[1]);
    reply.bulk("command");
    reply.array(running->command.size());
    for (const std::string& word : running->command) reply.bulk(word);
    reply.bulk("duration_ms");
    reply.integer((engine_.server().steady_time_us() - running->begin_us) / 1000);
  }
  reply.bulk("engines");
  reply.map(1);
  reply.bulk("LUA");
  reply.map(2);
  reply.bulk("libraries_count");
  reply.integer(static_cast<int64_t>(functions_->libraries.size()));
  reply.bulk("functions_count");
  reply.integer(static_cast<int64_t>(functions_->functions.size()));
}

}  // namespace sluice
